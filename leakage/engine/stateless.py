"""A model called with other weights in place of its own, which stay as they are."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from leakage.engine.capabilities import capabilities_of


class StatelessModel:
    """A model as a function of its weights and pictures.

    A layer that the model holds by several names gets its weights once, and a weight that several layers share is handed to each:
    `functional_call` alone exchanges a layer's weights by each name in turn, and leaves the wrong ones behind.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self._places = {names[0]: names for names in _places(model)}
        self._shared = any(len(names) > 1 for names in self._places.values())
        self._rewritten, self._fixed = capabilities_of(model).rewritten, capabilities_of(model).fixed

    def __call__(self, weights: dict[str, Tensor], x: Tensor) -> Tensor:
        """The logits (B, K) with `weights`, by the names of parameters and buffers, in place of the model's own.

        Raises ValueError where the model cannot be computed with others than its own.
        """
        if self._fixed:
            raise ValueError(self._fixed)
        if self._shared:
            weights = {place: value for name, value in weights.items() for place in self._places.get(name, [name])}
        with self.computing():
            logits: Tensor = functional_call(self.model, weights, (x,), tie_weights=False)
        return logits

    def at_home(self, x: Tensor) -> Tensor:
        """The logits with the model's own weights."""
        with self.computing():
            logits: Tensor = self.model(x)
        return logits

    def computing(self) -> AbstractContextManager[object]:
        """Within it operations that torch differentiates only once are computed by other formulas, where the model has any."""
        return TwiceDifferentiable() if self._rewritten else nullcontext()


def _places(model: nn.Module) -> Iterator[list[str]]:
    """Of each parameter the names by which layers hold it, each layer counted once; the first is that of `named_parameters`."""
    held: dict[Tensor, list[str]] = {}
    for prefix, layer in model.named_modules():
        for own, value in layer._parameters.items():
            if value is not None:
                held.setdefault(value, []).append(f"{prefix}.{own}".lstrip("."))
    yield from held.values()


def _hardsigmoid(x: Tensor, inplace: bool = False) -> Tensor:
    return F.relu6(x + 3) / 6


def _dense(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The same function, with a gradient that is dense."""
    signature = inspect.signature(function)

    def call(*given: Any, **named: Any) -> Tensor:
        bound = signature.bind(*given, **named)
        bound.arguments["sparse"] = False
        return function(*bound.args, **bound.kwargs)

    return call


class TwiceDifferentiable(TorchFunctionMode):
    """Within it Hardsigmoid, by whatever name a model calls it, is computed as min(max(x + 3, 0), 6) / 6, and embeddings are dense.

    The same numbers; but torch has no second derivative of its own Hardsigmoid, and few operations for sparse gradients.
    """

    _FORMULAS: ClassVar = {F.hardsigmoid: _hardsigmoid, F.embedding: _dense(F.embedding), F.embedding_bag: _dense(F.embedding_bag)}
    met = False  # whether an operation was exchanged

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.met = self.met or func in self._FORMULAS
        return self._FORMULAS.get(func, func)(*args, **(kwargs or {}))
