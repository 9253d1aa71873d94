"""R-GAP's recursion from the outputs to the picture: each layer's input from its output, for every explanation of the gradient."""

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
ALIKE = 10.0  # an explanation is kept if its residual is at most so many times the smallest,
EXACT = 1e-6  # ... or at most this
SURE = 1e-9  # below this residual an explanation counts as the right one, and the others are not tried


@dataclass(frozen=True)
class RecursionStep:
    """The state of R-GAP's recursion at one layer: an explanation of the last layer's gradient, followed back to the input x of `layer`.

    last_layer      the explanation of the last layer's gradient, from which the recursion began
    input_gradient  dL/dx
    solved          the solution of the equations of `layer`; None for a linear layer
    residual        the largest relative residual of the equations of all layers so far
    short           the first layer with too few equations for its input, unless the layers below it made up for that; "" if there is none
    open            the layers that are solved together with the next layer, because their equations were too few; None if there are none
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
        """Whether every layer had enough equations; too few equations have a solution for any gradient."""
        return not self.open and not self.short

    @property
    def title(self) -> str:
        """The name of the explanation for the page."""
        return f"label {self.last_layer.label}" + (f", mu = {self.last_layer.mu:.3g}" if self.last_layer.mu is not None else "")

    @property
    def note(self) -> dict[str, str | int | float]:
        """A note for the page: the layer's name, and how its equations were solved."""
        details: dict[str, str | int | float] = {"layer": self.layer.name}
        return details | ({name: value for name, value in vars(self.solved).items() if name != "x"} if self.solved else {})


