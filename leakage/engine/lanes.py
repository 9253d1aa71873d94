"""The gradients of several attackers' guesses for one model, computed together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from leakage.engine.client import lanes_client
from leakage.engine.core import Observation, Params
from leakage.engine.formula_replay import ReadyStep
from leakage.engine.vjp import vjp
from leakage.engine.whole_distance import Distance, WholeDistance, flatten_lanes, join_distances, split_lanes


def join_gradients(seen: Sequence[Observation], labels: Tensor) -> Callable[[Tensor], list[Params]]:
    """Return a function that computes the gradients of S attackers' guesses at once.

    Args:
        seen: S observations of one model.
        labels: (B, S).

    Returns:
        Guesses x (S, B, C, H, W) -> each attacker's gradient, with 1 in front of every shape; in the units of `as_gradient`, and
        differentiable as `Observation.gradients` is.

    Raises:
        ValueError: the models or their weights differ.
    """
    states = [observation.model.state_dict() for observation in seen]
    if any(state.keys() != states[0].keys() or any(not torch.equal(state[n], v) for n, v in states[0].items()) for state in states):
        raise ValueError("One loop can run several attacks only if the model and its weights are the same. Run the attacks one by one.")
    client = lanes_client(seen[0].model)
    weights = {name: value.expand(len(seen), *value.shape) for name, value in seen[0].received.weights.items()}

    def replay(x: Tensor) -> list[Params]:
        gradients, _ = client(weights, x.transpose(0, 1), labels, {})
        return [
            observation.replay.to_gradient(_replayed(observation, lane)) for observation, lane in zip(seen, _split(gradients), strict=True)
        ]

    return replay


def _split(gradients: Params) -> list[Params]:
    """Return the gradients of each guess, with 1 in front of every shape."""
    lanes = zip(*(value.split(1) for value in gradients.values()), strict=True)
    return [dict(zip(gradients, lane, strict=True)) for lane in lanes]


def _replayed(seen: Observation, gradients: Params) -> Params:
    assert seen.replay.from_gradients is not None
    return seen.replay.from_gradients(gradients)


@dataclass(frozen=True, eq=False)
class MatchedUpdate:
    """The distances of S guesses from the updates that arrived: from one update, or from one update for each guess.

    Model, weights and labels must not change while it is used.

    Args:
        seen: the observation, or S observations of one model
        match: the distance from each observation's update
        labels: the labels (S, B), or probabilities (S, B, K), of the guesses
        replay: guesses (S, B, C, H, W) -> each observation's gradients, differentiable in the guesses
    """

    seen: Sequence[Observation]
    match: Sequence[Distance]
    labels: Tensor
    replay: Callable[[Tensor], Sequence[Params]]
    steps: dict[tuple[torch.Size, torch.dtype], ReadyStep | None] = field(default_factory=dict)
    """By shape and type of the guesses, what `step_for` returned."""

    def __call__(self, x: Tensor) -> Tensor:
        """Return the distances (S,) of guesses x (S, B, C, H, W)."""
        return torch.cat([distance(update) for distance, update in zip(self.match, self.replay(x), strict=True)])

    def derivative(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the distances (S,), and their derivatives by the guesses x (S, B, C, H, W), by formula or by autograd."""
        found = self.derivative_by_formula(x)
        if found:
            return found
        x = x.detach().requires_grad_()
        distances = self(x)
        return distances.detach(), torch.autograd.grad(distances.sum(), x)[0]

    def derivative_by_formula(self, x: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return what `derivative` returns, by formula; None where autograd has to compute it."""
        if any(observation.replay.from_gradients is None for observation in self.seen):
            return None
        if step := self.step_for(x):
            return step.compute(x)
        formula = self.seen[0].replay.formula
        found = formula.vjp(x, self.labels) if formula else None
        if found is None:
            return None
        gradient, follow = found
        if self._joined:
            distances, v = self._joined.derivative(gradient)
        else:
            shapes = {name: value.shape[1:] for name, value in gradient.items()}
            entries = flatten_lanes(gradient)
            lanes = zip(self.seen, self.match, entries.split(len(x) // len(self.seen)), self._direct, strict=True)
            each = [_distances(seen, match, part, shapes, direct=direct) for seen, match, part, direct in lanes]
            distances, derivatives = (torch.cat(parts) for parts in zip(*each, strict=True))
            v = split_lanes(derivatives, shapes)
        return distances, follow(v)

    @cached_property
    def _joined(self) -> WholeDistance | None:
        """One distance of all gradients of guesses, where these are compared with the updates as they are; None where there is none."""
        return join_distances(self.match) if all(self._direct) else None

    @cached_property
    def _direct(self) -> list[bool]:
        """For each observation, whether gradients of guesses are compared with its update as they are."""
        return [_is_compared_directly(seen) for seen in self.seen]

    @property
    def is_compiled(self) -> bool:
        """Whether a compiled program computed the last derivatives."""
        return any(step is not None and step.is_compiled for step in self.steps.values())

    def step_for(self, x: Tensor) -> ReadyStep | None:
        """Return the step that computes what `derivative` returns for guesses of the shape of x; None where there is none."""
        kind, formula = (x.shape, x.dtype), self.seen[0].replay.formula
        if kind not in self.steps:
            self.steps[kind] = formula.ready(self._joined, x, self.labels) if formula and self._joined else None
        return self.steps[kind]


def _is_compared_directly(seen: Observation) -> bool:
    """Return whether the gradients of guesses are compared with the update as they are, whether they are long or short."""

    def is_kept(size: float) -> bool:
        gradients = {name: torch.full_like(value, size).unsqueeze(0) for name, value in seen.received.weights.items()}
        update = seen.replay.to_gradient(_replayed(seen, gradients))
        return all(update.get(name) is value for name, value in gradients.items())

    return is_kept(0.0) and is_kept(1.0)


def _distances(
    seen: Observation, match: Distance, entries: Tensor, shapes: Mapping[str, torch.Size], *, direct: bool
) -> tuple[Tensor, Tensor]:
    """Return the distances (S,) of S gradients from the update of one observation, and their derivatives (S, P) by the entries.

    Args:
        seen: the observation.
        match: the distance from its update.
        entries: the entries (S, P) of the gradients.
        shapes: the shape of each tensor of a gradient, by parameter.
        direct: whether gradients are compared as they are; else autograd follows the imitation that changes them first.
    """
    if direct and isinstance(match, WholeDistance) and list(match.shapes) == list(shapes):
        return match.derivative_by_entries(entries)
    leaf = entries.detach().requires_grad_()
    with torch.enable_grad():
        update = seen.replay.to_gradient(_replayed(seen, split_lanes(leaf, shapes)))
        if isinstance(match, WholeDistance):
            compared = match.entries(update)
            distances, derivatives = match.derivative_by_entries(compared.detach())
        else:
            compared = distances = match(update)
            derivatives = torch.ones_like(distances)
        (derivative,) = vjp([compared], [leaf], [derivatives])
    return distances.detach(), derivative
