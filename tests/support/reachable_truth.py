"""Search for private pictures and labels among all objects that an object reaches."""

import gc
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from leakage.engine.core import Plugin

CLOSED = (ModuleType, FrameType, CodeType, str, bytes, int, float, complex, torch.dtype, torch.device)
DATA = (list, dict, set, Tensor, np.ndarray)


def reached(root: object) -> Iterator[tuple[str, Any]]:
    """Yield every object reachable from `root`, with its path.

    Through attributes, containers, closures, default arguments, partials, bound methods, plug-in classes, autograd's graph, and the data
    and functions of its own module that a function names. Not through modules, frames, other classes and other globals of functions:
    from those everything is reachable.
    """
    visited: dict[int, object] = {}  # keeps what it has seen alive, so that an id belongs to one object
    queue = deque([("it", root)])
    while queue:
        path, thing = queue.popleft()
        if thing is None or id(thing) in visited or isinstance(thing, CLOSED):
            continue
        if isinstance(thing, type) and not issubclass(thing, Plugin):
            continue
        visited[id(thing)] = thing
        yield path, thing
        queue.extend((path + step, neighbour) for step, neighbour in _neighbours(thing))


def _neighbours(thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, FunctionType):
        yield from ((f".closure[{name}]", cell) for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True))
        yield from ((".defaults", value) for value in (thing.__defaults__, thing.__kwdefaults__, thing.__dict__))
        for name in thing.__code__.co_names:
            value = thing.__globals__.get(name)
            if isinstance(value, DATA) or (isinstance(value, FunctionType) and value.__module__ == thing.__module__):
                yield f".globals[{name}]", value
    elif isinstance(thing, MethodType | BuiltinFunctionType):
        yield from ((f".{name}", getattr(thing, name, None)) for name in ("__self__", "__func__"))
    elif isinstance(thing, partial):
        yield from ((f".{name}", getattr(thing, name)) for name in ("func", "args", "keywords", "__dict__"))
    elif isinstance(thing, type):
        yield from ((f".{name}", value) for name, value in vars(thing).items())
        yield from ((".base", base) for base in thing.__bases__)
    elif isinstance(thing, dict):
        yield from ((f"[{key!r}]", value) for key, value in thing.items())
        yield from ((".key", key) for key in thing)
    elif isinstance(thing, Tensor):
        yield from ((f".{name}", getattr(thing, name)) for name in ("grad_fn", "_backward_hooks", "__dict__"))
        if thing.is_leaf:
            yield ".grad", thing.grad
    elif isinstance(thing, torch.autograd.graph.Node):
        yield from ((".next", node) for node, _ in thing.next_functions)
        for name in dir(thing):
            with suppress(RuntimeError):  # what a backward pass has freed is gone
                yield f".{name}", getattr(thing, name) if name.startswith("_saved_") else None
    else:
        attributes = getattr(thing, "__dict__", None)
        if isinstance(attributes, dict):
            yield from ((f".{name}", value) for name, value in attributes.items())
        yield from (("->", value) for value in gc.get_referents(thing))


def leaks(root: object, x: Tensor, y: Tensor) -> list[str]:
    """Return where `root` reaches the private pictures x (B, C, H, W) or labels y (B,): the same memory, or a copy of the values."""
    found = []
    for path, thing in reached(root):
        for name, private in (("x", x), ("y", y)):
            if isinstance(thing, Tensor) and thing.untyped_storage().data_ptr() == private.untyped_storage().data_ptr():
                found.append(f"{path} is {name}")
            elif (values := _values(thing)) is not None and (_contains(values, x) if name == "x" else _equals(values, y)):
                found.append(f"{path} equals {name}")
    return found


def _values(thing: Any) -> Tensor | None:
    """Return a tensor, an array or a list of numbers, flat, in float64."""
    if isinstance(thing, Tensor):
        return thing.detach().flatten().double()
    if isinstance(thing, np.ndarray) and thing.dtype.kind in "iuf":
        return torch.from_numpy(thing.astype(np.float64).ravel())
    if isinstance(thing, list | tuple) and thing and all(type(one) in (int, float) for one in thing):
        return torch.tensor(thing, dtype=torch.double)
    return None


def _contains(values: Tensor, x: Tensor) -> bool:
    """Return whether one of the pictures is among the values."""
    pictures = x.detach().flatten(1).double()  # (B, C * H * W)
    size = pictures.shape[1]
    return any(
        torch.equal(values[place : place + size], picture)
        for picture in pictures
        for place in (values == picture[0]).nonzero().flatten().tolist()
    )


def _equals(values: Tensor, y: Tensor) -> bool:
    """Return whether these are several labels in order, as numbers or as certain probabilities of ten classes."""
    if len(y) < 2:
        return False
    wanted = y.double()
    certain = torch.nn.functional.one_hot(y, 10).double().flatten()
    return torch.equal(values, wanted) or torch.equal(values, certain)
