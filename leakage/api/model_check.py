"""The check of a model from the caller: a copy that can be attacked, or an error that says what cannot work."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack

import torch
from torch import Tensor, nn

from leakage.api.model_copy import check_parameters, check_reached, copied, freeze
from leakage.api.model_errors import MODEL_ERRORS, failing_layer, first_line, layer_name
from leakage.api.model_probe import probed
from leakage.api.normalization import Constants, constants_of
from leakage.engine.capabilities import set_capabilities
from leakage.engine.devices import exact_arithmetic
from leakage.engine.normalise import normalise_input
from leakage.engine.observation import generator
from leakage.engine.stateless import StatelessModel

DRAWS = 4  # of large random weights; with these, a linear layer would have outputs outside [0, 1]
NO_LOGITS = "The model answers probabilities; expected are logits, as cross-entropy takes them. Leave out its {}."


@exact_arithmetic()
def prepared(model: nn.Module, x: Tensor, normalization: Constants | None) -> nn.Module:
    """Return a copy of the model in eval mode that normalises by itself; its parameters are those that training on x changes.

    A client never sends frozen and unused parameters: in the copy they are buffers. The copy also stores how it can be computed
    (`engine.capabilities`).

    Args:
        model: the caller's network, which stays unchanged.
        x: pictures (B, C, H, W) in [0, 1], in the precision of the model.
        normalization: mean and standard deviation of the pictures; None if they enter the model as they are.

    Raises:
        ValueError, TypeError: where the model cannot be attacked.
    """
    check_parameters(model, x)
    with torch.random.fork_rng(devices=[x.device] if x.device.type == "cuda" else []):
        copy = copied(model)
        if not any(True for _ in copy.parameters()):
            raise ValueError("The model has no parameter that is trained: a client would send nothing. Unfreeze some layers.")
        if normalization is not None:
            mean, std = (part.to(x.device, x.dtype) for part in constants_of(normalization, x.shape[1]))
            normalise_input(copy, mean, std)
        before = {name: value.detach().clone() for name, value in copy.named_parameters()}
        _take_logits(copy, x)
        _keep_input(copy, x)
        logits = outputs(copy, x)
        _check_kept(copy, before)
        check_reached(model, logits)
        if not logits.requires_grad:
            raise ValueError("The logits do not depend on the model's parameters in a way that can be differentiated. Do not detach them.")
        _freeze_unused(copy, logits)
        _check_steady(copy, x)
        set_capabilities(copy, probed(copy, x))
    return copy


def outputs(model: nn.Module, x: Tensor) -> Tensor:
    """Return the logits (B, K), K >= 2, of pictures x (B, C, H, W). Raises TypeError, ValueError where the model gives none."""
    try:
        logits = model(x)
    except MODEL_ERRORS as error:
        where = failing_layer(model, error)
        at = f" at {where}" if where and not where.startswith(type(model).__name__) else ""
        raise ValueError(f"The model does not take pictures of shape {tuple(x.shape)}: it fails{at} ({first_line(error)}).") from None
    if not isinstance(logits, Tensor):
        kind = type(logits).__name__
        raise TypeError(
            f"The model answers a {kind}; expected is one tensor of logits (B, K), or an object with `logits`. Wrap it so that only the "
            "logits come out."
        )
    if logits.dim() != 2 or len(logits) != len(x) or logits.shape[1] < 2:
        raise ValueError(
            f"The model answers shape {tuple(logits.shape)} for {len(x)} pictures; expected are logits (B, K) with K >= 2, a row for "
            "each picture. For one output z give the two logits (0, z)."
        )
    if not logits.is_floating_point():
        raise TypeError(f"The model answers {logits.dtype}; expected are logits as floating-point numbers, not classes.")
    if not bool(logits.isfinite().all()):
        raise ValueError("The model answers numbers that are not finite (NaN or infinity) for these pictures. Load sound weights.")
    if bool((logits >= 0).all()):
        if torch.allclose(logits.sum(1), torch.ones_like(logits[:, 0]), atol=1e-4):
            raise ValueError(NO_LOGITS.format("softmax"))
        if bool((logits <= 1).all()) and _always_between_0_and_1(model, x):
            raise ValueError(NO_LOGITS.format("sigmoid"))
    return logits


# ---------------------------------------------------------------- helpers


def _take_logits(model: nn.Module, x: Tensor) -> None:
    """Make the model return its logits alone, if it returns a dictionary or an object that has them as `logits`."""
    try:
        with torch.no_grad():
            answer = model(x.detach().clone())
    except MODEL_ERRORS:  # `outputs` explains it
        return
    if _logits_in(answer) is not None:
        model.register_forward_hook(lambda _model, _given, answer: _logits_in(answer))


def _logits_in(answer: object) -> Tensor | None:
    """Return the tensor that an output has as `logits`; None for a tensor, and where there is none."""
    if isinstance(answer, Tensor):
        return None
    logits = answer.get("logits") if isinstance(answer, Mapping) else getattr(answer, "logits", None)
    return logits if isinstance(logits, Tensor) else None


def _keep_input(model: nn.Module, x: Tensor) -> None:
    """Make the model compute on a copy of its input, if its forward changes the input in place."""
    given = x.detach().clone()
    before = given._version
    outputs(model, given)
    if given._version != before or not torch.equal(given, x):
        model.register_forward_pre_hook(lambda _model, given: (given[0].clone(), *given[1:]), prepend=True)


def _always_between_0_and_1(model: nn.Module, x: Tensor) -> bool:
    """Return whether all outputs lie in [0, 1] for each of DRAWS draws of large random weights."""
    stateless, rng = StatelessModel(model), generator(0, "probabilities")
    with torch.no_grad():
        for _ in range(DRAWS):
            weights = {name: 10 * torch.randn(value.shape, generator=rng).to(value) for name, value in model.named_parameters()}
            try:
                answers = stateless(weights, x.detach().clone())
            except MODEL_ERRORS:
                return False
            if bool(((answers < 0) | (answers > 1)).any()):
                return False
    return True


def _freeze_unused(model: nn.Module, logits: Tensor) -> None:
    """Turn the parameters that the logits do not depend on into buffers."""
    names, values = zip(*model.named_parameters(), strict=True)
    try:
        used = torch.autograd.grad(logits.sum(), values, allow_unused=True)
    except MODEL_ERRORS as error:
        raise ValueError(
            f"The model cannot be differentiated ({first_line(error)}). Exchange the operation that cannot, "
            "or take off the hooks that layers have for their backward pass."
        ) from None
    for name, gradient in zip(names, used, strict=True):
        if gradient is None:
            freeze(model, name)


def _check_kept(model: nn.Module, before: dict[str, Tensor]) -> None:
    """Raise ValueError where calling the model has changed a parameter."""
    for name, value in model.named_parameters():
        if not _equal(before[name], value):
            raise ValueError(
                f"Parameter {name} is changed by the model's own forward, as max_norm of an embedding does: what a client sends would hold "
                "that change too. Take it out of forward."
            )


def _check_steady(model: nn.Module, x: Tensor) -> None:
    """Raise ValueError where a call changes buffers, draws random numbers, or gives other outputs for equal pictures."""
    before = {name: value.clone() for name, value in model.named_buffers()}
    with torch.no_grad():
        rng_state = torch.get_rng_state()
        first, second = _answers(model, x), _answers(model, x)
        if torch.is_grad_enabled():
            raise ValueError("The model's forward switches derivatives on and leaves them on. Write `with torch.enable_grad():` there.")
        drawn = not torch.equal(torch.get_rng_state(), rng_state)
    for name, value in model.named_buffers():
        if not _equal(before[name], value):
            raise ValueError(
                f"Buffer {name} changes whenever the model is called in eval mode: nobody could replay the client. Fix it first."
            )
    for (name, layer, answer), (_, _, again) in zip(first, second, strict=False):
        if not _equal(answer, again):
            what = layer_name(name, layer)
            raise ValueError(
                f"{what[:1].upper()}{what[1:]} answers differently to equal pictures, also in eval mode: take its randomness out of it."
            )
    if drawn:
        raise ValueError("The model draws from torch's random numbers, or seeds them, also in eval mode: take that out of its forward.")


def _equal(first: Tensor, second: Tensor) -> bool:
    """Return whether two tensors hold the same numbers; NaN equals NaN."""
    return first.shape == second.shape and bool(((first == second) | ((first != first) & (second != second))).all())


def _answers(model: nn.Module, x: Tensor) -> list[tuple[str, nn.Module, Tensor]]:
    """Return name, layer and output tensor of every call of a layer, inner layers before the layers that contain them."""
    answers: list[tuple[str, nn.Module, Tensor]] = []

    def note(name: str) -> Callable[..., None]:
        return lambda layer, _given, out: answers.append((name, layer, out.clone())) if isinstance(out, Tensor) else None

    with ExitStack() as hooks:
        for name, layer in model.named_modules():
            hooks.enter_context(layer.register_forward_hook(note(name)))
        model(x)
    return answers
