"""A recorded update beside its model: what was sent, at which weights, and what the buffers of BatchNorm say of the client's steps."""

import re
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from leakage.adapters.update_reader import RecordedUpdate
from leakage.api.model_errors import MODEL_ERRORS
from leakage.api.update_check import ParameterNames, update_of
from leakage.data.array_files import Arrays, Numbers
from leakage.data.errors import UpdateFileError
from leakage.engine.core import Params, Statistics
from leakage.spec.update_card import CardEntry, UpdateCard

COUNT = "num_batches_tracked"  # the buffer in which BatchNorm counts its batches
CALLED = re.compile(r"update\['(.*?)'\]")  # how messages call an array
DISAGREE = "card.json says {} local steps, and BatchNorm counted {} mini-batches in training. The number on the card is used."
BUFFER = "{}: {} must have the shape of its buffer, {}; got {}."


@dataclass(frozen=True, eq=False)
class RecordedClient:
    """What a server has of a client whose update was recorded."""

    model: nn.Module
    """A copy of the owner's model, with the weights and buffers that the client received, where these were recorded."""
    sent: Params
    """The gradient, or the weights after training less those before, by parameter."""
    is_gradient: bool
    has_weights: bool
    """Whether the weights after training were recorded, and not only their difference from those before."""
    card: UpdateCard
    """What is known of the client, with what the buffers add."""
    statistics: Statistics | None
    """Mean and variance of the batch by BatchNorm layer, from the buffers after one step; None: they are unknown."""
    width: str
    """The narrowest floating-point type among what was sent."""
    counted: int | None
    """How many mini-batches passed through BatchNorm in training, by its counter; None: it says nothing."""
    disagreement: str = ""
    """Where the card and the counter disagree, a sentence; else empty."""


def load_client(update: RecordedUpdate, model: nn.Module) -> RecordedClient:
    """Match a recorded update with its model.

    Args:
        update: the update.
        model: the owner's network; it stays unchanged.

    Raises:
        UpdateFileError: names or shapes are those of another network; the message names the first that differs.
    """
    model = deepcopy(model)
    before = _state_of(update.before, model, "before") if update.before else None
    if before:
        with torch.no_grad():
            for name, weight in model.named_parameters():
                weight.copy_(before[0][name])
            for name, buffer in model.named_buffers():
                if name in before[1]:
                    buffer.copy_(before[1][name])
    part = "after" if update.after else "difference" if update.difference else "gradient"
    numbers = update.after or update.difference or update.gradient
    assert numbers is not None
    weights, buffers = _state_of(numbers, model, part)
    if update.after:
        assert before is not None
        sent = {name: value - before[0][name] for name, value in weights.items()}
    else:
        sent = weights
    counted = _counted(before[1], buffers) if before and update.after else None
    card, disagreement = _completed(update.card, counted)
    statistics = _statistics(model, before[1], buffers, card) if before and counted == 1 else None
    return RecordedClient(model, sent, part == "gradient", bool(update.after), card, statistics, update.width, counted, disagreement)


def _state_of(numbers: Numbers, model: nn.Module, part: str) -> tuple[Params, dict[str, Tensor]]:
    """Return the parameters and the buffers of a file by the model's names, the frozen ones of "before" only. Raises UpdateFileError."""
    parameters: Params = {name: value for name, value in model.named_parameters() if part == "before" or value.requires_grad}
    names = ParameterNames(model, parameters)
    try:
        given = names.name_tensors(list(numbers.arrays.values()) if _is_list(numbers.arrays) else numbers.arrays)
        known = names.unprefixed(list(given))
        own = dict(model.named_buffers(remove_duplicate=False))
        places = {called: names.buffer(known[called]) for called in given}
        weights = update_of({called: _floating(value) for called, value in given.items() if not places[called]}, model, parameters)
    except (TypeError, ValueError) as error:
        message = CALLED.sub(r"\1", str(error)).removeprefix("update ")
        raise UpdateFileError(f"{part}: {message}") from None
    buffers = {place: torch.from_numpy(_native(given[called])).to(own[place].device) for called, place in places.items() if place}
    for name, value in buffers.items():
        if value.shape != own[name].shape:
            raise UpdateFileError(BUFFER.format(part, name, tuple(own[name].shape), tuple(value.shape)))
    return {name: value.detach() for name, value in weights.items()}, buffers


