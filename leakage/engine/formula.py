"""The gradient of a network of known layers, and its derivative by the pictures, by formula instead of by autograd.

An attack that matches gradients needs the derivative of D(g(x)) by x, where g = dL/dw is the gradient of a guess x. With v = dD/dg this
derivative is R dL/dx, the derivative of dL/dx along the direction v in the weights (Pearlmutter 1994). A forward pass, a backward pass, and
both again along v compute it (`derivatives`). Autograd differentiates its own backward pass, which takes 1.2 to 1.9 times as long.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from leakage.engine.core import Params
from leakage.engine.derivatives import Affine, StepCall, WeightedCall, WeightedLayer
from leakage.engine.pixel_map import PixelMap

ByAutograd = Callable[[Tensor, Tensor], Params]  # pictures (N, C, H, W), labels (N,) or probabilities (N, K) -> gradients (S, ...)


@dataclass(frozen=True)
class Node:
    """A step of the forward pass; it computes with the sum of the values that it reads.

    Args:
        inputs: the numbers of these values: 0 for the input of the first layer, n for the output of node n
        call: x -> the step's computation for x; None for a layer with weights
        layer: the parameters of such a layer
    """

    inputs: tuple[int, ...]
    call: Callable[[Tensor], StepCall] | None = None
    layer: WeightedLayer | None = None


@dataclass(frozen=True)
class Entrance:
    """The way of the pixels into the first layer: h = gain x[pixel] + offset."""

    gain: Tensor
    offset: Tensor
    pixel: Tensor | None
    """None where the pixels keep their order."""
    shape: tuple[int, ...]
    raw: bool

    @staticmethod
    def of(pixels: PixelMap, shape: tuple[int, ...], like: Tensor) -> "Entrance":
        """Return the map in the device and precision of `like`, given the shape of one picture's input to the first layer."""
        kept = torch.equal(pixels.pixel, torch.arange(len(pixels.pixel)))
        return Entrance(pixels.gain.to(like), pixels.offset.to(like), None if kept else pixels.pixel.to(like.device), shape, pixels.is_raw)

    def enter(self, x: Tensor) -> Tensor:
        """Return the first layer's input (N, ...) for pictures x (N, C, H, W)."""
        if self.pixel is None and self.raw:
            return x.reshape(len(x), *self.shape)
        flat = x.flatten(1) if self.pixel is None else x.flatten(1)[:, self.pixel]
        return torch.addcmul(self.offset, flat, self.gain).view(len(x), *self.shape)

    def leave(self, d: Tensor, picture: torch.Size) -> Tensor:
        """Return the derivative by the pictures (N, C, H, W), given that by the first layer's input."""
        flat = d.reshape(len(d), -1)
        if not self.raw:
            flat = flat * self.gain
        if self.pixel is not None:
            flat = flat.new_zeros((len(d), picture[1:].numel())).index_add_(1, self.pixel, flat)
        return flat.view(picture)


class Pass:
    """The computation for S guesses of B pictures, N = S B: the logits, then `gradients`, then `derivative`.

    It does not keep the gradients: a graph of autograd that they belong to would keep itself alive.
    """

    def __init__(self, formula: "Formula", folded: Sequence[Affine | None], lanes: int, x: Tensor, y: Tensor) -> None:
        self.formula, self.x_shape, self.count = formula, x.shape, len(x) // lanes
        values, self.calls = [formula.entrance.enter(x)], list[StepCall]()
        for node, at in zip(formula.nodes, folded, strict=True):
            entered = values[node.inputs[0]] if len(node.inputs) == 1 else values[node.inputs[0]] + values[node.inputs[1]]
            self.calls.append(WeightedCall(entered, node.layer, at, lanes) if node.layer and at else _called(node, entered))
            values.append(self.calls[-1].z)
        self.p = values[-1].softmax(1)
        self.y, self.total = y, y.sum(1, keepdim=True) if y.is_floating_point() else None  # of a picture's probabilities; None: 1

    def gradients(self) -> Params:
        """Return dL/dw of each guess by parameter, (S, ...), where L is the mean cross-entropy of its pictures."""
        formula, y = self.formula, self.y
        d = self.p.scatter_add(1, y.unsqueeze(1), -torch.ones_like(self.p[:, :1])) if self.total is None else self.p * self.total - y
        gradient = Params()

        def backward(number: int, d: Tensor) -> Tensor | None:
            call = self.calls[number - 1]
            if not isinstance(call, WeightedCall):
                return call.backward(d) if formula.needed[number] else None
            by_weights, back = call.backward_weights(d, needed=formula.needed[number])
            gradient.update(by_weights)
            return back

        self._walk(d / self.count, backward)
        return {name: gradient[name] for name in formula.names}

    def derivative(self, v: Params) -> tuple[Tensor, Tensor]:
        """Return the derivatives of sum <v, gradients> by the pictures (N, C, H, W) and by their probabilities y (N, K)."""
        formula, r = self.formula, list[Tensor | None]([None])
        for node, call in zip(formula.nodes, self.calls, strict=True):
            entered = r[node.inputs[0]]
            for number in node.inputs[1:]:
                entered = _added(entered, r[number])
            if isinstance(call, WeightedCall):
                r.append(call.along_weights(entered, v))
            else:
                r.append(None if entered is None else call.along(entered))
        logits = r[-1]
        assert logits is not None
        logits = logits - (self.p * logits).sum(1, keepdim=True)  # R log p
        rd = self.p * logits if self.total is None else self.p * logits * self.total

        def backward_along(number: int, rd: Tensor) -> Tensor:
            call = self.calls[number - 1]
            return call.backward(rd) if r[number] is None else call.backward_along(rd)

        x = self._walk(rd / self.count, backward_along)
        assert x is not None
        return formula.entrance.leave(x, self.x_shape), -logits / self.count

    def _walk(self, d: Tensor, back: Callable[[int, Tensor], Tensor | None]) -> Tensor | None:
        """Go back from the logits to the first layer's input, and return the derivative by it; None where `back` did not reach it.

        Args:
            d: the derivative by the logits.
            back: (number of a node, derivative by its output) -> derivative by its input; None: the steps before it are left out.
        """
        nodes = self.formula.nodes
        ds: list[Tensor | None] = [*[None] * len(nodes), d]
        for number in range(len(nodes), 0, -1):
            out = ds[number]
            entered = None if out is None else back(number, out)
            if entered is not None:
                for each in nodes[number - 1].inputs:
                    ds[each] = _added(ds[each], entered)
        return ds[0]


