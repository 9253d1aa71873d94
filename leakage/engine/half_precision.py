"""Mixed precision: the layers of a model compute in 16 bits, while its weights and their gradient keep 32 bits."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

_LOSS_SCALE: ContextVar[Tensor | None] = ContextVar("loss_scale", default=None)


@contextmanager
def half_precision(device: torch.device, dtype: torch.dtype, loss_scale: Tensor | None = None) -> Iterator[None]:
    """Compute gradients within the block in 16 bits (`torch.autocast`); a model in float64 is not affected.

    Args:
        device: the device of the model.
        dtype: torch.float16 or torch.bfloat16.
        loss_scale: the factor () of the loss, by which the gradient is divided afterwards, so that small numbers in it do not become 0 in
            float16, as `torch.amp.GradScaler` does; None: 1.
    """
    before = _LOSS_SCALE.set(loss_scale)
    try:
        with torch.autocast(device.type, dtype, cache_enabled=False):
            yield
    finally:
        _LOSS_SCALE.reset(before)


def loss_scale() -> Tensor | None:
    """Return the factor () by which the loss is to be multiplied and its gradient to be divided; None: 1."""
    return _LOSS_SCALE.get()


def computes_in_half(device: torch.device) -> bool:
    """Return whether models on this device compute in 16 bits now."""
    return torch.is_autocast_enabled(device.type)
