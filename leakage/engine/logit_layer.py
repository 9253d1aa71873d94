"""Which linear layer makes the logits, found by what the model computes, never by a layer's place in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leakage.engine.devices import exact_arithmetic
from leakage.engine.inapplicable import UnreadableLabelsError
from leakage.engine.observation import Observation, generator
from leakage.spec.words import NO_LABELS

CONTRAST = 0.2  # of dark and of bright pictures
CLOSE = 1e-3  # two results of the same sum in float32, in other orders, differ by less than this share
UNREAD = "Labels cannot be read from this update: {}. Grant the labels instead."
NONE_MAKES = "none of the model's linear layers makes its logits"
DEAD = "no linear layer of the model changes its logits on the random pictures that were tried (dead units)"
FROZEN = "{}, which makes the logits, has a weight that is frozen, so that its gradient is not sent"
COMPUTED = "{}, which makes the logits, computes its {} from other parameters (a parametrization, weight norm or pruning)"
ELSEWHERE = "{}, which makes the logits, has a {} that the model uses elsewhere too"


class _Call(NamedTuple):
    """One call of a linear layer: what entered it (B, D), and what it answered (B, K)."""

    name: str
    layer: nn.Linear
    entered: Tensor
    answer: Tensor


class LogitLayer(NamedTuple):
    """Names of a linear layer's weight and bias (None: absent, or not trained), and whether its answers are the logits themselves.

    Else what follows it treats each answer by itself and never turns its direction, as an activation or a temperature does.
    """

    weight: str
    bias: str | None
    plain: bool


_FOUND: WeakKeyDictionary[nn.Module, LogitLayer | str] = WeakKeyDictionary()


def logit_layer(seen: Observation) -> LogitLayer:
    """The linear layer that makes the logits. Each model is probed once, with random pictures of several kinds.

    Which layer makes the logits must not depend on the pictures. Of the logits the derivative by its answers must be the identity, up to a
    number that is added to all logits, or else diagonal and not negative; and the derivatives by its weight and bias must be those of
    W h + b. So a layer that is shared or normalised is none.

    Raises:
        UnreadableLabelsError: no layer is, with the reason; then labels cannot be read from a gradient.
    """
    found = _FOUND.get(seen.model)
    if found is None:
        found = _FOUND[seen.model] = _probed(seen)
    if isinstance(found, str):
        raise UnreadableLabelsError(found)
    return found


def last_layer(seen: Observation) -> tuple[str, str | None]:
    """Names of the weight and the bias (or None) of the layer that makes the logits. Raises UnreadableLabelsError as `logit_layer`."""
    found = logit_layer(seen)
    return found.weight, found.bias


def _probed(seen: Observation) -> LogitLayer | str:
    """The layer, or a sentence that says why there is none."""
    if not any(isinstance(layer, nn.Linear) for layer in seen.model.modules()):
        return NO_LABELS
    rng = generator(0, "logit layer")
    alive = [found for found in (_probed_by(seen, x, rng) for x in _pictures(seen, rng)) if found != UNREAD.format(DEAD)]
    if not alive:
        return UNREAD.format(DEAD)
    refusals = [found for found in alive if isinstance(found, str)]
    layers = [found for found in alive if isinstance(found, LogitLayer)]
    if refusals or len({(layer.weight, layer.bias) for layer in layers}) > 1:
        return refusals[0] if refusals else UNREAD.format(NONE_MAKES)
    return layers[0]._replace(plain=all(layer.plain for layer in layers))  # an activation may leave some answers as they are


def _pictures(seen: Observation, rng: torch.Generator) -> Iterator[Tensor]:
    """Batches of noise, of smooth pictures, of dark and of bright ones: a model may send them ways of their own."""
    shape = seen.batch.shape
    noise = [torch.rand(shape, generator=rng) for _ in range(3)]
    coarse = [torch.rand((*shape[:2], 3, 3), generator=rng) for _ in range(2)]
    smooth = [F.interpolate(one, shape[2:], mode="bilinear") for one in coarse]
    for x in (noise[0], CONTRAST * noise[1], 1 - CONTRAST * noise[2], *smooth):
        yield x.to(seen.device, seen.dtype)


def _probed_by(seen: Observation, x: Tensor, rng: torch.Generator) -> LogitLayer | str:
    """The same, by pictures x."""
    with exact_arithmetic(), torch.enable_grad(), _watched(seen.model) as calls:
        logits: Tensor = seen.model(x)  # (B, K)
        v, w = (torch.randn(logits.shape, generator=rng).to(logits) for _ in range(2))
        v = v - v.mean(1, keepdim=True)  # what is added to all logits changes no prediction
        alive = not calls
        for call in reversed(calls):
            through, other = (_derivatives(logits, [call.answer], along)[0] for along in (v, w))
            alive = alive or other is None or bool(other.any())
            first, second = (_of_answers(along, call.answer) for along in (v, w))
            if through is None or other is None or first is None or second is None:
                continue
            plain = _same(through, first)
            if plain or (_same(through * second, other * first) and bool((other * second >= 0).all()) and bool(other.any())):
                return _readable(seen, call, _derivatives(logits, _parts(call), v), through, plain=plain)
    return UNREAD.format(NONE_MAKES if alive else DEAD)


def _of_answers(v: Tensor, answer: Tensor) -> Tensor | None:
    """Of directions v (B, K) of the logits those of a layer's answers: one answer z for two classes makes the logits (0, z)."""
    if answer.shape == v.shape:
        return v
    return v[:, 1:] if answer.shape == (len(v), 1) and v.shape[1] == 2 else None


