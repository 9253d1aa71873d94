"""The constants of a normalization in every form that callers use: numbers, rows of an array, a transform, a dictionary."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

Constants = Sequence[Any] | Mapping[str, Any] | Tensor  # (mean, std), each a number or a number for each channel; or an object with both
EXPECTED = "normalization must be (mean, std) with {} numbers each, one for every channel, std above 0; got {}."


def constants_of(given: object, channels: int) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of each channel, (C,) each, in float64. A single number stands for all channels.

    Args:
        given: (mean, std); an array or a tensor of two rows; an object or a dictionary with `mean` and `std`, as transforms.Normalize is.
        channels: C.

    Raises:
        ValueError: when the value is none of these, or does not fit the channels; the message shows the form that is expected.

    Example:
        >>> [part.tolist() for part in constants_of((0.5, 0.25), 1)]
        [[0.5], [0.25]]
    """
    refusal = ValueError(EXPECTED.format(channels, _shown(given)))
    pair = _pair(given)
    if pair is None:
        raise refusal
    mean, std = (_numbers(values, channels) for values in pair)
    if mean is None or std is None or not bool(mean.isfinite().all() and std.isfinite().all() and (std > 0).all()):
        raise refusal
    return mean, std


def _pair(given: object) -> tuple[object, object] | None:
    """Return mean and standard deviation as the caller wrote them; None where the value does not consist of two parts."""
    if isinstance(given, Mapping):
        return (given["mean"], given["std"]) if {"mean", "std"} <= given.keys() else None
    if isinstance(given, str | bytes):
        return None
    mean, std = getattr(given, "mean", None), getattr(given, "std", None)
    if mean is not None and std is not None and not callable(mean) and not callable(std):
        return mean, std
    if not isinstance(given, Iterable) or (isinstance(given, Tensor) and given.dim() == 0):
        return None
    try:
        parts = list(given)
    except TypeError:  # an array without dimensions
        return None
    return (parts[0], parts[1]) if len(parts) == 2 else None


def _numbers(values: object, channels: int) -> Tensor | None:
    """Return a number for each channel, (C,); None where the values are no numbers, or a sequence of another length."""
    plain = values if hasattr(values, "__array__") or not isinstance(values, Iterable) else list(values)
    try:
        flat = torch.as_tensor(plain, dtype=torch.float64).detach().cpu().flatten()
    except (TypeError, ValueError, RuntimeError):
        return None
    if isinstance(values, bool | str | bytes):
        return None
    single = not isinstance(values, Iterable) or (isinstance(values, Tensor) and values.dim() == 0)
    return flat.expand(channels).clone() if single and len(flat) == 1 else flat if len(flat) == channels else None


def _shown(given: object) -> str:
    text = " ".join(repr(given).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
