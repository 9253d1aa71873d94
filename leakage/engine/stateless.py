"""A model as a function of its weights: the model's parameters stay unchanged."""

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

    Unlike `functional_call` alone, this class is correct for a layer that the model has under several names, and for a weight that several
    layers share: `functional_call` exchanges the weights of such a layer by each name in turn, and restores the wrong weights.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self._aliases = {names[0]: names for names in _aliases(model)}
        self._shared = any(len(names) > 1 for names in self._aliases.values())
        self._rewritten, self._fixed = capabilities_of(model).rewritten, capabilities_of(model).fixed

    def __call__(self, weights: dict[str, Tensor], x: Tensor) -> Tensor:
        """Compute the logits (B, K) of pictures x (B, C, H, W) with other weights than those of the model.

        Args:
            weights: by the names of parameters and buffers.
            x: pictures (B, C, H, W).

        Raises:
            ValueError: the model can be computed with its own weights only.
        """
        if self._fixed:
            raise ValueError(self._fixed)
        if self._shared:
            weights = {alias: value for name, value in weights.items() for alias in self._aliases.get(name, [name])}
        with self.computing():
            logits: Tensor = functional_call(self.model, weights, (x,), tie_weights=False)
        return logits

    def with_own_weights(self, x: Tensor) -> Tensor:
        """Compute the logits (B, K) of pictures x (B, C, H, W) with the model's own weights."""
        with self.computing():
            logits: Tensor = self.model(x)
        return logits

    def computing(self) -> AbstractContextManager[object]:
        """Return a context in which the model's operations can be differentiated twice; see `TwiceDifferentiable`."""
        return TwiceDifferentiable() if self._rewritten else nullcontext()


def _aliases(model: nn.Module) -> Iterator[list[str]]:
    """Yield for each parameter all names under which layers have it; the first is the name in `named_parameters`.

    A layer that the model has under several names counts once.
    """
    names: dict[Tensor, list[str]] = {}
    for prefix, layer in model.named_modules():
        for name, value in layer._parameters.items():
            if value is not None:
                names.setdefault(value, []).append(f"{prefix}.{name}".lstrip("."))
    yield from names.values()


def _hardsigmoid(x: Tensor, inplace: bool = False) -> Tensor:
    return F.relu6(x + 3) / 6


def _dense(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the function with `sparse=False`, so that the gradient of its weights is dense."""
    signature = inspect.signature(function)

    def call(*args: Any, **kwargs: Any) -> Tensor:
        bound = signature.bind(*args, **kwargs)
        bound.arguments["sparse"] = False
        return function(*bound.args, **bound.kwargs)

    return call


class TwiceDifferentiable(TorchFunctionMode):
    """A context in which torch computes Hardsigmoid as min(max(x + 3, 0), 6) / 6, and embeddings with dense gradients.

    The outputs are the same. torch has no second derivative of its Hardsigmoid, and few operations for sparse gradients.
    """

    _FORMULAS: ClassVar = {F.hardsigmoid: _hardsigmoid, F.embedding: _dense(F.embedding), F.embedding_bag: _dense(F.embedding_bag)}
    met = False  # whether an operation was exchanged

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.met = self.met or func in self._FORMULAS
        return self._FORMULAS.get(func, func)(*args, **(kwargs or {}))
