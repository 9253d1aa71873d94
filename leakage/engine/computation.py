"""The computation of a model, read from a probe: each call of the forward pass, made by a layer or by a function."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from leakage.engine.core import generator

PROBES = 4  # random pictures for which the computation is recorded
WEIGHTED = ("linear", "conv2d")  # calls with weights: `Step.followed` keeps their output with its autograd graph


@dataclass(frozen=True, eq=False)
class Step:
    """One call of the forward pass that computes with the pictures.

    Args:
        function: torch's name of the function that is called, such as "linear"
        call: that function
        where: name of the innermost module that makes the call; "" for the model itself
        kind: type of that module where it has no parts, else the name of the function
        inputs: numbers of the values that enter the call: 0 for the pictures, n for the output of step n
        value: a copy of the output, (P, ...)
        followed: the output with its autograd graph, before an operation changes it in place; None for calls without weights
        given: the positional arguments
        named: the keyword arguments
        parameters: position or name of an argument -> name of the model's parameter that is passed there
        enters: position of the argument that is the first of `inputs`; -1 where no positional argument is
        module: the convolution or linear layer that makes the call; None where a function makes it
    """

    function: str
    call: Callable[..., Any]
    where: str
    kind: str
    inputs: tuple[int, ...]
    value: Tensor
    followed: Tensor | None
    given: tuple[Any, ...]
    named: Mapping[str, Any]
    parameters: Mapping[int | str, str]
    enters: int
    module: nn.Module | None = None

    @property
    def title(self) -> str:
        """Name of the step for messages to the user."""
        return f"{self.where} ({self.kind})" if self.where else self.kind

    def again(self, value: Tensor) -> Tensor | None:
        """Return the output of the same call for another value of that shape; None for layers, and for calls that several values enter."""
        if self.module or self.enters < 0 or len(self.inputs) > 1:
            return None
        given = (*self.given[: self.enters], value.clone(), *self.given[self.enters + 1 :])
        with torch.no_grad():
            out = self.call(*given, **self.named)
        return out if isinstance(out, Tensor) else None

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """Return an argument by its position or its name; `default` where it was not passed."""
        return self.given[position] if len(self.given) > position else self.named.get(name, default)

    def parameter(self, position: int, name: str) -> str:
        """Return the name of the model's parameter that is passed as this argument; "" where none is."""
        return self.parameters.get(position) or self.parameters.get(name, "")

    def layer_of(self, weight: int, bias: int) -> str | None:
        """Return NAME where these arguments are the parameters NAME.weight and NAME.bias (or the bias is None); return None otherwise."""
        front, _, last = self.parameter(weight, "weight").rpartition(".")
        whole = self.argument(bias, "bias") is None or self.parameter(bias, "bias") == f"{front}.bias"
        return front if front and last == "weight" and whole else None

    @property
    def layer(self) -> str | None:
        """Name of the layer that has the weights of this linear map; None for other steps, and where the weights come from elsewhere."""
        return self.layer_of(1, 2) if self.function in WEIGHTED else None


@dataclass(frozen=True, eq=False)
class Computation:
    """The steps of one forward pass, in their order.

    Args:
        pictures: the input, (P, C, H, W)
        logits: the output
        steps: the calls; the value of step n has number n
        last: number of the value that is the logits; -1 where no step returned them
    """

    pictures: Tensor
    logits: Tensor
    steps: tuple[Step, ...]
    last: int

    def value(self, number: int) -> Tensor:
        """Return the pictures (number 0), or the output of step `number`."""
        return self.pictures if number == 0 else self.steps[number - 1].value

    def readers(self, number: int) -> list[int]:
        """Return the numbers of the steps that a value enters."""
        return [reader for reader, step in enumerate(self.steps, 1) if number in step.inputs]

    def linear_steps(self) -> Iterator[tuple[int, Step, str]]:
        """Yield step number, step and layer name of each fully connected layer with an input (B, n), in the order of their calls."""
        for number, step in enumerate(self.steps, 1):
            if step.function == "linear" and step.layer is not None and step.enters == 0 and self.value(step.inputs[0]).dim() == 2:
                yield number, step, step.layer


