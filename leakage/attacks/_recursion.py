"""R-GAP's recursion from the outputs to the picture: the input of a layer from its output, for every explanation of the gradient."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from leakage.attacks._logit import LastLayer
from leakage.engine.chain_layer import ChainLayer
from leakage.engine.core import Params
from leakage.engine.equations import ConvolutionEquations, Solved, Sums, TooLargeError, solve_as_published, solve_together
from leakage.engine.segment import Search, Segment, solve_segment

BALANCED, PUBLISHED, TOGETHER = SYSTEMS = ("balanced", "as published", "together")
ALIKE = 10.0  # an explanation is kept while its equations hold at most so many times worse than the best one's
EXACT = 1e-6  # ... or as well as this
SURE = 1e-9  # ... and by this it is the one


@dataclass(frozen=True)
class RecursionStep:
    """One explanation of the gradient, worked out down to the input x of one layer.

    input_gradient  dL/dx
    solved          how that layer's equations were solved; None for a linear one
    residual        the largest of all layers so far
    short           the first layer whose equations did not determine its input, unless layers below it made up for that
    open            the layers that are solved together with the next one, since their own equations were too few
    """

    last_layer: LastLayer
    layer: ChainLayer
    x: Tensor
    input_gradient: Tensor
    solved: Solved | None = None
    residual: float = 0.0
    short: str = ""
    open: Segment | None = None

    @property
    def tested(self) -> bool:
        """Whether every layer had equations enough: where they are too few they hold of anything."""
        return not self.open and not self.short

    @property
    def words(self) -> str:
        """Its name for the page."""
        return f"label {self.last_layer.label}" + (f", mu = {self.last_layer.mu:.3g}" if self.last_layer.mu is not None else "")

    @property
    def note(self) -> dict[str, str | int | float]:
        """The layer in numbers."""
        told: dict[str, str | int | float] = {"layer": self.layer.name}
        return told | ({name: value for name, value in vars(self.solved).items() if name != "x"} if self.solved else {})


@dataclass(frozen=True)
class Recursion:
    """The recursion: the weights and the gradient that was sent, in float64, and how each layer is solved."""

    weights: Params
    gradient: Params
    system: str

    def next_steps(self, steps: Sequence[RecursionStep], layer: ChainLayer) -> Search[list[RecursionStep]]:
        """Take every explanation one layer down, and drop those that contradict themselves. Raises TooLargeError.

        Of those that the loss of several outputs allows the likelier comes first: where its equations hold, the others are not tried.
        """
        found = list[RecursionStep]()
        for step in steps:
            found.append((yield from self.next_step(step, layer)))
            done = found[-1]
            if done.last_layer.mu is None and done.solved and done.tested and done.residual <= SURE:
                break
        return agreeing(found)

    def next_step(self, step: RecursionStep, layer: ChainLayer) -> Search[RecursionStep]:
        """Go one layer down: find the input of `layer`, whose output is the input found last. Raises TooLargeError."""
        out = step.x.reshape(layer.z)
        z = layer.inverse(out)
        k = step.input_gradient.reshape(layer.z) * layer.derivative(z)
        finite = bool((k.sum() + z.sum()).isfinite())
        if not finite or not bool(k.any()):  # noise; or nothing passes: a ReLU lets nothing through, or a wrong label says so
            return replace(step, layer=layer, residual=math.inf)
        one = Segment((layer,), z, layer.known(z), k)
        solved, x, input_gradient = yield from self._alone(one)
        off = max(self._off(layer, k), solved.residual if solved else self._outer(layer, k, x))
        short = solved is not None and solved.rank < solved.unknowns
        if self.system == TOGETHER and (short or step.open):
            return (yield from self._together(replace(step, layer=layer, x=x, input_gradient=input_gradient, solved=solved), one))
        name = step.short or (layer.name if short else "")
        return replace(step, layer=layer, x=x, input_gradient=input_gradient, solved=solved, residual=max(step.residual, off), short=name)

    def _alone(self, one: Segment) -> Search[tuple[Solved | None, Tensor, Tensor]]:
        """How a layer is solved by its own equations, its input x and dL/dx; of several solutions the shortest."""
        (layer,), z, k = one.layers, one.z, one.k
        if layer.body:
            solved = yield from self._block(one)
            return solved, solved.x, one.input_gradient(self.weights, solved.x)
        input_gradient = layer.input_gradient(self.weights, k)
        if layer.is_mean:
            x = layer.shortest(z)
            return Solved(x, z.numel(), x.numel(), z.numel(), 1.0, 0.0), x, input_gradient
        if not layer.is_convolution:
            x = (k @ self.gradient[f"{layer.name}.weight"] / k.square().sum()).view(layer.x)
            return None, x, input_gradient
        solved = self._solve([self._equations(layer, k, z, one.known)], layer)
        return solved, solved.x, input_gradient

    def _outer(self, layer: ChainLayer, k: Tensor, x: Tensor) -> float:
        """Of a linear layer: by which share its gradient is not k x^T."""
        g = self.gradient[f"{layer.name}.weight"]
        return float((torch.outer(k, x.flatten()) - g).norm() / g.norm())

    def _equations(self, layer: ChainLayer, k: Tensor, z: Tensor, known: Tensor) -> ConvolutionEquations:
        """Return the equations of a convolution for its input, with its norm folded into it."""
        scale, bias = layer.scale(self.weights), layer.bias(self.weights)
        z = z if bias is None else z - bias.view(-1, 1, 1)
        inner = k if scale is None else k * scale.view(-1, 1, 1)
        g, w = self.gradient[f"{layer.name}.weight"], layer.weight(self.weights)
        return ConvolutionEquations(w, z, known, inner, g, layer.stride, layer.padding, self._sums(layer, k))

    def _sums(self, layer: ChainLayer, k: Tensor) -> Sums | None:
        """dL/dgamma = sum over positions of k (w * x + bias - mean) / deviation, where it was sent."""
        norm, name = layer.norm, f"{layer.norm.name}.weight" if layer.norm else ""
        if norm is None or not bool(self.gradient[name].any()):
            return None
        factors = k / norm.deviation.view(-1, 1, 1)
        off = norm.mean - self.weights.get(f"{layer.name}.bias", 0.0)
        return Sums(self.weights[f"{layer.name}.weight"], factors, self.gradient[name] + off * factors.sum((1, 2)))

    def _solve(self, systems: Sequence[ConvolutionEquations], layer: ChainLayer) -> Solved:
        """The input of a convolution, and of a skip beside it."""
        sides, one = (layer.x[1], layer.x[2]), systems[0]
        try:
            if self.system != PUBLISHED or len(systems) > 1 or one.k is None or one.g is None or not bool(one.known.any()):
                return solve_together(systems, sides)
            return solve_as_published(one.k, one.g, one.w, one.z, one.known, stride=one.stride, padding=one.padding, sides=sides)
        except TooLargeError as error:
            raise TooLargeError(layer.name) from error

    def _block(self, one: Segment) -> Search[Solved]:
        """What enters a residual block f = W_n x_n + skip(x_1), x_n = a(W_(n-1) x_(n-1)) for the activation a, and so on.

        Its output says nothing of x_n alone, so x_n follows from the gradient of W_n; the layers below as in a chain; x_1 from all that
        W_1 and the skip say, whose output is f - W_n x_n. Where the gradient of W_n is not enough, all equations are solved at once.
        """
        (layer,), k = one.layers, one.k
        first, last, left = layer.body[0], layer.body[-1], 0
        solved = self._solve([self._equations(last, k, k.new_zeros(last.z), k.new_zeros(last.z).bool())], last)
        input_gradient, over = last.input_gradient(self.weights, k), one.z - last.map(self.weights, solved.x)
        for part in layer.body[-2::-1]:
            left += solved.unknowns - solved.rank
            z = part.inverse(solved.x)
            inner = input_gradient * part.derivative(z)
            systems = [self._equations(part, inner, z, part.known(z))]
            if part is first:
                systems.append(
                    self._equations(layer.skip, k, over, one.known)
                    if layer.skip
                    else ConvolutionEquations(_identity(len(over)), over, one.known)
                )
            solved, input_gradient = self._solve(systems, part), part.input_gradient(self.weights, inner)
        if left and one.fits(self.gradient):
            return (yield from solve_segment(one, self.weights, self.gradient, solved.x))
        rank = max(min(solved.rank, solved.unknowns - left), 0)
        off = one.off(self.weights, self.gradient, solved.x)
        return replace(solved, equations=one.equations(self.gradient), rank=rank, residual=off)

    def _together(self, step: RecursionStep, one: Segment) -> Search[RecursionStep]:
        """A layer whose own equations are too few is solved with those below it, one more at a time, until they suffice."""
        segment = step.open.under(step.layer) if step.open else one
        if len(segment.layers) == 1:
            return replace(step, open=segment)
        if not segment.fits(self.gradient):
            return replace(step, open=None, short=step.short or segment.layers[-1].name)
        solved = yield from solve_segment(segment, self.weights, self.gradient, step.x)
        if not bool(solved.x.isfinite().all()):
            return replace(step, residual=math.inf)
        found = replace(step, x=solved.x, input_gradient=segment.input_gradient(self.weights, solved.x), solved=solved)
        if solved.rank == solved.unknowns and solved.residual <= EXACT:
            return replace(found, residual=max(step.residual, solved.residual), open=None)
        return replace(found, open=segment)

    def _off(self, layer: ChainLayer, k: Tensor) -> float:
        """By which share dL/dbeta, the sum of k, is missed; 0 without a norm, or where it was not sent."""
        sent = self.gradient.get(f"{layer.norm.name}.bias") if layer.norm else None
        return float((k.sum((1, 2)) - sent).norm() / sent.norm()) if sent is not None and bool(sent.any()) else 0.0


def agreeing(steps: list[RecursionStep]) -> list[RecursionStep]:
    """Those whose equations hold about as well as the best one's, which comes first: a wrong label soon contradicts itself."""
    steps = sorted((step for step in steps if math.isfinite(step.residual)), key=lambda step: step.residual)
    if any(step.tested and step.residual <= EXACT for step in steps):  # one that is open has not been held against its equations
        steps = [step for step in steps if not step.open]
    return [step for step in steps if step.residual <= max(ALIKE * steps[0].residual, EXACT)]


def _identity(channels: int) -> Tensor:
    """The filters of a skip without weights: (C, C, 1, 1)."""
    return torch.eye(channels, dtype=torch.float64).view(channels, channels, 1, 1)
