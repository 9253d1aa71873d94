"""A simulated accelerator: CPU tensors that count as GPU tensors, to test GPU code without a GPU.

What a GPU would refuse is refused: operations that mix tensors from here and there (but for single numbers, as CUDA allows), numpy, and
generators of the other side. What makes a GPU wait for the CPU, or copies between them, is counted.

One mode sees Python's calls: what they ask of devices, and what they are told. The other sees every kernel, also those of derivatives.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

DEVICE = torch.device("cuda", 0)
CPU = torch.device("cpu")
READ, BACK, COPIED, BRANCHED = "number read", "copied to the CPU", "copied to the accelerator", "size known by its numbers alone"
aten = torch.ops.aten
# Kernels with a size or result that depends on the values: CUDA waits for them.
DEPENDENT = {"nonzero", "masked_select", "_unique2", "unique_dim", "bincount", "equal", "_linalg_check_errors", "unique_consecutive"}
INDEXED = {"index", "index_put_", "index_put", "_index_put_impl_", "_unsafe_index"}  # by truth values: they are counted first
OURS = ("/leakage/", "/torch/optim/", "/tests/engine/")
Generator = torch.Generator


class DeviceError(RuntimeError):
    """What a GPU would refuse."""


class AnyGenerator(Generator):
    """What stands in for torch.Generator: one of the CPU, or, so that it says, of the accelerator."""

    def __new__(cls, device: torch.device | str = CPU) -> "AnyGenerator":
        return super().__new__(cls)

    def __init__(self, device: torch.device | str = CPU) -> None:
        super().__init__()
        self.here = torch.device(device).type == DEVICE.type


class Accelerator(TorchFunctionMode):
    """The pretence, within `with`. `waits`: where in the code it had to wait, and for what, since this was last emptied."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[int, Any] = {}  # storages on the accelerator, kept so that no other takes their place
        self.waits: set[tuple[str, str]] = set()
        self.target: bool | None = None  # where results go whatever they are made of
        self.around = False  # whether the call in hand is one about tensors on the accelerator
        self.kernels = Kernels(self)

    def __enter__(self) -> "Accelerator":
        self.kernels.__enter__()
        torch.Generator = AnyGenerator  # type: ignore[misc]
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        torch.Generator = Generator  # type: ignore[misc]
        self.kernels.__exit__(*error)

    def holds(self, value: object) -> bool:
        """Return whether this tensor is on the accelerator."""
        if not isinstance(value, Tensor):
            return False
        while torch._C._functorch.is_functorch_wrapped_tensor(value):
            value = torch._C._functorch.get_unwrapped(value)
        return value.untyped_storage()._cdata in self.held

    def wait(self, what: str) -> None:
        """Note what the CPU waits for, and in which code: of this project, of a test, or of torch's optimisers."""
        frame = sys._getframe(1)
        while frame.f_back and (frame.f_code.co_name.startswith("<") or not any(part in frame.f_code.co_filename for part in OURS)):
            frame = frame.f_back
        self.waits.add((f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}", what))

    def take(self, values: Any) -> None:
        """Let these tensors count as tensors on the accelerator."""
        for value in tree_leaves(values):
            if isinstance(value, Tensor):
                storage = value.untyped_storage()
                self.held[storage._cdata] = storage

    @contextmanager
    def placing(self, *, here: bool) -> Iterator[None]:
        """Place new tensors within the block on the accelerator, or on the CPU."""
        before, self.target = self.target, here
        try:
            yield
        finally:
            self.target = before

    def move(self, value: Tensor, *, here: bool) -> Tensor:
        """Copy a tensor to the other side, and count the copy."""
        self.wait(COPIED if here else BACK)
        with self.placing(here=here):
            return value.clone()

    def __torch_function__(self, call: Any, _types: Any, args: Sequence[Any] = (), given: dict[str, Any] | None = None) -> Any:
        given = dict(given or {})
        first = args[0] if args else None
        if call == Tensor.device.__get__:
            return DEVICE if self.holds(first) else CPU
        if call == Tensor.is_cuda.__get__:
            return self.holds(first)
        if call.__name__ == "__get__":  # another property
            return call(*args)
        if call in (Tensor.cpu, Tensor.to):
            return self._moved(call, args, given)
        if call in (Tensor.tolist, Tensor.numpy, Tensor.__array__) and self.holds(first):
            if call != Tensor.tolist:
                raise DeviceError("numpy cannot take a tensor of the accelerator")
            self.wait(READ)
        here = any(map(self.holds, tree_leaves((args, given))))
        if given.get("device") is not None:
            target = torch.device(given.pop("device")).type == DEVICE.type
            if call in (torch.tensor, torch.as_tensor) and target and not here:
                self.wait(COPIED)
            self._check_generator(given, here=target)
            with self.placing(here=target):
                return call(*args, **given)
        self._check_generator(given, here=here)
        before, self.around = self.around, here
        try:
            return call(*args, **given)
        finally:
            self.around = before

    def _moved(self, call: Any, args: Sequence[Any], given: dict[str, Any]) -> Any:
        value, rest = args[0], list(args[1:])
        here = self.holds(value)
        target = False if call == Tensor.cpu else here
        others = [*rest, *given.values()]
        for other in others:
            if isinstance(other, Tensor):
                target = self.holds(other)
            elif isinstance(other, torch.device | str):
                target = torch.device(other).type == DEVICE.type
        if target != here:
            value = self.move(value, here=target)
        if call == Tensor.cpu:
            return value
        rest = [CPU if isinstance(one, torch.device | str) else one for one in rest]  # where it lies in truth
        given = {name: CPU if isinstance(one, torch.device | str) else one for name, one in given.items()}
        with self.placing(here=target):
            return call(value, *rest, **given) if rest or given else value

    def _check_generator(self, given: dict[str, Any], *, here: bool) -> None:
        rng = given.get("generator")
        if rng is not None and getattr(rng, "here", False) != here:
            raise DeviceError(f"a generator of the {'CPU' if here else 'accelerator'} draws for a tensor of the other side")


@cache
def writes(kernel: Any) -> bool:
    """Return whether an operation changes its arguments, so that it makes nothing new."""
    return any(argument.alias_info is not None and argument.alias_info.is_write for argument in kernel._schema.arguments)


class Kernels(TorchDispatchMode):
    """Every kernel that is called meanwhile."""

    def __init__(self, accelerator: Accelerator) -> None:
        super().__init__()
        self.accelerator = accelerator

    def __torch_dispatch__(self, kernel: Any, _types: Any, args: Sequence[Any] = (), given: dict[str, Any] | None = None) -> Any:
        it, given = self.accelerator, given or {}
        tensors = [value for value in tree_leaves((args, given)) if isinstance(value, Tensor)]
        inside = [it.holds(value) for value in tensors]
        name = kernel._schema.name.removeprefix("aten::")
        if any(inside) and it.target is None:
            self._check(name, kernel, tensors, inside)
        result = kernel(*args, **given)
        if writes(kernel):
            return result
        if it.target if it.target is not None else any(inside) or (not tensors and it.around):
            it.take(result)
        return result

    def _check(self, name: str, kernel: Any, tensors: list[Tensor], inside: list[bool]) -> None:
        wait = self.accelerator.wait
        if name == "_local_scalar_dense":
            wait(READ)
        if name in DEPENDENT or (name in INDEXED and any(one.dtype in (torch.bool, torch.uint8) for one in tensors[1:])):
            wait(BRANCHED)
        if all(inside):
            return
        if name in ("copy_", "_to_copy"):
            wait(COPIED if inside[0] else BACK)
        elif name in INDEXED and inside[0]:
            wait(COPIED)  # CUDA takes places from the CPU
        else:
            strangers = [one for one, own in zip(tensors, inside, strict=True) if not own]
            free = torch.Tag.pointwise in kernel.tags and inside[0] | (kernel._schema.name[-1] != "_")
            if not free or any(one.dim() for one in strangers):
                shapes = ", ".join(str(tuple(one.shape)) for one in strangers)
                raise DeviceError(f"{name} mixes tensors of the accelerator with some of the CPU, of shape {shapes}")
