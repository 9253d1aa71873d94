"""The check that a model can be differentiated twice, which attacks that search need; else an error names the layer that cannot."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leakage.api.model_errors import MODEL_ERRORS, first_line, layer_name
from leakage.engine.devices import exact_arithmetic
from leakage.engine.stateless import StatelessModel

CUT = "its output does not depend on the picture in a way that can be differentiated"
NO_SECOND = "{} has no second derivative, which this attack needs ({}). Exchange it, or choose an attack that solves equations."


class _Call(NamedTuple):
    """A call of a layer, with copies of its inputs."""

    name: str
    layer: nn.Module
    given: tuple[Any, ...]
    named: dict[str, Any]


@exact_arithmetic()
def check_second_derivative(model: nn.Module, x: Tensor, y: Tensor) -> None:
    """Raise ValueError with the first innermost layer that cannot be differentiated twice."""
    stateless = StatelessModel(model)
    why = twice(lambda picture: F.cross_entropy(stateless.with_own_weights(picture), y), x, list(model.parameters()))
    if why is None:
        return
    with stateless.computing():
        for call in _calls(model, x):
            if call.name and (cause := _layer_twice(call)) is not None and (cause == CUT) == (why == CUT):
                raise ValueError(NO_SECOND.format(layer_name(call.name, call.layer), why))
    raise ValueError(NO_SECOND.format(layer_name("", model), why))


def twice(function: Callable[[Tensor], Tensor], x: Tensor, leaves: Sequence[Tensor]) -> str | None:
    """Return why a scalar function of x cannot be differentiated twice by x and by the parameters `leaves`; None where it can."""
    x = x.detach().clone().requires_grad_()
    try:
        result = function(x)
        if not result.requires_grad:
            return CUT
        first = torch.autograd.grad(result, [x, *leaves], create_graph=True, allow_unused=True)
        length = torch.stack(
            [gradient.square().sum() for gradient in first if gradient is not None and gradient.requires_grad] or [x.sum() * 0]
        ).sum()
        if length.requires_grad:  # backward: autograd.grad with respect to x raises no error for what cannot be differentiated
            length.backward()
    except MODEL_ERRORS as error:
        return first_line(error)
    finally:
        for leaf in leaves:
            leaf.grad = None
    return None if first[0] is not None else CUT


def _layer_twice(call: _Call) -> str | None:
    """Return why a layer cannot be differentiated twice at the inputs of a call; None where it can, or has no input of floats."""
    index = next((index for index, value in enumerate(call.given) if isinstance(value, Tensor) and value.is_floating_point()), None)
    if index is None:
        return None

    def answered(entering: Tensor) -> Tensor:
        given = [_copied(value) for value in call.given]
        given[index] = entering.clone()  # a layer may change its input in place
        parts = [part.square().sum() for part in _tensors(call.layer(*given, **call.named))]
        return torch.stack(parts).sum() if parts else entering.sum()

    return twice(answered, call.given[index], [value for value in call.layer.parameters() if value.requires_grad])


def _calls(model: nn.Module, x: Tensor) -> list[_Call]:
    """Return all calls of layers in the order in which they end, the innermost first."""
    begun, ended = list[_Call](), list[_Call]()

    def note(name: str) -> Callable[..., None]:
        return lambda layer, given, named: begun.append(
            _Call(name, layer, tuple(map(_copied, given)), {key: _copied(value) for key, value in named.items()})
        )

    with ExitStack() as hooks, torch.no_grad():
        for name, layer in model.named_modules():
            hooks.enter_context(layer.register_forward_pre_hook(note(name), with_kwargs=True))
            hooks.enter_context(layer.register_forward_hook(lambda *_: ended.append(begun.pop())))
        model(x.detach().clone())
    return ended


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


def _tensors(answer: Any) -> Iterator[Tensor]:
    """Yield all tensors of floating-point numbers in the output of a layer."""
    if isinstance(answer, Tensor):
        if answer.is_floating_point():
            yield answer
    elif isinstance(answer, tuple | list):
        for part in answer:
            yield from _tensors(part)
    elif isinstance(answer, dict):
        for part in answer.values():
            yield from _tensors(part)