@dataclass(frozen=True, eq=False)
class Formula:
    """The gradient of a network, by formula.

    Args:
        entrance: how pixels enter the first layer
        nodes: the steps from the first layer to the logits
        names: the network's parameters, in their order
    """

    entrance: Entrance
    nodes: tuple[Node, ...]
    names: tuple[str, ...]

    @cached_property
    def needed(self) -> tuple[bool, ...]:
        """Whether the input of each node depends on weights, so that the gradient needs the derivative by it; the first entry is none's."""
        weighted, needed = [False], [False]
        for node in self.nodes:
            needed.append(any(weighted[number] for number in node.inputs))
            weighted.append(needed[-1] or node.layer is not None)
        return tuple(needed)

    def fold(self, weights: Params) -> list[Affine | None]:
        """Return the weights of each node; None for a node without weights."""
        with torch.no_grad():
            return [node.layer.fold(weights) if node.layer else None for node in self.nodes]

    def __call__(self, folded: Sequence[Affine | None], lanes: int, x: Tensor, y: Tensor) -> Pass:
        """Compute the logits of S guesses; the pictures of a guess are side by side. Call it, and what it returns, without autograd.

        Args:
            folded: the weights (`fold`).
            lanes: S.
            x: pictures (N, C, H, W) in [0, 1].
            y: labels (N,), or probabilities (N, K).
        """
        return Pass(self, folded, lanes, x, y)


def _called(node: Node, x: Tensor) -> StepCall:
    assert node.call
    return node.call(x)


def _added(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    """Return the sum of two derivatives, of which None is 0."""
    return second if first is None else first if second is None else first + second


class GradientByFormula(torch.autograd.Function):
    """The gradients of S guesses as a function of pictures and probabilities; a formula gives the derivative, autograd higher ones."""

    @staticmethod
    def forward(ctx: Any, start: Callable[[Tensor, Tensor], Pass], by_autograd: ByAutograd, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        """Return the gradients of pictures x (N, C, H, W); `start` is a Formula with its weights, and `by_autograd` computes the same."""
        ctx.passed, ctx.by_autograd = start(x, y), by_autograd
        ctx.save_for_backward(x, y)
        return tuple(ctx.passed.gradients().values())

    @staticmethod
    def backward(ctx: Any, *v: Tensor) -> tuple[Tensor | None, ...]:
        if not torch.is_grad_enabled():
            return None, None, *ctx.passed.derivative(dict(zip(ctx.passed.formula.names, v, strict=True)))
        x, y = ctx.saved_tensors  # the result is to be differentiated in turn
        wanted = [value for value in (x, y) if value.requires_grad]
        gradients = ctx.by_autograd(x, y)
        sent = [gradients[name] for name in ctx.passed.formula.names]
        found = iter(torch.autograd.grad(sent, wanted, v, create_graph=True, materialize_grads=True))
        return None, None, *(next(found) if value.requires_grad else None for value in (x, y))