def _is_list(arrays: Arrays) -> bool:
    """Return whether the names of arrays are their places: "0", "1", ... as Flower's lists have, or "arr_0", ... as numpy.savez."""
    return list(arrays) in ([str(place) for place in range(len(arrays))], [f"arr_{place}" for place in range(len(arrays))])


def _native(value: Any) -> Any:
    return value.copy() if value.dtype.kind != "u" or value.dtype.itemsize == 1 else value.astype("int64")


def _floating(value: Any) -> Any:
    """Return an array that torch can read: 16-bit numbers are widened, numbers of other kinds stay."""
    return value.astype("float32") if value.dtype.name == "float16" else value


def _counted(before: dict[str, Tensor], after: dict[str, Tensor]) -> int | None:
    """Return by how much every BatchNorm counter grew; None where there is none, or where they differ."""
    grown = {int(after[name]) - int(value) for name, value in before.items() if name.endswith(COUNT) and name in after}
    return grown.pop() if len(grown) == 1 and min(grown) > 0 else None


def _completed(card: UpdateCard, counted: int | None) -> tuple[UpdateCard, str]:
    """Return a card with what BatchNorm's counter adds, and a sentence where the two disagree; "" where they do not.

    The counter grows with each mini-batch, and a step takes `accumulation` of them. It stands still where BatchNorm uses its stored
    statistics.
    """
    if counted is None:
        return card, ""
    added: dict[str, Any] = {} if card.batch_norm.value else {"batch_norm": CardEntry(value="batch")}
    steps, accumulation = card.steps.value, card.accumulation.value
    if steps is None:
        added["steps"] = CardEntry(value=-(-counted // (accumulation or 1)))
    elif accumulation is None and counted > steps and counted % steps == 0:
        added["accumulation"] = CardEntry(value=counted // steps, guessed=True)
    elif -(-counted // (accumulation or 1)) != steps:
        return card.model_copy(update=added), DISAGREE.format(steps, counted)
    return card.model_copy(update=added), ""


def _statistics(model: nn.Module, before: dict[str, Tensor], after: dict[str, Tensor], card: UpdateCard) -> Statistics | None:
    """Return the mean and the biased variance of the batch by layer, from the running statistics before and after one step.

    What BatchNorm with momentum m has added is (after - (1 - m) before) / m. It adds the unbiased variance, n / (n - 1) times the biased
    one, with n values for each channel. Where the card does not say how many pictures of which shape there are, the factor is left out.
    """
    found: Statistics = {}
    sizes = _positions(model, card)
    for name, layer in model.named_modules():
        keys = [f"{name}.{part}" for part in ("running_mean", "running_var")]
        if isinstance(layer, nn.BatchNorm2d) and all(key in before and key in after for key in keys):
            m = layer.momentum if layer.momentum is not None else 1.0 / max(1, int(after[f"{name}.{COUNT}"]))
            if m == 0:
                continue
            mean, variance = ((after[key] - (1 - m) * before[key]) / m for key in keys)
            count = sizes.get(name, 0) * (card.pictures.value or 0)
            found[name] = (mean, variance * (count - 1) / count if count > 1 else variance)
    return found or None


def _positions(model: nn.Module, card: UpdateCard) -> dict[str, int]:
    """Return the number of positions of the maps that enter each BatchNorm layer; {} where the card does not say the pictures' shape."""
    if card.input.value is None:
        return {}
    found, hooks = dict[str, int](), []
    for name, layer in model.named_modules():
        if isinstance(layer, nn.BatchNorm2d):
            note = partial(_note_positions, found, name)
            hooks.append(layer.register_forward_pre_hook(note))
    try:
        with torch.no_grad():
            model.eval()(next(model.parameters()).new_zeros((1, *card.input.value)))
    except MODEL_ERRORS:
        return {}
    finally:
        for hook in hooks:
            hook.remove()
    return found


def _note_positions(found: dict[str, int], name: str, _layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    found[name] = inputs[0][0, 0].numel()
