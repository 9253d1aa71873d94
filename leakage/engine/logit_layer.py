"""The linear layer that computes the logits, identified by derivatives and not by its position in the model."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leakage.engine.devices import exact_arithmetic
from leakage.engine.inapplicable import UnreadableLabelsError
from leakage.engine.observation import Observation, generator
from leakage.engine.vjp import vjp
from leakage.spec.words import NO_LABELS

CONTRAST = 0.2  # of dark and of bright pictures
ENOUGH = 8  # pictures of a kind with which a model is probed; a larger batch of private pictures needs no more
CLOSE = 1e-3  # the same sum in float32, computed in two orders, has a smaller relative difference
UNREAD = "Labels cannot be read from this update: {}. Grant the labels instead."
NONE_MAKES = "none of the model's linear layers makes its logits"
DEAD = "no linear layer of the model changes its logits on the random pictures that were tried (dead units)"
FROZEN = "{}, which makes the logits, has a weight that is frozen, so that its gradient is not sent"
COMPUTED = "{}, which makes the logits, computes its {} from other parameters (a parametrization, weight norm or pruning)"
ELSEWHERE = "{}, which makes the logits, has a {} that the model uses elsewhere too"


class _Call(NamedTuple):
    """One call of a linear layer.

    Args:
        name: name of the layer
        layer: the layer
        entered: its input, (B, D)
        answer: its output, (B, K)
    """

    name: str
    layer: nn.Linear
    entered: Tensor
    answer: Tensor


class LogitLayer(NamedTuple):
    """The linear layer that computes the logits.

    Args:
        weight: name of the weight
        bias: name of the bias; None where it is absent or not trained
        plain: whether the layer's outputs are the logits. Otherwise the logits are an elementwise non-decreasing function of the outputs,
            such as an activation or a temperature
    """

    weight: str
    bias: str | None
    plain: bool


_FOUND: WeakKeyDictionary[nn.Module, LogitLayer | str] = WeakKeyDictionary()


def logit_layer(seen: Observation) -> LogitLayer:
    """Return the linear layer that computes the logits of the observed model, as `logit_layer_of` finds it.

    Raises:
        UnreadableLabelsError: there is no such layer, with the reason; labels cannot be read from a gradient then.
    """
    shape = (min(seen.batch.size, ENOUGH), *seen.batch.image_shape)
    return logit_layer_of(seen.model, torch.empty(shape, device=seen.device, dtype=seen.dtype))


def logit_layer_of(model: nn.Module, like: Tensor) -> LogitLayer:
    """Return the linear layer that computes the logits of a model.

    Each model is probed once, with random pictures of several kinds; the layer must be the same for all of them. The derivative of the
    logits by the layer's outputs must be the identity, up to a number that is added to all logits, or else diagonal and not negative. The
    derivatives by its weight and bias must be those of W h + b, which excludes a layer that is shared or normalized.

    Args:
        model: the model.
        like: a tensor with the shape (B, C, H, W), device and precision of pictures that the model takes; its values are not used.

    Raises:
        UnreadableLabelsError: there is no such layer, with the reason; labels cannot be read from a gradient then.
    """
    result = _FOUND.get(model)
    if result is None:
        result = _FOUND[model] = _probed(model, like)
    if isinstance(result, str):
        raise UnreadableLabelsError(result)
    return result


def last_layer(seen: Observation) -> tuple[str, str | None]:
    """Return the names of the weight and the bias (or None) of the layer that computes the logits.

    Raises UnreadableLabelsError as `logit_layer` does.
    """
    result = logit_layer(seen)
    return result.weight, result.bias


def _probed(model: nn.Module, like: Tensor) -> LogitLayer | str:
    """Return the layer found with pictures of all kinds, or a sentence that says why there is none."""
    if not any(isinstance(layer, nn.Linear) for layer in model.modules()):
        return NO_LABELS
    rng = generator(0, "logit layer")
    alive = [result for result in (_probed_by(model, x, rng) for x in _pictures(like, rng)) if result != UNREAD.format(DEAD)]
    if not alive:
        return UNREAD.format(DEAD)
    refusals = [result for result in alive if isinstance(result, str)]
    layers = [result for result in alive if isinstance(result, LogitLayer)]
    if refusals or len({(layer.weight, layer.bias) for layer in layers}) > 1:
        return refusals[0] if refusals else UNREAD.format(NONE_MAKES)
    return layers[0]._replace(plain=all(layer.plain for layer in layers))  # an activation may leave some outputs unchanged


def _pictures(like: Tensor, rng: torch.Generator) -> Iterator[Tensor]:
    """Yield batches of noise, of dark noise, of bright noise and of smooth pictures, because a model may compute them differently."""
    shape = like.shape
    noise = [torch.rand(shape, generator=rng) for _ in range(3)]
    coarse = [torch.rand((*shape[:2], 3, 3), generator=rng) for _ in range(2)]
    smooth = [F.interpolate(picture, shape[2:], mode="bilinear") for picture in coarse]
    for x in (noise[0], CONTRAST * noise[1], 1 - CONTRAST * noise[2], *smooth):
        yield x.to(like)


def _probed_by(model: nn.Module, x: Tensor, rng: torch.Generator) -> LogitLayer | str:
    """Return the layer found with pictures x, or a sentence that says why there is none."""
    with exact_arithmetic(), torch.enable_grad(), _watched(model) as calls:
        logits: Tensor = model(x)  # (B, K)
        v, w = (torch.randn(logits.shape, generator=rng).to(logits) for _ in range(2))
        v = v - v.mean(1, keepdim=True)  # a number added to all logits changes no prediction
        alive = not calls
        for call in reversed(calls):
            through, other = (_derivatives(logits, [call.answer], along)[0] for along in (v, w))
            alive = alive or other is None or bool(other.any())
            first, second = (_of_answers(along, call.answer) for along in (v, w))
            if through is None or other is None or first is None or second is None:
                continue
            plain = _same(through, first)
            if plain or (_same(through * second, other * first) and bool((other * second >= 0).all()) and bool(other.any())):
                return _readable(model, call, _derivatives(logits, _parts(call), v), through, plain=plain)
    return UNREAD.format(NONE_MAKES if alive else DEAD)


def _of_answers(v: Tensor, answer: Tensor) -> Tensor | None:
    """Return directions v (B, K) of the logits as directions of a layer's output `answer`; None if its shape is not that of logits.

    The output has the shape (B, K), or (B, 1) for a single output z of two classes, which makes the logits (0, z): v[:, 1:] there.
    """
    if answer.shape == v.shape:
        return v
    return v[:, 1:] if answer.shape == (len(v), 1) and v.shape[1] == 2 else None


def _readable(model: nn.Module, call: _Call, derivatives: list[Tensor | None], through: Tensor, *, plain: bool) -> LogitLayer | str:
    """Return the layer if its parameters' derivatives are those of W h + b, else a sentence that says why it cannot be read.

    Args:
        model: the model.
        call: the layer's call.
        derivatives: by the layer's parameters.
        through: the derivatives of its outputs, (B, K).
        plain: as in `LogitLayer`.
    """
    name = f"{call.name} ({type(call.layer).__name__})" if call.name else type(call.layer).__name__
    parts, names = _parts(call), (f"{call.name}.weight".lstrip("."), f"{call.name}.bias".lstrip("."))
    if not parts[0].requires_grad:
        return UNREAD.format(FROZEN.format(name))
    named: dict[Tensor, str] = {value: known for known, value in model.named_parameters()}
    sums = (through.T @ call.entered, through.sum(0))
    for part, gradient, expected, kind, known in zip(parts, derivatives, sums, ("weight", "bias"), names, strict=False):
        if not part.requires_grad:  # a frozen bias is not sent; the weight suffices
            return LogitLayer(names[0], None, plain)
        if part not in named:
            return UNREAD.format(COMPUTED.format(name, kind))
        if named[part] != known or not _same(gradient, expected):
            return UNREAD.format(ELSEWHERE.format(name, kind))
    return LogitLayer(names[0], names[1] if len(parts) > 1 else None, plain)


def _parts(call: _Call) -> list[Tensor]:
    return [call.layer.weight] if call.layer.bias is None else [call.layer.weight, call.layer.bias]


def _derivatives(logits: Tensor, of: list[Tensor], v: Tensor) -> list[Tensor | None]:
    """Return the derivatives of <v, logits> by the tensors `of`; None for a tensor without derivatives."""
    followed = [value for value in of if value.requires_grad]
    if not followed or not logits.requires_grad:
        return [None] * len(of)
    result = iter(vjp([logits], followed, [v], retain_graph=True, allow_unused=True))
    return [next(result) if value.requires_grad else None for value in of]


def _same(result: Tensor | None, expected: Tensor) -> bool:
    return result is not None and float((result - expected).norm()) <= CLOSE * float(expected.norm())


@contextmanager
def _watched(model: nn.Module) -> Iterator[list[_Call]]:
    """Record, within the block, the calls of linear layers that get a row for each picture, (B, D), in their order."""
    calls = list[_Call]()

    def note(name: str, layer: nn.Linear, entered: Tensor, answer: Tensor) -> Tensor:
        if entered.dim() == 2:
            calls.append(_Call(name, layer, entered.detach().clone(), answer))
        return answer.clone()  # later operations in place then leave the recorded output unchanged

    def hook(name: str) -> object:
        return lambda layer, given, answer: note(name, layer, given[0], answer)

    with ExitStack() as hooks:
        for name, layer in model.named_modules():
            if isinstance(layer, nn.Linear):
                hooks.enter_context(layer.register_forward_hook(hook(name)))  # type: ignore[arg-type]
        yield calls
