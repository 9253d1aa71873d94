"""Whether a model can be attacked as it is: a copy that is ready for it, or a sentence that names what cannot work."""

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional as F

from leakage.engine.core import Normalise

Constants = tuple[Sequence[float], Sequence[float]]  # mean and standard deviation of each channel
FLOATS = (torch.float32, torch.float64)


def prepared(model: nn.Module, x: Tensor, normalization: Constants | None) -> nn.Module:
    """A copy of the model in eval mode that normalises by itself, whose parameters are those that training it on x changes.

    Frozen and unused parameters are never sent by a client: in the copy they are buffers. Raises ValueError, TypeError.
    """
    _check_parameters(model, x)
    try:
        own = copy.deepcopy(model)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"The model cannot be copied ({error}). Detach tensors that it keeps, or build it anew.") from None
    own = own.eval().requires_grad_(True)
    for name, value in model.named_parameters():
        if not value.requires_grad:
            _freeze(own, name)
    if normalization:
        own = _normalising(own, normalization, x.shape[1])
    logits = outputs(own, x)
    if not any(True for _ in own.parameters()):
        raise ValueError("The model has no parameter that is trained: a client would send nothing. Unfreeze some layers.")
    if not logits.requires_grad:
        raise ValueError("The logits do not depend on the model's parameters in a way that can be differentiated. Do not detach them.")
    used = torch.autograd.grad(logits.sum(), list(own.parameters()), allow_unused=True)
    for name, slope in zip([name for name, _ in own.named_parameters()], used, strict=True):
        if slope is None:
            _freeze(own, name)
    _check_steady(own, x)
    return own


def outputs(model: nn.Module, x: Tensor) -> Tensor:
    """The logits (B, K), K >= 2. Raises TypeError, ValueError."""
    try:
        logits = model(x)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        raise ValueError(f"The model does not take pictures of shape {tuple(x.shape)}: {error}") from None
    if not isinstance(logits, Tensor):
        kind = type(logits).__name__
        raise TypeError(f"The model answers a {kind}; expected is one tensor of logits (B, K). Wrap it so that only the logits come out.")
    if logits.dim() != 2 or len(logits) != len(x) or logits.shape[1] < 2:
        raise ValueError(
            f"The model answers shape {tuple(logits.shape)} for {len(x)} pictures; expected are logits (B, K) with K >= 2, a row for "
            "each picture. For one output z give the two logits (0, z)."
        )
    if len(x) and bool((logits >= 0).all()) and torch.allclose(logits.sum(1), torch.ones_like(logits[:, 0]), atol=1e-4):
        raise ValueError("The model answers probabilities; expected are logits, as cross-entropy takes them. Leave out its softmax.")
    return logits


def check_second_derivative(model: nn.Module, x: Tensor, y: Tensor) -> None:
    """Attacks that search differentiate the gradient once more. Raises ValueError naming the layer that cannot."""
    why = _twice(lambda picture: F.cross_entropy(model(picture), y), x, list(model.parameters()))
    if why is None:
        return
    for name, layer, given in _leaf_calls(model, x):
        own = [value for value in layer.parameters() if value.requires_grad]
        if given.is_floating_point() and _twice(_Scalar(layer), given, own) is not None:
            raise ValueError(_no_second(f"layer {name} ({type(layer).__name__})", why))
    raise ValueError(_no_second(f"{type(model).__name__}.forward", why))


def vectorises(model: nn.Module, x: Tensor) -> bool:
    """Whether several guesses can be played at once: `torch.func.vmap` knows every operation of the model."""
    held = {name: value.detach().expand(2, *value.shape) for name, value in model.named_parameters()}
    try:
        with torch.no_grad():
            both = vmap(lambda own, pictures: functional_call(model, own, (pictures,)))(held, x.detach().expand(2, *x.shape))
            return torch.allclose(both[0], model(x), rtol=1e-3, atol=1e-4)
    except (RuntimeError, ValueError, TypeError):
        return False


# ---------------------------------------------------------------- parts


def _check_parameters(model: nn.Module, x: Tensor) -> None:
    for name, value in model.named_parameters():
        if value.dtype not in FLOATS:
            raise TypeError(f"Parameter {name} is {value.dtype}; expected is float32 or float64. Call model.float() first.")
        if value.device != x.device:
            raise ValueError(f"Parameter {name} lies on {value.device} and the pictures on {x.device}. Move both to one device.")
        if not bool(value.detach().isfinite().all()):
            raise ValueError(f"Parameter {name} holds numbers that are not finite. Load sound weights.")
    if len({value.dtype for value in model.parameters()}) > 1:
        raise TypeError("The model mixes float32 and float64. Call model.float() or model.double() first.")