@dataclass(frozen=True)
class Recursion:
    """The recursion from layer to layer, for given weights and a received gradient, in float64.

    system  one of SYSTEMS: how the equations of each layer are solved
    """

    weights: Params
    gradient: Params
    system: str

    def next_steps(self, steps: Sequence[RecursionStep], layer: ChainLayer) -> Search[list[RecursionStep]]:
        """Compute the input of `layer` for every explanation in `steps`; return the explanations with residuals close to the smallest.

        With several outputs the likeliest explanation comes first; if its equations hold, the others are not tried.

        Raises TooLargeError if the layer's equations do not fit into memory.
        """
        found = list[RecursionStep]()
        for step in steps:
            found.append((yield from self.next_step(step, layer)))
            done = found[-1]
            if done.last_layer.mu is None and done.solved and done.tested and done.residual <= SURE:
                break
        return keep_consistent(found)

    def next_step(self, step: RecursionStep, layer: ChainLayer) -> Search[RecursionStep]:
        """Compute the input of `layer` from its output, which is the input `step.x` of the layer above; a generator, as a solver yields.

        Raises TooLargeError if the layer's equations do not fit into memory.
        """
        out = step.x.reshape(layer.z)
        z = layer.inverse(out)
        k = step.input_gradient.reshape(layer.z) * layer.derivative(z)
        finite = bool((k.sum() + z.sum()).isfinite())
        if not finite or not bool(k.any()):  # noise; or a dead ReLU or a wrong label lets no gradient through
            return replace(step, layer=layer, residual=math.inf)
        single = Segment((layer,), z, layer.known(z), k)
        solved, x, input_gradient = yield from self._solve_alone(single)
        residual = max(self._bias_residual(layer, k), solved.residual if solved else self._outer_residual(layer, k, x))
        short = solved is not None and solved.rank < solved.unknowns
        extended = replace(step, layer=layer, x=x, input_gradient=input_gradient, solved=solved)
        if self.system == TOGETHER and (short or step.open):
            return (yield from self._solve_with_layers_above(extended, single))
        name = step.short or (layer.name if short else "")
        return replace(extended, residual=max(step.residual, residual), short=name)

    def _solve_alone(self, single: Segment) -> Search[tuple[Solved | None, Tensor, Tensor]]:
        """Solve a layer by its equations alone; return how it was solved, its input x and dL/dx.

        If the equations have several solutions, x is the shortest.
        """
        (layer,), z, k = single.layers, single.z, single.k
        if layer.body:
            solved = yield from self._block(single)
            return solved, solved.x, single.input_gradient(self.weights, solved.x)
        input_gradient = layer.input_gradient(self.weights, k)
        if layer.is_mean:
            x = layer.shortest(z)
            return Solved(x, z.numel(), x.numel(), z.numel(), 1.0, 0.0), x, input_gradient
        if not layer.is_convolution:
            x = (k @ self.gradient[f"{layer.name}.weight"] / k.square().sum()).view(layer.x)
            return None, x, input_gradient
        solved = self._solve([self._equations(layer, k, z, single.known)], layer)
        return solved, solved.x, input_gradient

    def _outer_residual(self, layer: ChainLayer, k: Tensor, x: Tensor) -> float:
        """Compute the relative distance between the received gradient of a linear layer and k x^T, for its input x and k = dL/dz."""
        g = self.gradient[f"{layer.name}.weight"]
        return float((torch.outer(k, x.flatten()) - g).norm() / g.norm())

    def _equations(self, layer: ChainLayer, k: Tensor, z: Tensor, known: Tensor) -> ConvolutionEquations:
        """Return the equations of a convolution for its input, with the norm (such as BatchNorm) that follows folded into it.

        Args:
            layer: the convolution.
            k: dL/dz, in the shape of the output z.
            z: the output, after the norm and before the activation.
            known: where z is known, as bool: an output that ReLU set to 0 is not.
        """
        scale, bias = layer.scale(self.weights), layer.bias(self.weights)
        z = z if bias is None else z - bias.view(-1, 1, 1)
        inner = k if scale is None else k * scale.view(-1, 1, 1)
        g, w = self.gradient[f"{layer.name}.weight"], layer.weight(self.weights)
        return ConvolutionEquations(w, z, known, inner, g, layer.stride, layer.padding, self._sums(layer, k))

    def _sums(self, layer: ChainLayer, k: Tensor) -> Sums | None:
        """Return the equations that the gradient of a norm's scale gamma gives for the convolution's input x.

        dL/dgamma = sum over positions of k (w * x + bias - mean) / deviation, with k = dL/dz for the output z of the norm. None without a
        norm, or if dL/dgamma was not sent.
        """
        norm, name = layer.norm, f"{layer.norm.name}.weight" if layer.norm else ""
        if norm is None or not bool(self.gradient[name].any()):
            return None
        factors = k / norm.deviation.view(-1, 1, 1)
        shift = norm.mean - self.weights.get(f"{layer.name}.bias", 0.0)
        return Sums(self.weights[f"{layer.name}.weight"], factors, self.gradient[name] + shift * factors.sum((1, 2)))

    def _solve(self, systems: Sequence[ConvolutionEquations], layer: ChainLayer) -> Solved:
        """Solve the equations of a convolution `layer`, or of a convolution and a parallel skip, for the common input.

        Raises TooLargeError, with the layer's name, if the equations do not fit into memory.
        """
        sides, single = (layer.x[1], layer.x[2]), systems[0]
        try:
            if self.system != PUBLISHED or len(systems) > 1 or single.k is None or single.g is None or not bool(single.known.any()):
                return solve_together(systems, sides)
            return solve_as_published(
                single.k, single.g, single.w, single.z, single.known, stride=single.stride, padding=single.padding, sides=sides
            )
        except TooLargeError as error:
            raise TooLargeError(layer.name) from error

    def _block(self, single: Segment) -> Search[Solved]:
        """Solve for the input x_1 of a residual block f = W_n x_n + skip(x_1), x_n = a(W_(n-1) x_(n-1)) for the activation a, and so on.

        The block's output does not determine x_n, so x_n follows from the gradient of W_n alone. The layers below are solved as in a chain.
        x_1 follows from the equations of W_1 and of the skip, which outputs f - W_n x_n. If the gradient of W_n does not determine x_n, all
        equations are solved at once.
        """
        (layer,), k = single.layers, single.k
        first, last, left = layer.body[0], layer.body[-1], 0
        solved = self._solve([self._equations(last, k, k.new_zeros(last.z), k.new_zeros(last.z).bool())], last)
        input_gradient, skip_output = last.input_gradient(self.weights, k), single.z - last.map(self.weights, solved.x)
        for part in layer.body[-2::-1]:
            left += solved.unknowns - solved.rank
            z = part.inverse(solved.x)
            inner = input_gradient * part.derivative(z)
            systems = [self._equations(part, inner, z, part.known(z))]
            if part is first and layer.skip:
                systems.append(self._equations(layer.skip, k, skip_output, single.known))
            elif part is first:
                systems.append(ConvolutionEquations(_identity(len(skip_output)), skip_output, single.known))
            solved, input_gradient = self._solve(systems, part), part.input_gradient(self.weights, inner)
        if left and single.fits(self.gradient):
            return (yield from solve_segment(single, self.weights, self.gradient, solved.x))
        rank = max(min(solved.rank, solved.unknowns - left), 0)
        residual = single.off(self.weights, self.gradient, solved.x)
        return replace(solved, equations=single.equations(self.gradient), rank=rank, residual=residual)

    def _solve_with_layers_above(self, step: RecursionStep, single: Segment) -> Search[RecursionStep]:
        """Solve a layer with too few equations together with the layers above that wait for more equations (`step.open`).

        Return the step with the new input; its layers stay open until all equations together suffice.
        """
        segment = step.open.under(step.layer) if step.open else single
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

    def _bias_residual(self, layer: ChainLayer, k: Tensor) -> float:
        """Compute the relative distance between the received gradient of a norm's shift beta and the sum of k = dL/dz over positions.

        0 without a norm, or if the gradient of beta was not sent.
        """
        sent = self.gradient.get(f"{layer.norm.name}.bias") if layer.norm else None
        return float((k.sum((1, 2)) - sent).norm() / sent.norm()) if sent is not None and bool(sent.any()) else 0.0


def keep_consistent(steps: list[RecursionStep]) -> list[RecursionStep]:
    """Return the explanations with a residual close to the smallest, sorted by residual; a wrong label soon leaves a large residual."""
    steps = sorted((step for step in steps if math.isfinite(step.residual)), key=lambda step: step.residual)
    if any(step.tested and step.residual <= EXACT for step in steps):  # open explanations have not been tested yet
        steps = [step for step in steps if not step.open]
    return [step for step in steps if step.residual <= max(ALIKE * steps[0].residual, EXACT)]


def _identity(channels: int) -> Tensor:
    """Return an identity skip connection as the filters of a 1 x 1 convolution, (C, C, 1, 1)."""
    return torch.eye(channels, dtype=torch.float64).view(channels, channels, 1, 1)
