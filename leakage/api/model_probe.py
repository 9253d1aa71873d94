"""Trials of how a model can be computed without a change of its numbers: vectorised, in channels-last format, with other weights."""

import warnings

import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.nn import functional as F

from leakage.api.model_copy import again
from leakage.api.model_errors import MODEL_ERRORS
from leakage.api.second_derivative import twice
from leakage.engine.capabilities import Capabilities, set_capabilities
from leakage.engine.stateless import StatelessModel, TwiceDifferentiable

OTHER = 0.9  # the other weights of a trial are the model's weights times this factor
AGAIN = (
    "The model computes layers once more in its backward pass (torch.utils.checkpoint), and would do so with its own weights in place of "
    "those of a client that trains. Turn gradient checkpointing off: the numbers stay the same."
)
ANOTHER = (
    "With other weights in place of its own the model answers another gradient of {} than with the same weights loaded: it keeps what it "
    "has computed of its weights, or reaches them another way. Let forward take each parameter through self, whenever it is called."
)
ROUNDING = 1e-5  # length that float32 gives to a gradient of 0, as a fraction of the longest gradient
CLOSE = 1e-3  # relative difference up to which numbers are the same: sums in another order round differently in float32


def probed(model: nn.Module, x: Tensor) -> Capabilities:
    """Try how the model can be computed on pictures of the shape of x, and return the result.

    The Capabilities say whether it can be vectorised, whether it keeps the channels-last format, which operations have to be rewritten to
    be differentiated twice, and why it may not compute with other weights than those it has.
    """
    rewriting = TwiceDifferentiable()
    with torch.no_grad(), rewriting:
        model(x)
    preliminary = Capabilities(vectorised=False, channels_last=False, rewritten=rewriting.met)
    set_capabilities(model, preliminary)
    fixed = why_fixed(model, x)
    return Capabilities(not fixed and vectorises(model, x), keeps_channels_last(model, x), preliminary.rewritten, fixed)


def vectorises(model: nn.Module, x: Tensor) -> bool:
    """Return whether `torch.func.vmap` computes several guesses at once, with the same numbers as each guess alone."""
    stateless = StatelessModel(model)
    values = {name: value.detach() for name, value in model.named_parameters()}
    weights = {name: torch.stack([value, OTHER * value]).requires_grad_() for name, value in values.items()}
    pictures = torch.stack([x.detach(), 1 - x.detach()])
    try:
        with warnings.catch_warnings():
            # vmap warns if it would compute the guesses one after the other
            warnings.filterwarnings("error", "There is a performance drop")
            batched = vmap(stateless)(weights, pictures)
            single = [stateless({name: value[lane] for name, value in weights.items()}, pictures[lane]) for lane in range(2)]
    except (*MODEL_ERRORS, UserWarning):
        return False
    return all(_close(first, second) for first, second in zip(batched, single, strict=True))


def why_fixed(model: nn.Module, x: Tensor) -> str:
    """Return why the model cannot be called with other weights in place of those it has (torch.func.functional_call); empty if it can.

    For example, a layer that is computed again in the backward pass (gradient checkpointing) would then use the weights it has.
    """
    loaded = again(model)
    with torch.no_grad():
        for value in loaded.parameters():
            value.mul_(OTHER)
    weights = {name: value.detach().clone().requires_grad_() for name, value in loaded.named_parameters()}
    try:
        expected, actual = _gradient(loaded, x), _gradient(model, x, weights)
    except MODEL_ERRORS:  # the model cannot be computed with these weights: that says nothing of other weights
        return ""
    # a gradient that is 0 by construction has the length of a rounding error
    noise = ROUNDING * max(float(value.norm()) for value in expected.values())
    apart = {name: float((actual[name] - value).norm()) for name, value in expected.items() if not _close(actual[name], value)}
    wrong = [name for name, distance in apart.items() if distance > noise]  # NaN is not greater, and counts as no difference
    if not wrong:
        return ""
    try:
        with torch.autograd.graph.disable_saved_tensors_hooks(AGAIN):
            StatelessModel(model).with_own_weights(x.detach().clone())
    except MODEL_ERRORS:
        return AGAIN
    return ANOTHER.format(wrong[0])


def keeps_channels_last(model: nn.Module, x: Tensor) -> bool:
    """Return whether the model computes the same in channels-last memory format.

    The logits and the gradients by parameters and by pictures must be the same up to rounding (CLOSE). It must also be possible to
    differentiate a second time, if it is in the usual format.
    """
    try:
        moved = again(model).to(memory_format=torch.channels_last)
        plain, other = _gradient(model, x), _gradient(moved, x)
    except MODEL_ERRORS:
        return False
    if any(not _close(value, other[name]) for name, value in plain.items()):
        return False
    return _twice(moved, x) is None or _twice(model, x) is not None


def _twice(model: nn.Module, x: Tensor) -> str | None:
    stateless = StatelessModel(model)
    return twice(lambda picture: stateless.with_own_weights(picture).square().sum(), x, list(model.parameters()))


def _gradient(model: nn.Module, x: Tensor, weights: dict[str, Tensor] | None = None) -> dict[str, Tensor]:
    """Return the derivatives of the cross-entropy by each parameter and by the pictures x, and the logits, by name.

    `weights` are used in place of the model's parameters; None: the model's parameters.
    """
    stateless, pictures = StatelessModel(model), x.detach().clone().requires_grad_()
    copied = pictures * 1  # a forward may change the pictures in place
    logits = stateless.with_own_weights(copied) if weights is None else stateless(weights, copied)
    y = torch.arange(len(x), device=x.device) % logits.shape[1]
    inputs = (dict(model.named_parameters()) if weights is None else weights) | {"the pictures": pictures}
    derivatives = torch.autograd.grad(F.cross_entropy(logits, y), list(inputs.values()), allow_unused=True)
    gradients = {
        name: torch.zeros_like(inputs[name]) if gradient is None else gradient for name, gradient in zip(inputs, derivatives, strict=True)
    }
    return gradients | {"the logits": logits.detach()}


def _close(value: Tensor, reference: Tensor) -> bool:
    value, reference = value.detach(), reference.detach()
    return float((value - reference).norm()) <= CLOSE * float(reference.norm()) + torch.finfo(reference.dtype).tiny
