"""Record what a training loop in PyTorch starts from and ends with, with the settings of its optimizer."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakage.adapters.update_folder import as_array, check_place, fill_card, write_update

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

MODES = {True: "batch", False: "eval"}  # the statistics that BatchNorm uses: of the card's field
STANDARD: dict[str, dict[str, Any]] = {  # settings that the card has no field for, with the values that the name of an optimizer stands for
    "SGD": {"dampening": 0, "maximize": False},
    "Adam": {"betas": (0.9, 0.999), "eps": 1e-8, "amsgrad": False, "maximize": False, "decoupled_weight_decay": False},
    "AdamW": {"betas": (0.9, 0.999), "eps": 1e-8, "amsgrad": False, "maximize": False, "decoupled_weight_decay": True},
}
Groups = list[dict[str, Any]]


@contextmanager
def saved(
    model: "nn.Module",
    folder: str | Path,
    *,
    optimizer: "Optimizer | None" = None,
    pictures: int | None = None,
    epochs: int | None = None,
    mini_batch: int | None = None,
) -> Iterator[Path]:
    """Write what a training loop changes into a folder.

        with saved(model, "update", optimizer=optimizer, pictures=8):
            train(model, optimizer)

    before.npz is the model's state_dict at the beginning, with its buffers, and after.npz that at the end. bfloat16 becomes float32, and
    what is no tensor is left out. Nothing is written if the loop raises an error.

    The shape of a picture is read when the model is called. From the optimizer the card gets its name, learning rate, momentum, weight
    decay and number of steps. A setting that differs between the parameter groups stays unknown; a learning rate that changes from step to
    step is a guess: the mean. The name of an optimizer is a guess if it has other settings that are not PyTorch's defaults, such as Adam's
    betas.

    Args:
        model: the model that the loop trains.
        folder: the folder, which does not exist yet, or is empty.
        optimizer: the optimizer of the loop; None: its settings stay unknown.
        pictures: how many pictures the client has; None: unknown.
        epochs: how often it trains on each of them; None: unknown.
        mini_batch: how many pictures a mini-batch has; None: unknown.

    Yields:
        The path of the folder, which is there after the loop.

    Raises:
        FileExistsError: there is a file of this name, or a folder that is not empty.
        ValueError: a number is not allowed, or the optimizer trains another model.
        OSError: a file cannot be written.
    """
    check_place(folder)
    given = {"pictures": pictures, "epochs": epochs, "mini_batch": mini_batch}
    for name, value in given.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1_000_000):
            raise ValueError(f"{name} must be a whole number from 1 to 1000000, or None for unknown, got {value!r}.")
    if optimizer is not None and not {id(one) for one in model.parameters()} & {id(one) for one in _trained(optimizer.param_groups)}:
        raise ValueError("The optimizer has none of the model's parameters. Give the optimizer that trains this model, or leave it out.")
    rates, modes, shapes = list[float | None](), set[bool](), set[tuple[int, ...]]()

    def count_step(stepped: "Optimizer", *_arguments: object) -> None:
        rates.append(_common(stepped.param_groups, "lr"))
        modes.update(_batch_norm_modes(model))

    def note_shape(_model: object, inputs: tuple[Any, ...]) -> None:
        shapes.update(tuple(one.shape[1:]) for one in inputs[:1] if getattr(one, "ndim", 0) == 4)

    hooks = [model.register_forward_pre_hook(note_shape)]
    hooks += [] if optimizer is None else [optimizer.register_step_post_hook(count_step)]
    before = _state(model)
    try:
        yield Path(folder)
    finally:
        for hook in hooks:
            hook.remove()
    fields = {**given, **_settings(optimizer, rates), "batch_norm": MODES[modes.pop()] if len(modes) == 1 else None}
    fields["input"] = shapes.pop() if len(shapes) == 1 else None
    card = fill_card(f"torch {version('torch')}", fields)
    write_update(folder, card, before=before, after=_state(model))


def _state(model: "nn.Module") -> dict[str, Any]:
    """Return a copy of the tensors of a model's state_dict."""
    return {name: as_array(value, name) for name, value in model.state_dict().items() if hasattr(value, "detach")}


def _trained(groups: Groups) -> list[Any]:
    return [parameter for group in groups for parameter in group["params"]]


def _batch_norm_modes(model: "nn.Module") -> set[bool]:
    """Return whether the model's BatchNorm layers use the statistics of the batch: up to two answers, none without such layers."""
    from torch.nn.modules.batchnorm import _BatchNorm

    return {module.training or module.running_mean is None for module in model.modules() if isinstance(module, _BatchNorm)}


def _common(groups: Groups, name: str) -> float | None:
    """Return a number that all parameter groups have; None if it differs, or if there is none."""
    values = {float(group[name]) if name in group else None for group in groups}
    return values.pop() if len(values) == 1 else None


def _settings(optimizer: "Optimizer | None", rates: list[float | None]) -> Mapping[str, Any]:
    """Return the fields of the card that an optimizer says.

    Args:
        optimizer: the optimizer, after the loop; None: nothing is said.
        rates: the learning rate of each step; None where it differs between the parameter groups.
    """
    if optimizer is None:
        return {}
    groups = optimizer.param_groups
    momentum = _common(groups, "momentum")
    fields: dict[str, Any] = {"optimizer": _name(optimizer), "weight_decay": _common(groups, "weight_decay"), "momentum": momentum}
    fields["steps"] = len(rates) or None  # none counted: a wrapper may have stepped in its place
    known = [rate for rate in rates if rate is not None]
    if known and len(known) == len(rates):
        mean = sum(known) / len(known)
        fields["rate"] = known[0] if len(set(known)) == 1 else {"guess": mean}
    return fields


def _name(optimizer: "Optimizer") -> Any:
    """Return the name of an optimizer for the card, or a guess if it has settings that the name does not stand for; None if unknown."""
    kind = type(optimizer).__name__
    if kind not in STANDARD or not type(optimizer).__module__.startswith("torch.optim."):
        return None
    groups = optimizer.param_groups
    nesterov = {bool(group.get("nesterov", False)) for group in groups}
    if len(nesterov) > 1:
        return None
    name = "SGD with Nesterov momentum" if nesterov.pop() else kind
    standard = all(group.get(setting, value) == value for group in groups for setting, value in STANDARD[kind].items())
    return name if standard else {"guess": name}
