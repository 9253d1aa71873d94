"""Where a model's gradient is computed by formula, and where autograd computes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from leakage.engine.capabilities import capabilities_of
from leakage.engine.compilable_step import CompilableStep
from leakage.engine.computation import probes
from leakage.engine.core import Params, generator
from leakage.engine.derivatives import Affine
from leakage.engine.formula import ByAutograd, Formula, GradientByFormula
from leakage.engine.formula_reader import NoFormulaError, formula_of
from leakage.engine.formula_replay import DistanceAndDerivative, GradientsAndVjp, ReadyStep
from leakage.engine.half_precision import computes_in_half
from leakage.engine.losses import client_loss
from leakage.engine.normalise import InputNormalisation
from leakage.engine.recorded_step import record
from leakage.engine.stateless import StatelessModel
from leakage.engine.vjp import vjp
from leakage.engine.whole_distance import WholeDistance

AGREEMENT = 1e-3  # largest relative error of the formula's derivatives on a random picture, in float32
HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


class ModelFormula:
    """The gradient of a model by formula, for a client that asks for it many times.

    The formula is read when it is first asked for, and compared with autograd on a random picture.

    Args:
        model: the model
        allowed: False if autograd shall compute every gradient
    """

    def __init__(self, model: nn.Module, *, allowed: bool = True) -> None:
        self.model, self._parameters = model, Params(model.named_parameters())
        capabilities = capabilities_of(model)
        self._allowed = allowed and capabilities.formula and not capabilities.fixed and client_loss(model) == "cross-entropy"
        self._programs = capabilities.programs
        self._layers = tuple(model.modules())
        self._formulas: dict[tuple[object, ...], Formula | None] = {}  # by the shape of a picture and the modes of the layers
        self._folded: list[Affine | None] = []
        self._folded_at: tuple[object, ...] = ()  # the formula and the weights
        self._versions: tuple[int, ...] = ()  # of the weights; torch counts their changes in place

    def gradient(self, weights: Params, x: Tensor, y: Tensor, by_autograd: ByAutograd) -> Params:
        """Return the gradient of a batch, differentiable in x and y.

        Args:
            weights: by parameter.
            x: pictures (B, C, H, W).
            y: labels (B,), or probabilities (B, K).
            by_autograd: (x, y) -> the gradient, where no formula gives it, and for derivatives above the first.
        """
        formula = self.formula_at(weights, x, y)
        if formula is None:
            return by_autograd(x, y)

        def single(x: Tensor, y: Tensor) -> Params:
            return {name: value.unsqueeze(0) for name, value in by_autograd(x, y).items()}

        gradient = GradientByFormula.apply(partial(formula, self._fold(formula, weights), 1), single, x, y)
        return {name: value[0] for name, value in zip(formula.names, gradient, strict=True)}

    def gradients(self, weights: Params, x: Tensor, y: Tensor, by_autograd: ByAutograd) -> Params:
        """Return the gradients of S guesses, each tensor (S, ...), differentiable in x and y.

        Args:
            weights: by parameter, (S, ...).
            x: pictures (B, S, C, H, W).
            y: labels (B, S), or probabilities (B, S, K).
            by_autograd: (x, y) -> the gradients, where no formula gives them, and for derivatives above the first.
        """
        formula, shared = self._formula_for(x[:, 0]) if needs_graph(x, y) else None, _shared(weights)
        if formula is None or shared is None or len(weights) != len(self._parameters):
            return by_autograd(x, y)
        guesses = x.shape[1]

        def of_pictures(*values: Tensor) -> Params:
            return by_autograd(*(value.unflatten(0, (guesses, -1)).transpose(0, 1) for value in values))

        pictures, labels = x.transpose(0, 1).flatten(0, 1), y.transpose(0, 1).flatten(0, 1)
        gradient = GradientByFormula.apply(partial(formula, self._fold(formula, shared), guesses), of_pictures, pictures, labels)
        return dict(zip(formula.names, gradient, strict=True))

    def vjp(self, weights: Params, x: Tensor, y: Tensor) -> GradientsAndVjp | None:
        """Return the gradients of S guesses and their vector-Jacobian product; None where autograd has to compute it.

        Args:
            weights: by parameter.
            x: pictures (S, B, C, H, W).
            y: labels (S, B), or probabilities (S, B, K).
        """
        formula = self._formula_for(x[0])
        if formula is None or not self._are_constant(weights):
            return None
        with torch.no_grad():
            passed = formula(self._fold(formula, weights), len(x), x.flatten(0, 1), y.flatten(0, 1))
            gradients = passed.gradients()

        def vjp(v: Params) -> Tensor:
            with torch.no_grad():
                return passed.derivative(v)[0].view_as(x)

        return gradients, vjp

    def ready(self, weights: Params, distance: WholeDistance, x: Tensor, y: Tensor) -> ReadyStep | None:
        """Return a step for guesses of the shape of x: a compiled program if there is one, or a list of calls if they can be recorded.

        Args:
            weights: by parameter; they must not change while the step is used.
            distance: the distance of gradients from the received update.
            x: pictures (S, B, C, H, W), for which a program and the formula are compared.
            y: labels (S, B), or probabilities (S, B, K).
        """
        formula = self._formula_for(x[0])
        if formula is None or not self._are_constant(weights):
            return None
        folded = self._fold(formula, weights)
        if program := self._compiled(CompilableStep(formula, folded, distance.for_each(len(x))), x.contiguous(), y.contiguous()):
            return ReadyStep(program, is_compiled=True)
        calls = record(CompilableStep(formula, folded, distance, scaled=False), x, y)
        return ReadyStep(calls, is_compiled=False) if calls else None

    def _compiled(self, step: CompilableStep, x: Tensor, y: Tensor) -> DistanceAndDerivative | None:
        """Return a compiled program of the step, if there is one that computes the same for the pictures x."""
        program = self._programs(step, x, y) if step.is_compilable else None
        if program is None:
            return None
        numbers = step.numbers
        with torch.no_grad():
            pairs = zip(program(numbers, x, y), step(numbers, x, y), strict=True)
            same = all(_agree(found, wanted) for found, wanted in pairs)
        return (lambda x: program(numbers, x.contiguous(), y)) if same else None

    def formula_at(self, weights: Params, x: Tensor, y: Tensor) -> Formula | None:
        """Return the formula for a gradient to be differentiated by pictures x (B, C, H, W) or labels y; None where there is none."""
        return self._formula_for(x) if needs_graph(x, y) and self._are_constant(weights) else None

    def _are_constant(self, weights: Params) -> bool:
        """Return whether these are all parameters, none of them the result of a computation that is to be differentiated."""
        return len(weights) == len(self._parameters) and all(value.grad_fn is None for value in weights.values())

    def _formula_for(self, x: Tensor) -> Formula | None:
        """Return the formula for pictures x (B, C, H, W); None where autograd has to compute."""
        return self.of((x.shape[1], x.shape[2], x.shape[3])) if len(x) else None

    def of(self, shape: tuple[int, int, int]) -> Formula | None:
        """Return the formula for pictures (C, H, W); None where there is none, where somebody follows the computation, or in 16 bits."""
        if not self._allowed or _is_watched(self._layers) or computes_in_half(next(iter(self._parameters.values())).device):
            return None
        key = (shape, *(layer.training for layer in self._layers))
        if key not in self._formulas:
            self._formulas[key] = self._read(shape)
        return self._formulas[key]

    def _read(self, shape: tuple[int, int, int]) -> Formula | None:
        try:
            formula = formula_of(self.model, shape)
        except NoFormulaError:
            return None
        return formula if self._agrees(formula, shape) else None

    def _agrees(self, formula: Formula, shape: tuple[int, int, int]) -> bool:
        """Return whether autograd finds the same gradient, and the same derivative of it along a random direction, for a random picture."""
        x = probes(shape, next(iter(self._parameters.values())))[:1].requires_grad_()
        with torch.enable_grad(), StatelessModel(self.model).computing():
            logits = self.model(x)
            y = logits.detach().argmin(1)
            expected = torch.autograd.grad(nn.functional.cross_entropy(logits, y), list(self._parameters.values()), create_graph=True)
            v = [torch.randn(value.shape, generator=generator(0, name)).to(value) for name, value in self._parameters.items()]
            derivative = vjp(expected, [x], v)[0]
        with torch.no_grad():
            passed = formula(formula.fold(self._parameters), 1, x, y)
            gradient = passed.gradients()
            along, _ = passed.derivative({name: direction.unsqueeze(0) for name, direction in zip(self._parameters, v, strict=True)})
        pairs = [(along, derivative), *((gradient[name][0], g.detach()) for name, g in zip(self._parameters, expected, strict=True))]
        return all(_agree(found, wanted) for found, wanted in pairs)

    def _fold(self, formula: Formula, weights: Params) -> Sequence[Affine | None]:
        """Return the weights of the formula's nodes; those of the last call again where no weight has changed."""
        at, versions = (formula, *weights.values()), tuple(value._version for value in weights.values())
        same = versions == self._versions and len(at) == len(self._folded_at)
        if not same or any(one is not other for one, other in zip(at, self._folded_at, strict=True)):
            self._folded, self._folded_at, self._versions = formula.fold(weights), at, versions
        return self._folded