class _Recorder(TorchFunctionMode):
    """Recorder of the calls that compute with the pictures x or with values derived from them; a convolution is a single call."""

    def __init__(self, model: nn.Module, x: Tensor) -> None:
        super().__init__()
        self.parameters = {id(value): name for name, value in model.named_parameters()}
        self.numbers, self.kept_alive = {id(x): 0}, list[Any]([x])  # keeps the tensors alive, so that no id is given twice
        self.steps: list[Step] = []
        self.inside: list[tuple[str, nn.Module]] = [("", model)]
        self.whole = 0  # how many convolutions and linear layers are being computed

    def __torch_function__(self, func: Callable[..., Any], _types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        inputs = self.inputs((args, kwargs))
        out = func(*args, **kwargs)
        name = getattr(func, "__name__", str(func)).strip("_")
        outputs = list(args[:1]) if name == "setitem" else [leaf for leaf in tree_leaves(out) if isinstance(leaf, Tensor)]
        if self.whole or not inputs or not outputs:
            return out
        followed = out if name in WEIGHTED else None
        if followed is not None:
            outputs = [out := out.clone()]  # later operations in place change the copy
        self.note(name, func, inputs, outputs, followed, args, kwargs)
        return out

    def layer(self, layer: nn.Conv2d | nn.Linear, args: tuple[Any, ...], out: Tensor) -> Tensor:
        """Record the call of a layer as a call of the function "linear" or "conv2d"; return the copy of its output that later steps use."""
        inputs, function, given = self.inputs(args), "linear", (*args, layer.weight, layer.bias)
        if isinstance(layer, nn.Conv2d):
            padding = layer.padding if layer.padding_mode == "zeros" else layer.padding_mode
            function, given = "conv2d", (*given, layer.stride, padding, layer.dilation, layer.groups)
        if not inputs or len(args) != 1:
            return out
        copy = out.clone()
        self.note(function, layer, inputs, [copy], out, given, {}, layer)
        return copy

    def inputs(self, given: Any) -> tuple[int, ...]:
        """Return the numbers of the recorded values among arguments, each once."""
        return tuple(dict.fromkeys(self.numbers[id(leaf)] for leaf in tree_leaves(given) if id(leaf) in self.numbers))

    def note(  # noqa: PLR0913  (what is known of a call)
        self,
        function: str,
        call: Callable[..., Any],
        inputs: tuple[int, ...],
        outputs: Sequence[Tensor],
        followed: Tensor | None,
        given: tuple[Any, ...],
        named: dict[str, Any],
        module: nn.Module | None = None,
    ) -> None:
        """Record a call as a step with the tensors `outputs` as its output."""
        enters = next((position for position, value in enumerate(given) if self.numbers.get(id(value)) == inputs[0]), -1)
        for tensor in outputs:
            self.numbers[id(tensor)] = len(self.steps) + 1
            self.kept_alive.append(tensor)
        where, inner = self.inside[-1]
        kind = type(inner).__name__ if module or (where and not any(inner.children())) else function
        arguments: list[tuple[int | str, Any]] = [*enumerate(given), *named.items()]
        parameters = {key: self.parameters[id(argument)] for key, argument in arguments if id(argument) in self.parameters}
        value = outputs[0].detach().clone()
        self.steps.append(Step(function, call, where, kind, inputs, value, followed, given, named, parameters, enters, module))


@contextmanager
def _recording(model: nn.Module, recorder: _Recorder) -> Iterator[None]:
    """Let the recorder follow, within the block, which module of the model computes."""

    def enter(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, _: Any) -> None:
            recorder.inside.append((name, module))
            recorder.whole += isinstance(module, nn.Conv2d | nn.Linear)

        return hook

    def leave(module: nn.Module, args: tuple[Any, ...], out: Any) -> Any:
        if isinstance(module, nn.Conv2d | nn.Linear):
            if recorder.whole == 1 and isinstance(out, Tensor):
                out = recorder.layer(module, args, out)
            recorder.whole -= 1
        recorder.inside.pop()
        return out

    parts = [(name, module) for name, module in model.named_modules() if name]
    with ExitStack() as hooks:
        for name, module in parts:
            hooks.enter_context(module.register_forward_pre_hook(enter(name)))
            hooks.enter_context(module.register_forward_hook(leave))
        with recorder:
            yield


def computation(model: nn.Module, x: Tensor) -> Computation:
    """Return the recorded computation of a model for pictures x (P, C, H, W)."""
    x = x.detach().clone()
    recorder = _Recorder(model, x)
    with torch.enable_grad(), _recording(model, recorder):
        logits = model(x)
    return Computation(x, logits, tuple(recorder.steps), recorder.numbers.get(id(logits), -1))


class _ReachedError(Exception):
    """The value is computed: the rest of the forward pass can be left out."""


class _Reaching(_Recorder):
    """Recorder that stops the forward pass by _ReachedError as soon as value `number` is computed."""

    def __init__(self, model: nn.Module, x: Tensor, number: int) -> None:
        super().__init__(model, x)
        self.number = number

    def note(self, *given: Any) -> None:
        super().note(*given)
        if len(self.steps) == self.number:
            raise _ReachedError


def reached(model: nn.Module, number: int, x: Tensor) -> Tensor:
    """Compute a model for pictures x (B, C, H, W) in [0, 1] up to step `number` of its forward pass, and return that step's output.

    The steps are numbered as in `Computation`, which may be of other pictures; number 0 is x itself. The output is differentiable in x.
    """
    reaching = _Reaching(model, x, number)
    if number:
        with suppress(_ReachedError), _recording(model, reaching):
            model(x)
    value: Tensor = reaching.kept_alive[-1]
    return value


def probes(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Return the same random pictures (P, C, H, W) in [0, 1] at each call, on the device and in the precision of `like`."""
    return torch.rand((PROBES, *shape), generator=generator(0, "probes"), dtype=torch.float64).to(like)
