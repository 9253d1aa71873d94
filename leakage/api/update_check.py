"""The check of an update from the caller: its tensors by parameter name, or an error that says what is wrong."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from leakage.api.input_check import recordable
from leakage.engine.core import Params

Update = Mapping[str, Any] | Iterable[Any]  # tensors or arrays, by the parameters' names, or in the order of model.parameters()
WRAPPED = {"module", "_module", "_orig_mod"}  # what DataParallel, Opacus and torch.compile put into names
EXPECTED = "update must be tensors or arrays, by the parameters' names or in the order of model.parameters(); got {}."


class ParameterNames:
    """The names by which an update may call a model's tensors.

    parameters  all parameters by the model's names
    trained     names of the trained parameters
    sent        names of the parameters that a client sends: trained, and the logits depend on them
    state       names of the state dictionary, buffers among them
    """

    def __init__(self, model: nn.Module, sent: Params) -> None:
        self.parameters = dict(model.named_parameters()) | sent
        self.trained = [name for name, value in self.parameters.items() if value.requires_grad]
        self.sent, self.state = list(sent), list(model.state_dict())
        main_names = {value: name for name, value in model.named_parameters()}
        self._called: dict[str, str] = {}
        for name, value in model.named_parameters(remove_duplicate=False):
            for called in (name, _bare(name)):
                self._called.setdefault(called, main_names[value])
        self._called |= {name: name for name in sent}  # a defense may have put layers into the model
        self._buffers = {_bare(name): name for name, _ in model.named_buffers(remove_duplicate=False)}

    def __contains__(self, name: str) -> bool:
        return name in self._called or _bare(name) in self._called or self.is_passed(name)

    def is_passed(self, name: str) -> bool:
        """Return whether a name is that of a buffer, which a state dictionary has and a gradient has not."""
        return bool(self.buffer(name)) or name.endswith("_extra_state")

    def buffer(self, name: str) -> str:
        """Return the model's name of a buffer that the update calls `name`; "" if it is none."""
        return self._buffers.get(_bare(name), "")

    def name_tensors(self, update: object) -> dict[str, object]:
        """Return the tensors of an update by the names that it gives them; tensors without names get those of the model, by their order."""
        if isinstance(update, Mapping):
            return {str(name): value for name, value in update.items()}
        if isinstance(update, str | bytes) or not isinstance(update, Iterable):
            raise TypeError(EXPECTED.format(f"a {type(update).__name__}"))
        if isinstance(update, Tensor | np.ndarray):
            return _split(update, self)
        parts = list(update)
        if parts and all(isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], str) for part in parts):
            return dict(parts)
        for order in (list(self.parameters), self.trained, self.sent, self.state):
            if len(order) == len(parts):
                return dict(zip(order, parts, strict=True))
        raise ValueError(
            f"update holds {len(parts)} tensors; the model has {len(self.parameters)} parameters, {len(self.trained)} of them trained. "
            "Give one for each, in its order, or give them by name."
        )

    def parameter(self, name: str) -> str:
        """Return the model's name of a parameter that the update calls `name`."""
        return self._called.get(name) or self._called[_bare(name)]

    def unprefixed(self, given: Sequence[str]) -> dict[str, str]:
        """Map each given name to the model's name, if all given names have one prefix too many or too few; else to itself."""
        if all(name in self for name in given):
            return {name: name for name in given}
        first = next(name for name in given if name not in self)
        for known in self._called:
            if first.endswith(f".{known}"):
                short = first[: -len(known)]
                renamed = {name: name.removeprefix(short) for name in given}
            elif known.endswith(f".{first}"):
                renamed = {name: known[: -len(first)] + name for name in given}
            else:
                continue
            if all(name in self for name in renamed.values()):
                return renamed
        return {name: name for name in given}


def update_of(update: object, model: nn.Module, sent: Params) -> Params:
    """Return the update by name, for the parameters that are sent, in their precision. Raises TypeError, ValueError.

    Names may have the prefixes that frameworks add; buffers, frozen and unused parameters are left out. Tensors without names may be those
    of all parameters, of the trained parameters, of the sent parameters or of the state dictionary, in its order; or a single vector.

    Args:
        update: tensors or arrays from the caller.
        model: the caller's network, which defines the names and their order.
        sent: the parameters that a client sends, by name.
    """
    names = ParameterNames(model, sent)
    tensors: dict[str, object] = {}
    given = names.name_tensors(update)
    known = names.unprefixed(list(given))
    for called, value in given.items():
        name = known[called]
        if name not in names:
            raise ValueError(_other(names, f"has no parameter {called!r}"))
        if names.is_passed(name) and name not in names.parameters:
            continue
        tensors.setdefault(names.parameter(name), value)
    missing = [name for name in sent if name not in tensors]
    if missing:
        raise ValueError(_other(names, f"has the parameter {missing[0]!r}, which the update lacks"))
    return {name: _tensor(name, tensors[name], weight) for name, weight in sent.items()}


def _split(vector: Tensor | np.ndarray[Any, Any], names: ParameterNames) -> dict[str, object]:
    """Split a vector of all numbers, as `torch.nn.utils.parameters_to_vector` makes it, into tensors by name."""
    flat = vector if isinstance(vector, Tensor) else torch.as_tensor(vector)
    for order in (list(names.parameters), names.trained, names.sent):
        sizes = [names.parameters[name].numel() for name in order]
        if flat.dim() == 1 and len(flat) == sum(sizes):
            return {name: part.view_as(names.parameters[name]) for name, part in zip(order, flat.split(sizes), strict=True)}
    numbers = sum(value.numel() for value in names.parameters.values())
    raise ValueError(EXPECTED.format(f"one tensor of shape {tuple(flat.shape)}") + f" One vector would have {numbers} numbers.")


def _other(names: ParameterNames, what: str) -> str:
    return f"update is that of another model: this one {what}. Its parameters are {', '.join(names.parameters)}."


def _tensor(name: str, value: object, weight: Tensor) -> Tensor:
    if value is None:
        raise ValueError(f"update[{name!r}] is None: no gradient was computed for this parameter. Call backward() on the loss first.")
    if not isinstance(value, Tensor) and hasattr(value, "__array__"):
        value = _of_array(value, weight)
    if not isinstance(value, Tensor) or not value.is_floating_point():
        kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise TypeError(f"update[{name!r}] must be a tensor or an array of floating-point numbers; got {kind}.")
    if value.layout != torch.strided:
        value = value.to_dense()
    if value.shape != weight.shape:
        raise ValueError(f"update[{name!r}] must have the shape of its parameter, {tuple(weight.shape)}; got {tuple(value.shape)}.")
    if value.device != weight.device:
        raise ValueError(f"update[{name!r}] lies on {value.device} and the model on {weight.device}. Move both to one device.")
    if not bool(value.isfinite().all()):
        raise ValueError(f"update[{name!r}] holds numbers that are not finite (NaN or infinity): nothing can be read from it.")
    return recordable(value).to(weight.dtype)


def _of_array(value: Any, weight: Tensor) -> object:
    """Convert an array to a tensor on the weight's device; where torch cannot, return the array's type for the error message."""
    array = np.asarray(value)
    try:
        return torch.from_numpy(np.array(array)).to(weight.device)
    except TypeError:
        return array.dtype


def _bare(name: str) -> str:
    """Remove from a name the parts that wrappers put into it.

    >>> _bare("module._orig_mod.body.0.weight")
    'body.0.weight'
    """
    return ".".join(part for part in name.split(".") if part not in WRAPPED)
