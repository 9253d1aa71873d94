"""Several layers of a chain solved at once for what enters the lowest of them: where the equations of one are too few, those below help.

Known are the output z of the uppermost layer and k = dL/dz. Written F for all of its maps and activations, the input x fulfils F(x) = z,
and for every parameter w in it d<k, F(x)>/dw = dL/dw. Behind activations these are not linear: Gauss-Newton steps solve them. That the
outputs of a layer with more of them than inputs lie in a subspace ("virtual constraints") is part of F.
Source: Zhu and Blaschko 2021, section 4 and appendices C and D, where these equations are counted; solving them so is ours.
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

STEPS = 40  # of Gauss-Newton at most
HALVINGS = 12  # of a step that does not come nearer
STILL = 1e-3  # a step that comes nearer by less than this share ends the search
EXACT = 1e-13  # of the right side: what rounding leaves
SOLVED = 1e-9  # the search has found what it looks for
PACES = ((1.0, 0.5, 14, 3), (1.0, 0.7, 26, 2), (0.3, 0.7, 20, 2))  # softness at first, its factor, how often, steps at each
LARGEST = 60_000_000  # numbers in a Jacobian
LONGEST = 2e10  # its numbers times its columns: ten seconds for one step
AT_ONCE = 2**24  # numbers of it that are worked out together

T = TypeVar("T")
Search = Generator[float, None, T]  # yields, after every step, how far all equations are missed: whoever asks may stop there


@dataclass(frozen=True)
class Segment:
    """Layers of a chain, the lowest first, and what is known of the uppermost one's output.

    z, known, k   what goes into its activation, which entries of that are known, and dL/dz; of the shape of its z
    """

    layers: tuple[ChainLayer, ...]
    z: Tensor
    known: Tensor
    k: Tensor

    def under(self, layer: ChainLayer) -> "Segment":
        """The same with the layer below it."""
        return Segment((layer, *self.layers), self.z, self.known, self.k)

    def parameters(self, gradient: Params) -> list[str]:
        """Those whose gradient was sent."""
        return [name for layer in self.layers for name in layer.names if name in gradient and bool(gradient[name].any())]

    def equations(self, gradient: Params) -> int:
        return int(self.known.sum()) + sum(gradient[name].numel() for name in self.parameters(gradient))

    def fits(self, gradient: Params) -> bool:
        """Whether it is small enough."""
        unknowns = prod(self.layers[0].x)
        numbers = self.equations(gradient) * unknowns
        return numbers <= LARGEST and numbers * unknowns <= LONGEST

    @property
    def kinked(self) -> bool:
        """Whether an activation within it has a kink; the uppermost layer's lies above it."""
        inside = [part for layer in self.layers for part in layer.body[:-1]]
        return any(layer.kink is not None for layer in (*self.layers[:-1], *inside))

    def through(self, weights: Params, x: Tensor, soft: float = 0.0) -> Tensor:
        """F(x), of shape z; `soft` as for `ChainLayer.activate`."""
        for layer in self.layers[:-1]:
            x = layer.activate(layer.map(weights, x, soft), soft).view(layer.z)
        return self.layers[-1].map(weights, x, soft)

    def missed(self, weights: Params, gradient: Params, soft: float = 0.0) -> Callable[[Tensor], Tensor]:
        """x (n,) -> by how much every equation is missed, in shares of the right sides."""
        own = {name: weights[name] for name in self.parameters(gradient)}
        places = self.known.flatten().nonzero().flatten()
        z = self.z.flatten()[places]

        def gaps(x: Tensor) -> Tensor:
            if not own:  # means alone
                return _share(self.through(weights, x.view(self.layers[0].x)).flatten()[places] - z, z)
            out, pull = torch.func.vjp(lambda held: self.through({**weights, **held}, x.view(self.layers[0].x), soft), own)[:2]
            (gradients,) = pull(self.k)
            parts = [(gradients[name] - gradient[name], gradient[name]) for name in own]
            return torch.cat([_share(out.flatten()[places] - z, z), *(_share(*part) for part in parts)])

        return gaps

    def off(self, weights: Params, gradient: Params, x: Tensor) -> float:
        """How far all of them together are missed."""
        return float(self.missed(weights, gradient)(x.flatten()).norm())

    def input_gradient(self, weights: Params, x: Tensor) -> Tensor:
        """dL/dx."""
        pull = torch.func.vjp(lambda at: self.through(weights, at), x)[1]
        (input_gradient,) = pull(self.k)
        found: Tensor = input_gradient.detach()
        return found


@dataclass(frozen=True)
class Found:
    """Where a search ended: x (n,), rank and condition of the Jacobian there, and how far all equations are missed."""

    x: Tensor
    rank: int
    condition: float
    off: float


def solve_segment(segment: Segment, weights: Params, gradient: Params, start: Tensor) -> Search[Solved]:
    """x (of the lowest layer's shape) from all equations of a segment, searched from `start`; rank: that of their Jacobian at the end.

    At a kink (of ReLU, LeakyReLU) a search that must come nearer is caught. Where it was, it begins anew with every kink rounded, and
    follows the solution while they are sharpened again; several times, at another pace.
    """
    found = yield from _descend(segment.missed(weights, gradient), start.flatten(), STEPS)
    for soft, pace, levels, steps in PACES if segment.kinked else ():
        if found.off <= SOLVED:
            break
        at = start.flatten()
        for level in range(levels):
            at = (yield from _descend(segment.missed(weights, gradient, soft * pace**level), at, steps)).x
        other = yield from _descend(segment.missed(weights, gradient), at, STEPS)
        found = other if other.off <= SOLVED else found  # else it may have gone anywhere where equations are too few
    return Solved(found.x.view(start.shape), segment.equations(gradient), start.numel(), found.rank, found.condition, found.off)


def _share(gap: Tensor, of: Tensor) -> Tensor:
    return (gap / of.norm()).flatten() if len(of) else gap.flatten()


def _descend(missed: Callable[[Tensor], Tensor], x: Tensor, steps: int) -> Search[Found]:
    """Gauss-Newton steps from x, halved until they come nearer."""
    r, rank, condition = missed(x), 0, inf
    chunk = max(1, AT_ONCE // max(len(r), 1))
    for _ in range(steps):
        step, rank, condition = least_squares(_jacobian(missed, x, chunk), -r)
        before = float(r.norm())
        yield before
        tries = ((x + step / 2**half, missed(x + step / 2**half)) for half in range(HALVINGS))
        nearer = next(((tried, gap) for tried, gap in tries if float(gap.norm()) < before), None)
        if nearer is None:
            break
        x, r = nearer
        if not float(r.norm()) < (1 - STILL) * before or float(r.norm()) < EXACT:
            break
    return Found(x, rank, condition, float(r.norm()))


def _jacobian(missed: Callable[[Tensor], Tensor], x: Tensor, chunk: int) -> Tensor:
    """(equations, n), so many columns at once."""

    def column(way: Tensor) -> Tensor:
        moved: Tensor = torch.func.jvp(missed, (x,), (way,))[1]
        return moved

    with quiet_forward_mode():
        columns: Tensor = torch.func.vmap(column, chunk_size=chunk)(torch.eye(len(x)).to(x))
    return columns.T
