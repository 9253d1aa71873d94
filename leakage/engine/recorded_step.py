"""The distance of a search's guesses and its derivative as a list of torch calls, which torch's interpreter repeats without Python.

By formula, these are some 200 calls on a small network, of a few microseconds each. Between the calls Python takes as much time as torch
takes for them. The list has the same calls in the same order, so its results are equal bit for bit.

TorchScript, which keeps the list, is deprecated in favour of compilers. Those need g++ and half a minute for each kind of step
(`compilable_step`); a list takes 0.03 s. TorchScript never frees a list (5 MB), so runs of a kind share one, and MOST is the limit.
"""

import warnings
from typing import Any

import torch
from torch import Tensor

from leakage.engine.compilable_step import CompilableStep, Program
from leakage.engine.formula_replay import DistanceAndDerivative

_script: Any = torch.jit  # it has no types
MOST = 32  # lists in a process; Python makes the calls of further kinds of steps
LARGEST = 2_000_000  # numbers of a step that is recorded; larger networks would gain little
_lists: dict[str, Program | None] = {}  # by the key of a step; None: a call cannot be recorded


def record(step: CompilableStep, x: Tensor, y: Tensor) -> DistanceAndDerivative | None:
    """Return a function that repeats the torch calls of a step; None where it cannot be recorded, or would gain little.

    Derivatives of torch's own convolutions cannot be recorded. Networks that need them would gain little: their calls take nearly all time.

    Args:
        step: its weights and its update must not change while the function is used.
        x: guesses (S, B, C, H, W), of the shape of those to come.
        y: their labels (S, B), or probabilities (S, B, K).
    """
    numbers = step.numbers
    if x.device.type != "cpu" or not step.is_compilable or sum(number.numel() for number in numbers) > LARGEST:
        return None
    x, y = _packed(x), _packed(y)
    key = step.key(x, y)
    if key not in _lists and sum(calls is not None for calls in _lists.values()) < MOST:
        _lists[key] = _record(step, x, y)
    calls = _lists.get(key)
    return None if calls is None else lambda x: _repeat(calls, numbers, x, y)


def _record(step: CompilableStep, x: Tensor, y: Tensor) -> Program | None:
    """Record the calls with zeros in place of all numbers, so that the list keeps no number of a run."""
    zeros = ([torch.zeros_like(number) for number in step.numbers], torch.zeros_like(x), torch.zeros_like(y))
    try:
        with torch.no_grad(), _script.optimized_execution(False), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch says that TorchScript is deprecated, and that shapes become constants
            calls: Any = _script.trace(lambda *arguments: step(*arguments), zeros, check_trace=False)
    except (AttributeError, RuntimeError):  # a torch without TorchScript, or a call that cannot be recorded
        return None
    calls._torchdynamo_inline = None  # it would keep the step, and so the weights and the update of this run
    program: Program = calls
    return program


def _repeat(calls: Program, numbers: list[Tensor], x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    with torch.no_grad(), _script.optimized_execution(False):  # an optimizer would add in another order
        return calls(numbers, _packed(x), y)


def _packed(x: Tensor) -> Tensor:
    """Return a copy with the memory layout that strides and offsets were recorded for."""
    return x.clone(memory_format=torch.contiguous_format)
