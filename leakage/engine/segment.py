"""Several consecutive layers, a segment, solved at once for the input of the lowest layer.

One layer alone may have too few equations; the layers below it add theirs. Known are the output z of the uppermost layer and
k = dL/dz. Let F be the composition of the segment's maps and activations. The input x fulfils F(x) = z, and d<k, F(x)>/dw = dL/dw for
every parameter w of the segment. Because of the activations these equations are not linear, so Gauss-Newton steps solve them. The paper's
"virtual constraints" (a layer with more outputs than inputs reaches a subspace only) are part of F.
Source: Zhu and Blaschko 2021, section 4 and appendices C and D, which count these equations; the way to solve them is ours.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from math import inf, prod
from typing import TypeVar

import torch
from torch import Tensor

from leakage.engine.chain_layer import ChainLayer
from leakage.engine.core import Params
from leakage.engine.equations import Solved, least_squares
from leakage.engine.forward_mode import quiet_forward_mode

STEPS = 40  # Gauss-Newton steps at most
HALVINGS = 12  # lengths that are tried for a step: the whole step, a half of it, a quarter, ...
STILL = 1e-3  # a step that reduces the residual by less than this fraction ends the search
EXACT = 1e-13  # a smaller relative residual is rounding error
SOLVED = 1e-9  # a search with a smaller relative residual has found the solution
PACES = ((1.0, 0.5, 14, 3), (1.0, 0.7, 26, 2), (0.3, 0.7, 20, 2))  # first softness, its factor, number of levels, steps at each level
LARGEST = 60_000_000  # entries of a Jacobian
LONGEST = 2e10  # entries of a Jacobian times its columns: ten seconds for one step
AT_ONCE = 2**24  # entries of a Jacobian that are computed at once

T = TypeVar("T")
Search = Generator[float, None, T]  # yields the norm of the residuals at every step; the caller may stop there


@dataclass(frozen=True)
class Segment:
    """Consecutive layers of a network, from the input's side, with the known output z of the last of them and dL/dz."""

    layers: tuple[ChainLayer, ...]
    z: Tensor
    """The output of the uppermost layer before its activation."""
    known: Tensor
    """Which entries of z are known, bool of the shape of z."""
    k: Tensor
    """dL/dz, of the shape of z."""

    def under(self, layer: ChainLayer) -> "Segment":
        """Return the segment extended by the layer below it."""
        return Segment((layer, *self.layers), self.z, self.known, self.k)

    def parameters(self, gradient: Params) -> list[str]:
        """List the segment's parameters that have a gradient other than zero."""
        return [name for layer in self.layers for name in layer.names if name in gradient and bool(gradient[name].any())]

    def equations(self, gradient: Params) -> int:
        """Count the equations: one for each known entry of z and for each entry of a parameter's gradient."""
        return int(self.known.sum()) + sum(gradient[name].numel() for name in self.parameters(gradient))

    def fits(self, gradient: Params) -> bool:
        """Return whether the Jacobian of the equations is small enough, by LARGEST and LONGEST."""
        unknowns = prod(self.layers[0].x)
        numbers = self.equations(gradient) * unknowns
        return numbers <= LARGEST and numbers * unknowns <= LONGEST

    @property
    def kinked(self) -> bool:
        """Whether an activation in the segment has a kink; the activation of the uppermost layer is outside the segment."""
        inside = [part for layer in self.layers for part in layer.body[:-1]]
        return any(layer.kink is not None for layer in (*self.layers[:-1], *inside))

    def through(self, weights: Params, x: Tensor, soft: float = 0.0) -> Tensor:
        """Compute F(x), of the shape of z, from the input x of the lowest layer; `soft` as in `ChainLayer.activate`."""
        for layer in self.layers[:-1]:
            x = layer.activate(layer.map(weights, x, soft), soft).view(layer.z)
        return self.layers[-1].map(weights, x, soft)

    def residuals(self, weights: Params, gradient: Params, soft: float = 0.0) -> Callable[[Tensor], Tensor]:
        """Return a function of x (n,) that computes the residuals of all equations.

        The equations are: the layers' output for x is z, and the parameters' gradients are those received. The residuals of each equation
        are divided by the norm of its right-hand side. `soft` as in `ChainLayer.activate`.
        """
        parameters = {name: weights[name] for name in self.parameters(gradient)}
        entries = self.known.flatten().nonzero().flatten()
        z = self.z.flatten()[entries]

        def of(x: Tensor) -> Tensor:
            if not parameters:  # layers of means alone
                return _relative(self.through(weights, x.view(self.layers[0].x)).flatten()[entries] - z, z)
            out, backward = torch.func.vjp(lambda w: self.through({**weights, **w}, x.view(self.layers[0].x), soft), parameters)[:2]
            (gradients,) = backward(self.k)
            parts = [(gradients[name] - gradient[name], gradient[name]) for name in parameters]
            return torch.cat([_relative(out.flatten()[entries] - z, z), *(_relative(*part) for part in parts)])

        return of

    def off(self, weights: Params, gradient: Params, x: Tensor) -> float:
        """Return the norm of the relative residuals of all equations (`residuals`) at the input x."""
        return float(self.residuals(weights, gradient)(x.flatten()).norm())

    def input_gradient(self, weights: Params, x: Tensor) -> Tensor:
        """Compute dL/dx at the input x of the lowest layer, of the shape of x."""
        backward = torch.func.vjp(lambda at: self.through(weights, at), x)[1]
        (input_gradient,) = backward(self.k)
        detached: Tensor = input_gradient.detach()
        return detached