def _freeze(model: nn.Module, name: str) -> None:
    """A parameter as a buffer of the same name, wherever the model holds it."""
    value = model.get_parameter(name)
    for layer in model.modules():
        for own in [own for own, held in layer._parameters.items() if held is value]:
            del layer._parameters[own]
            layer.register_buffer(own, value.detach(), persistent=False)


def _normalising(model: nn.Module, constants: Constants, channels: int) -> nn.Module:
    """The model behind (x - mean) / std, its parameters under their own names."""
    mean, std = (list(map(float, values)) for values in constants)
    if len(mean) != channels or len(std) != channels or not all(value > 0 for value in std):
        raise ValueError(
            f"normalization must be (mean, std) with {channels} numbers each, one for every channel, std above 0; got {constants!r}."
        )
    some = next(model.parameters())
    first = Normalise(mean, std).to(some)
    if isinstance(model, nn.Sequential):
        return nn.Sequential(OrderedDict([("normalise", first), *model.named_children()])).eval()
    if hasattr(model, "normalise"):
        raise ValueError("The model has a member called normalise, the name that its normalization would get. Rename one of them.")
    model.add_module("normalise", first)
    model.register_forward_pre_hook(_through_normalise)
    return model


def _through_normalise(model: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    normalise: Normalise = model.normalise  # type: ignore[assignment]
    return (normalise(given[0]), *given[1:])


def _check_steady(model: nn.Module, x: Tensor) -> None:
    """The same pictures must give the same logits, and leave the model as it was."""
    before = {name: value.clone() for name, value in model.named_buffers()}
    with torch.no_grad(), torch.random.fork_rng(devices=[x.device] if x.device.type == "cuda" else []):
        first, second = _answers(model, x), _answers(model, x)
    for name, value in model.named_buffers():
        if not torch.equal(before[name], value):
            raise ValueError(
                f"Buffer {name} changes whenever the model is called in eval mode: nobody could replay the client. Fix it first."
            )
    for (name, layer, one), (_, _, other) in zip(first, second, strict=False):
        if not torch.equal(one, other):
            what = f"Layer {name} ({type(layer).__name__})" if name else f"{type(layer).__name__}.forward"
            raise ValueError(f"{what} answers differently to equal pictures, also in eval mode: take its randomness out of it.")


def _answers(model: nn.Module, x: Tensor) -> list[tuple[str, nn.Module, Tensor]]:
    """What every layer answers, innermost first."""
    found: list[tuple[str, nn.Module, Tensor]] = []

    def note(name: str) -> Callable[..., None]:
        return lambda layer, _given, out: found.append((name, layer, out.clone())) if isinstance(out, Tensor) else None

    with _hooked(model, lambda name, layer: layer.register_forward_hook(note(name))):
        model(x)
    return found


def _leaf_calls(model: nn.Module, x: Tensor) -> list[tuple[str, nn.Module, Tensor]]:
    """The innermost layers in the order in which they are called, with what enters each."""
    found: list[tuple[str, nn.Module, Tensor]] = []

    def note(name: str) -> Callable[..., None]:
        return lambda layer, given: found.append((name, layer, given[0].detach())) if given and isinstance(given[0], Tensor) else None

    with torch.no_grad(), _hooked(model, lambda n, layer: None if any(layer.children()) else layer.register_forward_pre_hook(note(n))):
        model(x)
    return found


@contextmanager
def _hooked(model: nn.Module, hook: Callable[[str, nn.Module], torch.utils.hooks.RemovableHandle | None]) -> Iterator[None]:
    handles = [hook(name, layer) for name, layer in model.named_modules()]
    try:
        yield
    finally:
        for handle in handles:
            if handle:
                handle.remove()


def _twice(function: Callable[[Tensor], Tensor], x: Tensor, leaves: Sequence[Tensor]) -> str | None:
    """Why the derivative of a derivative cannot be had; None where it can."""
    x = x.detach().clone().requires_grad_()
    try:
        first = torch.autograd.grad(function(x), [x, *leaves], create_graph=True, allow_unused=True)
        length = torch.stack([slope.square().sum() for slope in first if slope is not None and slope.requires_grad] or [x.sum() * 0]).sum()
        if length.requires_grad:  # backward, since autograd.grad with respect to x passes by what cannot be differentiated, without a word
            length.backward()
    except (RuntimeError, NotImplementedError) as error:
        return str(error).split("\n")[0]
    finally:
        for leaf in leaves:
            leaf.grad = None
    return None if first[0] is not None else "its output does not depend on the picture in a way that can be differentiated"


@dataclass(frozen=True)
class _Scalar:
    """A layer whose answer is summed up."""

    layer: nn.Module

    def __call__(self, entering: Tensor) -> Tensor:
        out = self.layer(entering)
        return (out if isinstance(out, Tensor) else out[0]).square().sum()


def _no_second(what: str, why: str) -> str:
    return f"{what} has no second derivative, which this attack needs ({why}). Exchange it, or choose an attack that solves equations."
