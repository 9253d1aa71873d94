"""The optimizers of torch.optim without its compiler.

torch.optim imports torch's compiler when it is given parameters, and in Adam's step: 400 modules, 2 s and 110 MB in each process. The
functions below it do not.
"""

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam


class _Lbfgs(torch.optim.LBFGS):
    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)


def lbfgs(leaves: Sequence[Tensor], **options: Any) -> torch.optim.LBFGS:
    """Return torch.optim.LBFGS with these options."""
    return _Lbfgs(leaves, **options)


class Adam:
    """torch.optim.Adam with its defaults, and with the same digits; each leaf has a step size of its own.

    Args:
        leaves: the tensors to move, and their first step sizes.

    Source: Kingma and Ba 2015, algorithm 1.
    """

    def __init__(self, leaves: Sequence[tuple[Tensor, float]]) -> None:
        self._leaves = leaves
        self._moments = [(torch.zeros_like(leaf), torch.zeros_like(leaf), _count(leaf)) for leaf, _ in leaves]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], fraction: float) -> None:
        """Move each leaf against its gradient, by `fraction` of its first step size. Gradients are contiguous, as the leaves are."""
        for (leaf, size), (mean, square, steps), gradient in zip(self._leaves, self._moments, gradients, strict=True):
            adam(
                [leaf],
                [gradient],
                [mean],
                [square],
                [],
                [steps],
                fused=_is_fused(leaf),
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=size * fraction,
                weight_decay=0,
                eps=1e-8,
                maximize=False,
            )


def _is_fused(leaf: Tensor) -> bool:
    return leaf.device.type != "mps"


def _count(leaf: Tensor) -> Tensor:
    """Return the number of steps so far, where Adam reads it."""
    return torch.zeros((), dtype=torch.float32, device=leaf.device if _is_fused(leaf) else "cpu")