def _readable(seen: Observation, call: _Call, found: list[Tensor | None], through: Tensor, *, plain: bool) -> LogitLayer | str:
    """The layer, if the derivatives of its parameters are those of W h + b, given those of its answers (B, K); else a sentence."""
    name = f"{call.name} ({type(call.layer).__name__})" if call.name else type(call.layer).__name__
    parts, own = _parts(call), (f"{call.name}.weight".lstrip("."), f"{call.name}.bias".lstrip("."))
    if not parts[0].requires_grad:
        return UNREAD.format(FROZEN.format(name))
    named: dict[Tensor, str] = {value: known for known, value in seen.model.named_parameters()}
    sums = (through.T @ call.entered, through.sum(0))
    for part, gradient, expected, kind, known in zip(parts, found, sums, ("weight", "bias"), own, strict=False):
        if not part.requires_grad:  # a frozen bias is not sent; the weight says enough
            return LogitLayer(own[0], None, plain)
        if part not in named:
            return UNREAD.format(COMPUTED.format(name, kind))
        if named[part] != known or not _same(gradient, expected):
            return UNREAD.format(ELSEWHERE.format(name, kind))
    return LogitLayer(own[0], own[1] if len(parts) > 1 else None, plain)


def _parts(call: _Call) -> list[Tensor]:
    return [call.layer.weight] if call.layer.bias is None else [call.layer.weight, call.layer.bias]


def _derivatives(logits: Tensor, of: list[Tensor], v: Tensor) -> list[Tensor | None]:
    """Those of <v, logits>, None where they are not followed."""
    followed = [value for value in of if value.requires_grad]
    found = iter(
        torch.autograd.grad(logits, followed, v, retain_graph=True, allow_unused=True) if logits.requires_grad and followed else ()
    )
    return [next(found, None) if value.requires_grad else None for value in of]


def _same(found: Tensor | None, expected: Tensor) -> bool:
    return found is not None and float((found - expected).norm()) <= CLOSE * float(expected.norm())


@contextmanager
def _watched(model: nn.Module) -> Iterator[list[_Call]]:
    """The calls of linear layers on pictures one by one, in their order."""
    calls = list[_Call]()

    def note(name: str, layer: nn.Linear, entered: Tensor, answer: Tensor) -> Tensor:
        if entered.dim() == 2:
            calls.append(_Call(name, layer, entered.detach().clone(), answer))
        return answer.clone()  # so that what follows in place leaves what was noted as it is

    def hook(name: str) -> object:
        return lambda layer, given, answer: note(name, layer, given[0], answer)

    handles = [
        layer.register_forward_hook(hook(name))  # type: ignore[arg-type]
        for name, layer in model.named_modules()
        if isinstance(layer, nn.Linear)
    ]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()