@dataclass(frozen=True)
class Found:
    """The input of a segment of layers that Gauss-Newton steps found, and how well the equations determine it."""

    x: Tensor
    """The input that was found, (n,)."""
    rank: int
    """The rank of the Jacobian in the last step."""
    condition: float
    """The condition number of the Jacobian in the last step."""
    off: float
    """The norm of the residuals at x."""


def solve_segment(segment: Segment, weights: Params, gradient: Params, start: Tensor) -> Search[Solved]:
    """Solve the equations of a segment's output and gradients (`Segment.residuals`) for its input x by Gauss-Newton steps.

    The kinks of ReLU and LeakyReLU can stop a descent early. Where that happened, the search begins again at `start` with smoothed
    activations, and follows the solution while the activations become sharp again; PACES lists the schedules that are tried.

    Args:
        segment: the segment.
        weights: the model's weights, by parameter.
        gradient: the gradient that was received, by parameter.
        start: the initial x, of the shape of the lowest layer's input.

    Yields:
        The norm of the residuals, at every step.

    Returns:
        The solution, with the rank and the condition number of the Jacobian in the last step.
    """
    found = yield from _descend(segment.residuals(weights, gradient), start.flatten(), STEPS)
    for soft, pace, levels, steps in PACES if segment.kinked else ():
        if found.off <= SOLVED:
            break
        at = start.flatten()
        for level in range(levels):
            at = (yield from _descend(segment.residuals(weights, gradient, soft * pace**level), at, steps)).x
        other = yield from _descend(segment.residuals(weights, gradient), at, STEPS)
        found = other if other.off <= SOLVED else found  # an unsolved search may have gone anywhere where equations are too few
    return Solved(found.x.view(start.shape), segment.equations(gradient), start.numel(), found.rank, found.condition, found.off)


def _relative(residual: Tensor, right: Tensor) -> Tensor:
    return (residual / right.norm()).flatten() if len(right) else residual.flatten()


def _descend(residuals: Callable[[Tensor], Tensor], x: Tensor, steps: int) -> Search[Found]:
    """Take Gauss-Newton steps from x, each halved until it reduces the norm of the residuals."""
    r, rank, condition = residuals(x), 0, inf
    chunk = max(1, AT_ONCE // max(len(r), 1))
    for _ in range(steps):
        step, rank, condition = least_squares(_jacobian(residuals, x, chunk), -r)
        before = float(r.norm())
        yield before
        candidates = ((x + step / 2**half, residuals(x + step / 2**half)) for half in range(HALVINGS))
        nearer = next(((candidate, residual) for candidate, residual in candidates if float(residual.norm()) < before), None)
        if nearer is None:
            break
        x, r = nearer
        if not float(r.norm()) < (1 - STILL) * before or float(r.norm()) < EXACT:
            break
    return Found(x, rank, condition, float(r.norm()))


def _jacobian(residuals: Callable[[Tensor], Tensor], x: Tensor, chunk: int) -> Tensor:
    """Compute the Jacobian (equations, n) of the residuals at x (n,), `chunk` columns at once."""

    def column(direction: Tensor) -> Tensor:
        derivative: Tensor = torch.func.jvp(residuals, (x,), (direction,))[1]
        return derivative

    with quiet_forward_mode():
        columns: Tensor = torch.func.vmap(column, chunk_size=chunk)(torch.eye(len(x)).to(x))
    return columns.T
