"""The check of pictures, labels and updates from the caller: what the engine needs, or an error that says what is wrong."""

import torch
from torch import Tensor

from leakage.engine.core import Params

HALF = (torch.float16, torch.bfloat16)
ROUNDING = 1e-5  # distance from [0, 1] that counts as a rounding error: resizing white in float32 makes 1.0000002


def pictures(x: object) -> Tensor:
    """Check pictures (B, C, H, W) in [0, 1] and return them detached. Raises TypeError, ValueError."""
    if not isinstance(x, Tensor):
        raise TypeError(
            f"x must be a tensor of pictures (B, C, H, W) in [0, 1]; got a {type(x).__name__}. torchvision.transforms.functional.to_tensor "
            "makes one picture of a photograph or an array (H, W, C), and torch.stack a batch of several."
        )
    check_dense("x", x)
    x = x.detach().resolve_neg()
    if x.dtype in HALF:
        raise TypeError(f"x is {x.dtype}: half precision hides what an attack looks for. Give float32 or float64.")
    if not x.is_floating_point():
        raise TypeError(f"x is {x.dtype}; expected are numbers from 0 to 1 as float32 or float64. Divide bytes by 255.")
    if x.dim() != 4 or 0 in x.shape:
        raise ValueError(f"x must have the shape (B, C, H, W), none of them 0; got {tuple(x.shape)}. One picture is x[None].")
    if not bool(x.isfinite().all()):
        raise ValueError("x holds numbers that are not finite (NaN or infinity). Give pictures in [0, 1].")
    low, high = float(x.min()), float(x.max())
    if low < -ROUNDING or high > 1 + ROUNDING:
        raise ValueError(
            f"x must lie in [0, 1]; got {low:.7g} to {high:.7g}. Give raw pixels, and what normalises them as normalization=(mean, std)."
        )
    return recordable(x) if low >= 0 and high <= 1 else recordable(x).clamp(0, 1)


def labels(y: object, x: Tensor, num_classes: int, *, custom: bool = False) -> Tensor:
    """Check labels; return them as int64 (B,), or as numbers (B, K) in the precision of x. Raises TypeError, ValueError.

    Args:
        y: the labels from the caller.
        x: the pictures (B, C, H, W).
        num_classes: K.
        custom: whether the caller gave a loss for these labels; else numbers (B, K) must be probabilities.
    """
    if not isinstance(y, Tensor) or y.is_complex() or y.dtype == torch.bool or (y.is_floating_point() and y.dim() != 2):
        kind = y.dtype if isinstance(y, Tensor) else type(y).__name__
        raise TypeError(
            f"y must be a tensor of whole numbers, the class of each picture, or of probabilities (B, K); got {kind}. "
            "torch.tensor makes one of a list or an array."
        )
    check_dense("y", y)
    wanted = (len(x), num_classes) if y.is_floating_point() else (len(x),)
    if y.shape != wanted:
        what = "probabilities" if y.is_floating_point() else "label"
        each = f"{num_classes} {what}" if y.is_floating_point() else f"one {what}"
        remedy = " One-hot rows are probabilities: give them as floating-point numbers." if y.shape == (len(x), num_classes) else ""
        raise ValueError(f"y must have {each} for each of the {len(x)} pictures, shape {wanted}; got {tuple(y.shape)}.{remedy}")
    if y.device != x.device:
        raise ValueError(f"y lies on {y.device} and x on {x.device}. Move both to one device.")
    if y.is_floating_point():
        return _probabilities(recordable(y).to(x.dtype), custom=custom)
    low, high = int(y.min()), int(y.max())
    if low < 0 or high >= num_classes:
        raise ValueError(f"Labels must lie in 0 to {num_classes - 1}, the model's classes; got {low if low < 0 else high}.")
    return recordable(y).long()


def _probabilities(y: Tensor, *, custom: bool) -> Tensor:
    """Check numbers (B, K); unless the caller gave a loss (`custom`), each row must be a distribution over the classes."""
    if not bool(y.isfinite().all()):
        raise ValueError("y holds numbers that are not finite (NaN or infinity). Give probabilities.")
    sums = y.sum(1)
    if not custom and (bool((y < 0).any()) or not torch.allclose(sums, torch.ones_like(sums), atol=1e-4)):
        wrong = int(((y < 0).any(1) | ((sums - 1).abs() > 1e-4)).nonzero()[0])
        raise ValueError(
            f"y[{wrong}] is no distribution over classes: its numbers must be at least 0 and sum to 1; the least is "
            f"{float(y[wrong].min()):g} and the sum {float(sums[wrong]):g}. "
            "For several labels in one picture say by loss= which loss takes them."
        )
    return y


def check_dense(name: str, value: Tensor) -> None:
    """Raise TypeError for a tensor that is nested, sparse or without data (device meta)."""
    kind = "a nested one" if value.is_nested else "one of device meta" if value.is_meta else f"one of layout {value.layout}"
    if value.is_nested or value.is_meta or value.layout != torch.strided:
        raise TypeError(
            f"{name} must be a dense tensor that holds its numbers; got {kind}. Convert it: to_dense(), or torch.stack of its parts."
        )


def recordable(value: Tensor) -> Tensor:
    """Return the same numbers as a tensor that autograd can record; a tensor of `torch.inference_mode()` is copied."""
    return value.clone() if value.is_inference() else value.detach()


def check_length(update: Params) -> None:
    """Raise ValueError for an update of length (norm) 0: one that is zero everywhere."""
    if all(not bool(value.any()) for value in update.values()):
        raise ValueError("The update is zero everywhere (norm 0): it says nothing, so there is nothing to attack.")
