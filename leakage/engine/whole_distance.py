"""Distances of gradients that are one formula over all their entries, with their derivatives; S gradients have S before every shape."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from leakage.engine.core import Params

Distance = Callable[[Params], Tensor]  # gradient -> scalar, or with S in front of every shape -> (S,)


@dataclass(frozen=True, eq=False)
class WholeDistance:
    """A distance of S gradients g that is one formula over all their entries (S, P), with its derivative.

    Args:
        kind: cosine, squared or absolute
        shapes: the shape of each tensor that is compared, by parameter
        goal: the entries of g*, (P,), or of a g* for each gradient, (S, P); for cosine each is multiplied by its weight and divided by the
            weighted norm of g*
        weights: the weight of each entry, (P,); None: 1
    """

    kind: str
    shapes: Mapping[str, torch.Size]
    goal: Tensor
    weights: Tensor | None

    @staticmethod
    def of(kind: str, target: Params, weights: Tensor | None) -> "WholeDistance":
        """Return the distance from g* = `target`, of which every tensor is compared; `weights` as in the class."""
        goal = flatten(target)
        if kind == "cosine":
            squares, weighted = (goal.square(), goal) if weights is None else (goal.square() * weights, goal * weights)
            goal = weighted / squares.sum().sqrt()
        return WholeDistance(kind, {name: value.shape for name, value in target.items()}, goal, weights)

    def for_each(self, count: int) -> "WholeDistance":
        """Return this distance with a g* for each of `count` gradients."""
        return replace(self, goal=self.goal.expand(count, -1).contiguous())

    def __call__(self, update: Params) -> Tensor:
        entries = self.entries(update)
        if self.kind == "cosine":
            return 1 - self._along(entries) / self._norm(entries)
        gap = entries - self.goal
        return self._weighted(gap.square() if self.kind == "squared" else gap.abs()).sum(1)

    def derivative(self, update: Params) -> tuple[Tensor, Params]:
        """Return the distances (S,), and their derivatives by the gradients, (S, ...); 0 for a parameter that is not compared."""
        distances, derivatives = self.derivative_by_entries(self.entries(update))
        compared = split_lanes(derivatives, self.shapes)
        derivative = {name: compared[name] if name in compared else torch.zeros_like(value) for name, value in update.items()}
        return distances, derivative

    def entries(self, update: Params) -> Tensor:
        """Return the entries (S, P) of updates (S, ...) that are compared."""
        return flatten_lanes({name: update[name] for name in self.shapes})

    def derivative_by_entries(self, entries: Tensor) -> tuple[Tensor, Tensor]:
        """Return the distances (S,), and their derivatives by the entries (S, P) of the tensors compared, in the order of `shapes`."""
        if self.kind == "cosine":
            norm, along = self._norm(entries), self._along(entries)
            derivative = self._weighted(entries * (along / norm**3).unsqueeze(1))
            return 1 - along / norm, derivative.addcdiv_(self.goal.expand_as(entries), norm.unsqueeze(1), value=-1)
        gap = entries - self.goal
        if self.kind == "squared":
            weighted = self._weighted(gap)
            return (gap * weighted).sum(1), 2 * weighted
        return self._weighted(gap.abs()).sum(1), self._weighted(gap.sign())

    def _along(self, entries: Tensor) -> Tensor:
        return entries @ self.goal if self.goal.dim() == 1 else (entries * self.goal).sum(1)

    def _weighted(self, entries: Tensor) -> Tensor:
        return entries if self.weights is None else entries * self.weights

    def _norm(self, entries: Tensor) -> Tensor:
        return entries.norm(dim=1) if self.weights is None else self._weighted(entries.square()).sum(1).sqrt()


def join_distances(distances: Sequence[Distance]) -> WholeDistance | None:
    """Return one distance of S gradients, given that of all of them or one for each; None where there is no such distance."""
    whole = [one for one in distances if isinstance(one, WholeDistance)]
    if len(whole) < len(distances) or any((one.kind, one.shapes) != (whole[0].kind, whole[0].shapes) for one in whole):
        return None
    if len(whole) == 1:
        return whole[0]
    if any(one.weights is not None for one in whole):
        return None
    return replace(whole[0], goal=torch.stack([one.goal for one in whole]))


def flatten(update: Params) -> Tensor:
    """Concatenate all entries of an update into one vector (P,)."""
    return torch.cat([value.reshape(-1) for value in update.values()])


def flatten_lanes(update: Params) -> Tensor:
    """Concatenate the entries of each of S updates: name -> (S, ...) becomes (S, P)."""
    return torch.cat([value.reshape(value.shape[0], -1) for value in update.values()], 1)


def split_lanes(entries: Tensor, shapes: Mapping[str, torch.Size]) -> Params:
    """Undo `flatten_lanes`: split entries (S, P) into tensors (S, ...) by name; `shapes` are those of the tensors, without S."""
    parts = entries.split([shape.numel() for shape in shapes.values()], 1)
    return {name: part.view(len(entries), *shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}
