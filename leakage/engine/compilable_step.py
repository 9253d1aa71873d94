"""A step of a search as a function of tensors alone, so that a compiler can translate it once for all runs of one kind.

The formula, the shapes and the kind of distance are the program. The weights, the received update, the pictures and the labels stay
arguments: no number of a run becomes part of it.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from leakage.engine.derivatives import Affine, LinearCall
from leakage.engine.formula import Entrance, Formula, Node
from leakage.engine.whole_distance import WholeDistance

Program = Callable[[list[Tensor], Tensor, Tensor], tuple[Tensor, Tensor]]
"""(numbers, x (S, B, C, H, W), y (S, B) or (S, B, K)) -> distances (S,), and their derivatives by x."""
FILES = ("compilable_step", "derivatives", "formula", "layer_maps", "pixel_map", "whole_distance")  # what a program is made of


Part = TypeVar("Part", Entrance, Affine, WholeDistance)


class CompilableStep(nn.Module):
    """The distances of S guesses from an update, and their derivatives by the pictures.

    Args:
        formula: the gradient of the network
        folded: the weights (`Formula.fold`)
        distance: the distance from the update
        scaled: multiply pixels by their scale even where it is 1; a network then has one program with and without a normalization
    """

    def __init__(self, formula: Formula, folded: Sequence[Affine | None], distance: WholeDistance, *, scaled: bool = True) -> None:
        super().__init__()
        self.entrance, self.folded, self.distance = replace(formula.entrance, raw=formula.entrance.raw and not scaled), folded, distance
        self.formula = formula

    def forward(self, numbers: list[Tensor], x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Compute distances (S,) and derivatives, given the tensors of the parts in the order of `numbers`, x and y as in `Program`."""
        left = iter(numbers)
        formula = replace(self.formula, entrance=_with_tensors(self.entrance, left))
        folded = [at and _with_tensors(at, left) for at in self.folded]
        distance = _with_tensors(self.distance, left)
        passed = formula(folded, len(x), x.flatten(0, 1), y.flatten(0, 1))
        distances, v = distance.derivative(passed.gradients())
        return distances, passed.derivative(v)[0].view_as(x)

    @property
    def numbers(self) -> list[Tensor]:
        """The tensors of the parts: the map of the pixels, the weights, and the update."""
        return [getattr(part, name) for part in self._parts for name in _tensors(part)]

    @property
    def _parts(self) -> tuple[Entrance | Affine | WholeDistance, ...]:
        return self.entrance, *(at for at in self.folded if at), self.distance

    @property
    def is_compilable(self) -> bool:
        """Whether a compiler can follow it: autograd computes the transpose of a LinearCall."""
        return not any(isinstance(node.call, partial) and node.call.func is LinearCall for node in self.formula.nodes)

    def key(self, x: Tensor, y: Tensor) -> str:
        """Return 64 characters that are equal for steps with the same program, on processors and versions of torch of one kind."""
        program = (
            [_described(node) for node in self.formula.nodes],
            (self.formula.names, self.entrance.shape, self.entrance.raw),
            (self.distance.kind, [(name, tuple(shape)) for name, shape in self.distance.shapes.items()]),
            [_tensors(part) for part in self._parts],
            [(tuple(value.shape), tuple(value.stride()), str(value.dtype), value.device.type) for value in (*self.numbers, x, y)],
            (torch.__version__, torch.backends.cpu.get_cpu_capability(), _code()),
        )
        return hashlib.sha256(repr(program).encode()).hexdigest()


def _tensors(part: Entrance | Affine | WholeDistance) -> list[str]:
    """Return the names of the fields of a dataclass that hold a tensor."""
    return [field.name for field in fields(part) if isinstance(getattr(part, field.name), Tensor)]


def _with_tensors(part: Part, numbers: Iterator[Tensor]) -> Part:
    """Return a copy of a dataclass with the next numbers in place of its tensors."""
    changed: dict[str, Any] = {name: next(numbers) for name in _tensors(part)}
    return replace(part, **changed)


def _described(node: Node) -> tuple[object, ...]:
    """Return what a node computes, without its weights, in a form that `repr` writes in full."""
    if node.layer:
        layer = node.layer.layer
        return node.inputs, node.layer.names, layer.size, layer.stride, layer.padding
    assert isinstance(node.call, partial)
    given = {name: type(value).__name__ if isinstance(value, nn.Module) else value for name, value in node.call.keywords.items()}
    return node.inputs, node.call.func.__name__, given


@cache
def _code() -> str:
    """Return a fingerprint of the files that a program is made of."""
    folder = Path(__file__).parent
    return hashlib.sha256(b"".join((folder / f"{name}.py").read_bytes() for name in FILES)).hexdigest()
