"""How torch computes: the device of a run, float64 where a device has none, exact arithmetic, derivatives, randomness on the device."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor

CPU = torch.device("cpu")
FUSED = ("flash", "mem_efficient", "cudnn")  # kernels of scaled dot-product attention
T = TypeVar("T")


def best_device() -> torch.device:
    """CUDA, then MPS, then CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps") if torch.backends.mps.is_available() else CPU


def device_for(dtype: torch.dtype, best: torch.device) -> torch.device:
    """Where tensors of this precision are computed, if `best` is there: Apple's MPS has no float64.

    >>> device_for(torch.float64, torch.device("mps")), device_for(torch.float64, torch.device("cuda"))
    (device(type='cpu'), device(type='cuda'))
    """
    return CPU if best.type == "mps" and dtype == torch.float64 else best


def double(value: Tensor) -> Tensor:
    """The same numbers in float64, on the CPU where their device has none."""
    return value.to(device_for(torch.float64, value.device)).double()


def device_generator(rng: torch.Generator, device: torch.device) -> torch.Generator:
    """A generator that draws on `device`, seeded by `rng`; on the CPU `rng` itself. It copies nothing to the device, draw after draw."""
    if device.type == "cpu":
        return rng
    return torch.Generator(device).manual_seed(int(torch.randint(2**62, (), generator=rng)))


@contextmanager
def exact_arithmetic() -> Iterator[None]:
    """On a GPU: float32 with all its 24 bits, and the same convolution kernels every time. Anywhere: attention by its formula.

    TF32 keeps 11 bits of a factor, an error of 5e-4: torch lets convolutions use it unless told, and the gradients that an attack compares
    would differ by more than what it looks for. The fused kernels of attention cannot be differentiated twice, as a search does it. What
    was set before holds again afterwards.
    """
    cudnn: Any = torch.backends.cudnn  # whose types leave these attributes out
    matmul: Any = torch.backends.cuda.matmul
    wanted: list[tuple[Any, str, object]] = [(cudnn, "deterministic", True), (cudnn, "benchmark", False)]
    if hasattr(cudnn, "conv"):
        wanted += [(part, "fp32_precision", "ieee") for part in (matmul, cudnn.conv, cudnn.rnn)]
    else:  # before torch 2.9
        wanted += [(part, "allow_tf32", False) for part in (matmul, cudnn)]
    before = [getattr(part, name) for part, name, _ in wanted]
    fused = [(one, getattr(torch.backends.cuda, f"{one}_sdp_enabled")()) for one in FUSED]
    fast = torch.backends.mha.get_fastpath_enabled()
    try:
        for one in FUSED:
            getattr(torch.backends.cuda, f"enable_{one}_sdp")(False)
        torch.backends.mha.set_fastpath_enabled(False)
        for part, name, value in wanted:
            setattr(part, name, value)
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for one, enabled in fused:
            getattr(torch.backends.cuda, f"enable_{one}_sdp")(enabled)
        for (part, name, _), value in zip(wanted, before, strict=True):
            setattr(part, name, value)


@contextmanager
def differentiable() -> Iterator[None]:
    """Derivatives are recorded, also under the caller's `torch.no_grad()` or `torch.inference_mode()`, which hold again afterwards."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


def played_exactly(moments: Iterator[T]) -> Iterator[T]:
    """The same, each worked out in `exact_arithmetic`: between two of them what the caller has set holds."""
    while True:
        with exact_arithmetic():
            moment = next(moments, None)
        if moment is None:
            return
        yield moment
