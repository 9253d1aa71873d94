"""How near a search should come to an update that has errors in it: as near as the true pictures would, and no nearer.

The discrepancy principle (Morozov 1966): behind errors of a known size even the true pictures do not fit exactly, and a guess that fits
better fits the errors. An adaptive attacker knows from the protection how large the errors are (`ProtectionKnowledge.errors`). A naive
attacker can estimate their size from the distance that a search without a limit leaves.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from leakage.engine.core import Observation, Params, generator
from leakage.engine.matching import Distance, distance

LEAST = 0.6  # of squared errors is left, however many unknowns there are: gradients determine many of them hardly
DRAWS = 8  # of errors, where the mean of a distance has no formula
KNOWN = "known from the protection: the search stops fitting at a distance of {:.2g}, where the true pictures would be on average"
UNKNOWN = "not known: the search goes on to the end"


@dataclass(frozen=True)
class Goal:
    """How gradients are compared in a search, and where it stops fitting.

    Args:
        distance: gradients of S guesses -> how far each is from what arrived, (S,).
        floor: the expected distance of the true pictures, (); None where they fit exactly, or where the attacker does not know.
        note: what the attacker assumes of the errors, for the page.
    """

    distance: Distance
    floor: Tensor | None
    note: dict[str, str | int | float]


def goal_of(seen: Observation, kind: str, importance: Mapping[str, float] | None = None) -> Goal:
    """How gradients are compared with what arrived (`matching.distance`), and the expected distance of the true pictures."""
    target = seen.as_gradient()
    compared = distance(kind, target, importance, seen.knowledge.entry_weights)
    if not seen.knowledge.errors:
        return Goal(compared, None, {} if seen.knowledge.errors is not None else {"errors": UNKNOWN})
    floor = expected_distance(kind, target, seen.knowledge.errors, importance=importance, entry_weights=seen.knowledge.entry_weights)
    return Goal(compared, floor, {"errors": KNOWN.format(float(floor))})


def floors_of(goals: Sequence[Goal]) -> Tensor | None:
    """The floors of several searches (S,), minus infinity where there is none; None where no search has one."""
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
    """The distance on average of the true gradient g from g* = g + errors, which are independent of g and of each other: ().

    E is the expected sum of squared errors, as far as they count, and r = E / ||g*||^2.
    squared           E
    cosine            1 - sqrt(1 - r), as ||g||^2 is about ||g*||^2 - E
    cosine per layer  the mean of these
    absolute          sqrt(2 / pi) times the sum of standard deviations: of normal errors
    largest           of normal errors, the mean of some draws

    Args:
        kind: one of `matching.DISTANCES`.
        target: g*, by parameter.
        errors: the expected square of each entry's error, by parameter, of its shape or (); no tensor: no errors.
        importance: as in `matching.distance`.
        entry_weights: likewise.
    """
    weights = {name: 1.0 for name in target} if importance is None else importance
    variances, believed = Params(), Params()
    for name in weights:
        share = (entry_weights or {}).get(name, torch.ones_like(target[name]))
        believed[name] = (share > 0).to(share) if "cosine" in kind else share
        variance = errors.get(name, torch.zeros(())).to(target[name]).expand_as(target[name])
        variances[name] = torch.where(believed[name] > 0, variance, 0)  # of an entry that does not count the error may be infinite
    nothing = next(iter(target.values())).new_zeros(())
    if not errors:
        return nothing
    if "cosine" in kind:
        lost = {name: (believed[name] * value).sum() for name, value in variances.items()}
        length = {name: (believed[name] * target[name].square()).sum() for name in weights}
        if kind == "cosine":
            return _turned(_sum(weights, lost), _sum(weights, length))
        return sum((weights[name] * _turned(lost[name], length[name]) for name in weights), nothing) / len(weights)
    scaled = {name: weights[name] * believed[name] for name in weights}
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


def _turned(lost: Tensor, length: Tensor) -> Tensor:
    """1 - cos, of a gradient from itself with errors, from the expected square of these and the squared length of both together."""
    return 1 - (1 - (lost / length.clamp(min=torch.finfo(length.dtype).tiny)).clamp(max=1)).sqrt()


def _sum(weights: Mapping[str, float], parts: Params) -> Tensor:
    return torch.stack([weights[name] * part for name, part in parts.items()]).sum()


def left_by_fitting(entries: int, unknowns: int, share: float = 1.0) -> float:
    """Which part of squared errors a fit without a prior leaves that fits a share of its unknowns to them: 1 - share p / n, at least LEAST.

    A whole fit leaves (n - p) / n of independent errors, as in any least squares.

    >>> left_by_fitting(1000, 200), left_by_fitting(1000, 200, 0.75), left_by_fitting(1000, 5000)
    (0.8, 0.85, 0.6)
    """
    return max(1 - share * unknowns / entries, LEAST)


def slack(entries: int) -> float:
    """By which share the squared errors of so many entries may exceed what is expected: twice their standard deviation, of normal ones."""
    return 2 * math.sqrt(2 / entries)


def entries_compared(target: Params, entry_weights: Params) -> int:
    """How many entries count in a comparison."""
    return sum(int((entry_weights[name] > 0).sum()) if name in entry_weights else value.numel() for name, value in target.items())
