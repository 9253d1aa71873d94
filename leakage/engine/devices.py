"""How torch computes: the device of a run, float64 where a device lacks it, exact arithmetic, derivatives, random numbers on the device."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

CPU = torch.device("cpu")
T = TypeVar("T")


def best_device() -> torch.device:
    """Return the fastest device that this machine has: CUDA, else MPS, else the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps") if torch.backends.mps.is_available() else CPU


def device_for(dtype: torch.dtype, best: torch.device) -> torch.device:
    """Return the device for tensors of this precision: `best`, or the CPU for float64 on Apple's MPS, which has no float64.

    >>> device_for(torch.float64, torch.device("mps")), device_for(torch.float64, torch.device("cuda"))
    (device(type='cpu'), device(type='cuda'))
    """
    return CPU if best.type == "mps" and dtype == torch.float64 else best


def double(value: Tensor) -> Tensor:
    """Convert a tensor to float64, on the CPU where its device has no float64."""
    return value.to(device_for(torch.float64, value.device)).double()


def device_generator(rng: torch.Generator, device: torch.device) -> torch.Generator:
    """Return a random generator on `device`, seeded by `rng`; on the CPU return `rng` itself.

    A generator on the device saves a copy to the device for each draw.
    """
    if device.type == "cpu":
        return rng
    return torch.Generator(device).manual_seed(int(torch.randint(2**62, (), generator=rng)))


@contextmanager
def exact_arithmetic() -> Iterator[None]:
    """Compute within the block with full float32, deterministic convolution kernels (both on a GPU) and unfused attention.

    TF32 keeps 11 bits of a factor, an error of 5e-4. By default, torch lets convolutions use TF32; the gradients that an attack compares
    would then differ by more than the differences that the attack looks for. The fused kernels of attention cannot be differentiated twice,
    which a search needs. The caller's settings are restored afterwards.
    """
    cudnn: Any = torch.backends.cudnn  # torch's type hints lack these attributes
    matmul: Any = torch.backends.cuda.matmul
    wanted: list[tuple[Any, str, object]] = [(cudnn, "deterministic", True), (cudnn, "benchmark", False)]
    if hasattr(cudnn, "conv"):
        wanted += [(part, "fp32_precision", "ieee") for part in (matmul, cudnn.conv, cudnn.rnn)]
    else:  # before torch 2.9
        wanted += [(part, "allow_tf32", False) for part in (matmul, cudnn)]
    before = [getattr(part, name) for part, name, _ in wanted]
    fast = torch.backends.mha.get_fastpath_enabled()
    try:
        torch.backends.mha.set_fastpath_enabled(False)
        for part, name, value in wanted:
            setattr(part, name, value)
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for (part, name, _), value in zip(wanted, before, strict=True):
            setattr(part, name, value)


@contextmanager
def differentiable() -> Iterator[None]:
    """Record derivatives within the block, even under the caller's `torch.no_grad()` or `torch.inference_mode()`."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


def run_exactly(moments: Iterator[T]) -> Iterator[T]:
    """Yield the values of `moments`, each computed in `exact_arithmetic`; between two values the caller's settings hold."""
    while True:
        with exact_arithmetic():
            moment = next(moments, None)
        if moment is None:
            return
        yield moment
