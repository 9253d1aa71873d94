"""A copy of the caller's model that computes the same numbers, and leaves the model as it is."""

import copy
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from leakage.api.model_errors import MODEL_ERRORS, first_line, layer_name

FLOATS = (torch.float32, torch.float64)
HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_forward_pre_hooks_with_kwargs", "_forward_hooks_with_kwargs")
WRAPPERS = {  # type of a wrapper, which computes a model in parallel or compiled, and so only with its own weights: name of the model in it
    "DataParallel": "module",
    "DistributedDataParallel": "module",
    "OptimizedModule": "_orig_mod",
}


class Unwrapped(nn.Module):
    """A model without its wrapper, but with the names of parameters and the hooks that the wrapper gave it."""

    def __init__(self, wrapper: nn.Module, name: str) -> None:
        super().__init__()
        self.name = name
        self.add_module(name, wrapper.get_submodule(name))
        for kind in HOOKS:
            getattr(self, kind).update(getattr(wrapper, kind))

    def forward(self, *given: Any, **named: Any) -> Any:
        return self.get_submodule(self.name)(*given, **named)


def copied(model: nn.Module) -> nn.Module:
    """Return a copy in eval mode in which frozen parameters are buffers and all others are trained. Raises ValueError, TypeError."""
    for name, layer in model.named_modules():
        if isinstance(layer, torch.jit.ScriptModule):
            raise TypeError(
                f"{layer_name(name, layer)} is TorchScript, which cannot be copied with other weights. Give the nn.Module itself."
            )
    try:
        result = copy.deepcopy(model, _detached(model))
    except MODEL_ERRORS as error:
        raise ValueError(
            f"The model cannot be copied ({first_line(error)}). Take out what it keeps beside its layers, or build it anew."
        ) from None
    try:
        result = _unwrapped(result).eval().requires_grad_(True)
    except MODEL_ERRORS as error:
        raise ValueError(
            f"The model cannot be put into eval mode ({first_line(error)}). Let eval() set `training`, and do no more."
        ) from None
    for name, value in model.named_parameters():
        if not value.requires_grad:
            freeze(result, name)
    return result


def again(model: nn.Module) -> nn.Module:
    """Return a further copy of a model that `model_check.prepared` returned."""
    return copy.deepcopy(model, _detached(model))


def check_parameters(model: nn.Module, x: Tensor) -> None:
    """Raise TypeError or ValueError where no attack can work with the parameters, and name the parameter."""
    names: dict[int, str] = {}
    for name, value in model.named_parameters():
        if nn.parameter.is_lazy(value):
            raise ValueError(f"Parameter {name} has no shape yet: its layer is lazy. Call the model once on pictures of this shape first.")
        if value.is_complex():
            raise TypeError(f"Parameter {name} is {value.dtype}; expected is float32 or float64. Keep it as torch.view_as_real(...).")
        if value.dtype not in FLOATS:
            raise TypeError(f"Parameter {name} is {value.dtype}; expected is float32 or float64. Call model.float() first.")
        if value.device != x.device:
            raise ValueError(f"Parameter {name} lies on {value.device} and the pictures on {x.device}. Move both to one device.")
        if not bool(value.detach().isfinite().all()):
            raise ValueError(f"Parameter {name} holds numbers that are not finite. Load sound weights.")
        if value._backward_hooks:
            raise ValueError(
                f"Parameter {name} has a hook that changes its gradient, which the attacker could not imitate. Remove it, and name what it "
                "does as a defense."
            )
        other = names.setdefault(value.data_ptr(), name) if value.numel() else name
        if other != name:
            raise ValueError(f"Parameters {other} and {name} share their memory, but are two parameters. Make them one nn.Parameter.")
    if len({value.dtype for value in model.parameters()}) > 1:
        raise TypeError("The model mixes float32 and float64. Call model.float() or model.double() first.")


def freeze(model: nn.Module, name: str) -> None:
    """Turn a parameter into a buffer of the same name, in each layer that has it."""
    value = model.get_parameter(name)
    for layer in model.modules():
        for attribute in [attribute for attribute, parameter in layer._parameters.items() if parameter is value]:
            del layer._parameters[attribute]
            layer.register_buffer(attribute, value.detach(), persistent=False)


def check_reached(model: nn.Module, logits: Tensor) -> None:
    """Raise ValueError where the logits of a copy depend on the original's parameters, by a closure that was not copied."""
    names = {id(value): name for name, value in model.named_parameters()}
    remaining, visited = [logits.grad_fn], set[Any]()
    while remaining:
        step = remaining.pop()
        if step is None or step in visited:
            continue
        visited.add(step)
        name = names.get(id(getattr(step, "variable", None)))
        if name:
            raise ValueError(
                f"The model reaches its parameter {name} through a function that cannot be copied with it (a lambda, a closure or a hook). "
                "Let forward reach it through self."
            )
        remaining += [following for following, _ in step.next_functions]


def _detached(model: nn.Module) -> dict[int, Any]:
    """Return a memo for deepcopy: non-leaf tensors that layers store, by id, without their graph, which torch cannot copy."""
    memo: dict[int, Any] = {}
    remaining, visited = list(chain.from_iterable(vars(layer).values() for layer in model.modules())), set[int]()
    while remaining:
        value = remaining.pop()
        if id(value) in visited:
            continue
        visited.add(id(value))
        if isinstance(value, Tensor) and not value.is_leaf:
            memo[id(value)] = value.detach().clone()
        elif isinstance(value, list | tuple):
            remaining += value
        elif isinstance(value, dict):
            remaining += value.values()
    return memo


def _unwrapped(model: nn.Module) -> nn.Module:
    """Return the model without the wrappers in WRAPPERS; inner wrappers are replaced in place."""
    for layer in reversed(list(model.modules())):  # the innermost layers come last
        for name, part in layer._modules.items():
            if part is not None and (inner := _wrapped_name(part)):
                layer._modules[name] = Unwrapped(part, inner)
    inner = _wrapped_name(model)
    return Unwrapped(model, inner) if inner else model


def _wrapped_name(layer: nn.Module) -> str:
    """Return the name under which a wrapper stores its model; empty where the layer is no wrapper."""
    return WRAPPERS.get(type(layer).__name__, "") if type(layer).__module__.startswith("torch.") else ""