@dataclass(frozen=True)
class FormulaAt:
    """The formula of a model's gradient at given weights, for pictures of one shape (`FormulaReplay`)."""

    formula: ModelFormula
    weights: Params
    image_shape: tuple[int, int, int]

    def exists(self) -> bool:
        return self.formula.of(self.image_shape) is not None

    def vjp(self, x: Tensor, y: Tensor) -> GradientsAndVjp | None:
        return self.formula.vjp(self.weights, x, y)

    def ready(self, distance: object, x: Tensor, y: Tensor) -> ReadyStep | None:
        return self.formula.ready(self.weights, distance, x, y) if isinstance(distance, WholeDistance) else None


def needs_graph(x: Tensor, y: Tensor) -> bool:
    """Return whether autograd is to differentiate by pictures or labels."""
    return torch.is_grad_enabled() and (x.requires_grad or y.requires_grad)


def _agree(found: Tensor, wanted: Tensor) -> bool:
    return float((found - wanted).norm()) <= AGREEMENT * float(wanted.norm())


def _shared(weights: Params) -> Params | None:
    """Return the weights that all S guesses share, given them S times by `expand`, (S, ...); None where each guess has its own."""
    shared = Params()
    for name, value in weights.items():
        base = value._base
        if base is None or not base.is_leaf or base.shape != value.shape[1:] or (len(value) > 1 and value.stride(0)):
            return None
        shared[name] = base
    return shared


def _is_watched(layers: Sequence[nn.Module]) -> bool:
    """Return whether a hook, a torch function mode, vmap or forward-mode differentiation follows what the layers of a model compute."""
    transformed = torch._C._functorch.peek_interpreter_stack() is not None or torch.autograd.forward_ad._current_level >= 0
    if transformed or torch._C._len_torch_function_stack():
        return True
    return any(not isinstance(hook, InputNormalisation) for layer in layers for kind in HOOKS for hook in getattr(layer, kind).values())
