"""The distance at which a search should stop fitting an update with errors: the expected distance of the true pictures.

The discrepancy principle (Morozov 1966): where an update has errors of a known size, even the true pictures do not fit exactly, and a
guess that fits better fits the errors. An adaptive attacker knows from the protection how large the errors are
(`ProtectionKnowledge.errors`). A naive attacker can estimate their size from the distance that an unlimited search leaves.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from leakage.engine.core import Observation, Params, generator
from leakage.engine.matching import distance
from leakage.engine.whole_distance import Distance

LEAST = 0.6  # least fraction of squared errors that a fit leaves: gradients hardly determine many of the unknowns
DRAWS = 8  # draws of random errors; the mean of their distances is taken where the expected distance has no formula
KNOWN = "known from the protection: the search stops fitting at a distance of {:.2g}, where the true pictures would be on average"
UNKNOWN = "not known: the search goes on to the end"


@dataclass(frozen=True)
class Goal:
    """How a search compares gradients, and where it stops fitting.

    Args:
        distance: gradients of S guesses -> distance of each guess from the update that arrived, (S,)
        floor: the expected distance of the true pictures, (); None where they fit exactly, or where the attacker does not know it
        note: what the attacker assumes about the errors, for the page
    """

    distance: Distance
    floor: Tensor | None
    note: dict[str, str | int | float]


def goal_of(seen: Observation, kind: str, importance: Mapping[str, float] | None = None) -> Goal:
    """Return the distance to the update that arrived (`matching.distance`), and the distance of the true pictures that is expected.

    Args:
        seen: what the attacker knows.
        kind: one of `matching.DISTANCES`.
        importance: the factor of each parameter, as in `matching.distance`.
    """
    target = seen.as_gradient()
    compared = distance(kind, target, importance, seen.knowledge.entry_weights)
    if not seen.knowledge.errors:
        return Goal(compared, None, {} if seen.knowledge.errors is not None else {"errors": UNKNOWN})
    floor = expected_distance(kind, target, seen.knowledge.errors, importance=importance, entry_weights=seen.knowledge.entry_weights)
    return Goal(compared, floor, {"errors": KNOWN.format(float(floor))})


def floors_of(goals: Sequence[Goal]) -> Tensor | None:
    """Return the floors of several searches, (S,), minus infinity for a search without a floor; None where no search has a floor."""
    floors = [goal.floor for goal in goals]
    some = next((floor for floor in floors if floor is not None), None)
    return None if some is None else torch.stack([torch.full_like(some, -math.inf) if floor is None else floor for floor in floors])


def expected_distance(
    kind: str,
    target: Params,
    errors: Params,
    *,
    importance: Mapping[str, float] | None = None,
    entry_weights: Params | None = None,
) -> Tensor:
    """Return the expected distance between the true gradient g and g* = g + errors, (); errors are independent of g and of each other.

    E is the expected sum of squared errors over the entries that count, and r = E / ||g*||^2.
    squared           E
    cosine            1 - sqrt(1 - r), as ||g||^2 is about ||g*||^2 - E
    cosine per layer  the mean of 1 - sqrt(1 - r) over layers
    absolute          sqrt(2 / pi) times the sum of standard deviations, for normal errors
    largest           the mean over DRAWS random draws of normal errors

    Args:
        kind: one of `matching.DISTANCES`.
        target: g*, by parameter.
        errors: the expected square of each entry's error, by parameter, of its shape or (); a parameter that is missing has no errors.
        importance: as in `matching.distance`.
        entry_weights: as in `matching.distance`.
    """
    weights = {name: 1.0 for name in target} if importance is None else importance
    variances, counted = Params(), Params()
    for name in weights:
        weight = (entry_weights or {}).get(name, torch.ones_like(target[name]))
        counted[name] = (weight > 0).to(weight) if "cosine" in kind else weight
        variance = errors.get(name, torch.zeros(())).to(target[name]).expand_as(target[name])
        variances[name] = torch.where(counted[name] > 0, variance, 0)  # the error of an entry that does not count may be infinite
    nothing = next(iter(target.values())).new_zeros(())
    if not errors:
        return nothing
    if "cosine" in kind:
        squared_error = {name: (counted[name] * value).sum() for name, value in variances.items()}
        squared_norm = {name: (counted[name] * target[name].square()).sum() for name in weights}
        if kind == "cosine":
            return _cosine_distance(_sum(weights, squared_error), _sum(weights, squared_norm))
        return sum((weights[name] * _cosine_distance(squared_error[name], squared_norm[name]) for name in weights), nothing) / len(weights)
    scaled = {name: weights[name] * counted[name] for name in weights}
    if kind == "squared":
        return sum(((scaled[name] * value).sum() for name, value in variances.items()), nothing)
    if kind == "absolute":
        return math.sqrt(2 / math.pi) * sum(((scaled[name] * value.sqrt()).sum() for name, value in variances.items()), nothing)
    rng, total = generator(0, "errors"), nothing
    for _ in range(DRAWS):
        for name, value in variances.items():
            drawn = torch.randn(value.shape, generator=rng).to(value)
            total = total + (scaled[name] * value.sqrt() * drawn.abs()).max() / DRAWS
    return total


def _cosine_distance(squared_error: Tensor, squared_norm: Tensor) -> Tensor:
    """Return the expected 1 - cos between a gradient and itself with errors.

    Args:
        squared_error: the expected squared norm of the errors.
        squared_norm: the squared norm of the gradient with its errors.
    """
    return 1 - (1 - (squared_error / squared_norm.clamp(min=torch.finfo(squared_norm.dtype).tiny)).clamp(max=1)).sqrt()


def _sum(weights: Mapping[str, float], parts: Params) -> Tensor:
    return torch.stack([weights[name] * part for name, part in parts.items()]).sum()


def left_by_fitting(entries: int, unknowns: int, fraction: float = 1.0) -> float:
    """Return the part of squared errors that a fit without a prior leaves: 1 - fraction p / n, at least LEAST.

    The fit adapts this fraction of its p unknowns to the errors of n entries. A full fit leaves (n - p) / n of independent errors,
    as in ordinary least squares.

    >>> left_by_fitting(1000, 200), left_by_fitting(1000, 200, 0.75), left_by_fitting(1000, 5000)
    (0.8, 0.85, 0.6)
    """
    return max(1 - fraction * unknowns / entries, LEAST)


def slack(entries: int) -> float:
    """Return the fraction by which squared errors may exceed their expectation: two standard deviations of normal errors."""
    return 2 * math.sqrt(2 / entries)


def entries_compared(target: Params, entry_weights: Params) -> int:
    """Return how many entries count in a comparison: those of positive weight, and all entries of parameters without weights."""
    return sum(int((entry_weights[name] > 0).sum()) if name in entry_weights else value.numel() for name, value in target.items())
