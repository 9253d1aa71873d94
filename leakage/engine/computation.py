"""What a model computes, read from a probe: each call of its forward pass, whether a layer makes it or a function."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from leakage.engine.core import generator

PROBES = 4  # pictures whose computation is recorded
WEIGHTED = ("linear", "conv2d")  # calls whose output autograd follows here


@dataclass(frozen=True, eq=False)
class Step:
    """One call of the forward pass that computes with the pictures.

    function    torch's name of it, such as "linear"; `call` is that function
    where       the innermost module that makes the call, by name; "" for the model itself
    kind        the type of that module where it has no parts, else the function's name
    inputs      the numbers of the values that enter it: 0 are the pictures, n is what step n gave
    value       what it gave, (P, ...): a copy
    followed    the same as autograd knows it, before anything is done to it in place; None for calls without weights
    given       its arguments by position, and `named` by name
    parameters  position or name of an argument -> name of the model's parameter that stands there
    enters      position of the argument that the first of `inputs` is; -1 where it has none
    module      the layer that makes the call, of a convolution or a linear layer; None: a function does
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
        """Its name for a user."""
        return f"{self.where} ({self.kind})" if self.where else self.kind

    def again(self, value: Tensor) -> Tensor | None:
        """The same call of another value of the same shape; None of a layer, and of what computes with several values."""
        if self.module or self.enters < 0 or len(self.inputs) > 1:
            return None
        given = (*self.given[: self.enters], value.clone(), *self.given[self.enters + 1 :])
        with torch.no_grad():
            out = self.call(*given, **self.named)
        return out if isinstance(out, Tensor) else None

    def argument(self, place: int, name: str, default: Any = None) -> Any:
        """An argument, by its position or its name."""
        return self.given[place] if len(self.given) > place else self.named.get(name, default)

    def parameter(self, place: int, name: str) -> str:
        """The name of the parameter that is this argument; "" where none is."""
        return self.parameters.get(place) or self.parameters.get(name, "")

    def layer_of(self, weight: int, bias: int) -> str | None:
        """NAME where these arguments are the parameters NAME.weight and NAME.bias, or there is no bias; None: they are others."""
        front, _, last = self.parameter(weight, "weight").rpartition(".")
        whole = self.argument(bias, "bias") is None or self.parameter(bias, "bias") == f"{front}.bias"
        return front if front and last == "weight" and whole else None

    @property
    def layer(self) -> str | None:
        """The name of the layer whose weights a linear map computes with; None: it has none of its own."""
        return self.layer_of(1, 2) if self.function in WEIGHTED else None


@dataclass(frozen=True, eq=False)
class Computation:
    """The steps of one forward pass of pictures (P, C, H, W), in their order.

    last  the number of the value that is the logits; -1 where no step gave them
    """

    pictures: Tensor
    logits: Tensor
    steps: tuple[Step, ...]
    last: int

    def value(self, number: int) -> Tensor:
        """The pictures (0), or what a step gave."""
        return self.pictures if number == 0 else self.steps[number - 1].value

    def readers(self, number: int) -> list[int]:
        """The numbers of the steps that compute with a value."""
        return [place for place, step in enumerate(self.steps, 1) if number in step.inputs]


class _Recorder(TorchFunctionMode):
    """Notes the calls that compute with the pictures x, or with what came of them; a convolution or a linear layer is one call."""

    def __init__(self, model: nn.Module, x: Tensor) -> None:
        super().__init__()
        self.parameters = {id(value): name for name, value in model.named_parameters()}
        self.numbers, self.held = {id(x): 0}, list[Any]([x])  # held: an id is that of one tensor for as long as it lives
        self.steps: list[Step] = []
        self.inside: list[tuple[str, nn.Module]] = [("", model)]
        self.whole = 0  # how many layers are under way that are one call

    def __torch_function__(self, func: Callable[..., Any], _types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        inputs = self.inputs((args, kwargs))
        out = func(*args, **kwargs)
        name = getattr(func, "__name__", str(func)).strip("_")
        made = list(args[:1]) if name == "setitem" else [one for one in tree_leaves(out) if isinstance(one, Tensor)]
        if self.whole or not inputs or not made:
            return out
        followed = out if name in WEIGHTED else None
        if followed is not None:
            made = [out := out.clone()]  # what is done in place behind it is done to the copy
        self.note(name, func, inputs, made, followed, args, kwargs)
        return out

    def layer(self, layer: nn.Conv2d | nn.Linear, args: tuple[Any, ...], out: Tensor) -> Tensor:
        """Note the call of a layer as that of the function which it is one of."""
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
        """The numbers of the values among arguments."""
        return tuple(dict.fromkeys(self.numbers[id(one)] for one in tree_leaves(given) if id(one) in self.numbers))

    def note(  # noqa: PLR0913  (what is known of a call)
        self,
        function: str,
        call: Callable[..., Any],
        inputs: tuple[int, ...],
        made: Sequence[Tensor],
        followed: Tensor | None,
        given: tuple[Any, ...],
        named: dict[str, Any],
        module: nn.Module | None = None,
    ) -> None:
        """A step that made tensors."""
        enters = next((place for place, one in enumerate(given) if self.numbers.get(id(one)) == inputs[0]), -1)
        for one in made:
            self.numbers[id(one)] = len(self.steps) + 1
            self.held.append(one)
        where, inner = self.inside[-1]
        kind = type(inner).__name__ if module or (where and not any(inner.children())) else function
        every: list[tuple[int | str, Any]] = [*enumerate(given), *named.items()]
        parameters = {place: self.parameters[id(one)] for place, one in every if id(one) in self.parameters}
        value = made[0].detach().clone()
        self.steps.append(Step(function, call, where, kind, inputs, value, followed, given, named, parameters, enters, module))


@contextmanager
def _recording(model: nn.Module, recorder: _Recorder) -> Iterator[None]:
    """The recorder hears meanwhile which module computes."""

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
    hooks = [module.register_forward_pre_hook(enter(name)) for name, module in parts]
    hooks += [module.register_forward_hook(leave) for _, module in parts]
    try:
        with recorder:
            yield
    finally:
        for hook in hooks:
            hook.remove()


def computation(model: nn.Module, x: Tensor) -> Computation:
    """What the model computes of pictures x (P, C, H, W)."""
    x = x.detach().clone()
    recorder = _Recorder(model, x)
    with torch.enable_grad(), _recording(model, recorder):
        logits = model(x)
    return Computation(x, logits, tuple(recorder.steps), recorder.numbers.get(id(logits), -1))


class _ReachedError(Exception):
    """Nothing behind the value has to be computed."""


class _Reaching(_Recorder):
    """Stops at the value with this number."""

    def __init__(self, model: nn.Module, x: Tensor, number: int) -> None:
        super().__init__(model, x)
        self.number = number

    def note(self, *given: Any) -> None:
        super().note(*given)
        if len(self.steps) == self.number:
            raise _ReachedError


def reached(model: nn.Module, number: int, x: Tensor) -> Tensor:
    """The value with this number of a model's computation, for other pictures x (B, C, H, W) in pixels; differentiable in x."""
    reaching = _Reaching(model, x, number)
    if number:
        with suppress(_ReachedError), _recording(model, reaching):
            model(x)
    value: Tensor = reaching.held[-1]
    return value


def probes(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Always the same random pictures (P, C, H, W) in [0, 1], where `like` is and as precise."""
    return torch.rand((PROBES, *shape), generator=generator(0, "probes"), dtype=torch.float64).to(like)
