"""Vector-Jacobian products by autograd."""

from collections.abc import Sequence

import torch
from torch import Tensor


def vjp(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    vectors: Sequence[Tensor],
    *,
    retain_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[Tensor, ...]:
    """Return the derivatives of sum <v, output> by the inputs. Call it while autograd is on.

    torch.autograd.grad takes vectors too, but imports sympy to compare their shapes, which takes 2 s of a process. The digits are the same,
    because the derivative of the sum by an output is v.

    Args:
        outputs: tensors of any shape.
        inputs: tensors that the outputs were computed from.
        vectors: v for each output, of its shape; constant, even if v was computed from the inputs.
        retain_graph: as in torch.autograd.grad.
        allow_unused: as in torch.autograd.grad.

    Raises:
        ValueError: a vector has another shape than its output.
    """
    if [output.shape for output in outputs] != [v.shape for v in vectors]:
        raise ValueError("Each vector must have the shape of its output.")
    products = [(output * v.detach()).sum() for output, v in zip(outputs, vectors, strict=True)]
    return torch.autograd.grad(products, inputs, retain_graph=retain_graph, allow_unused=allow_unused)
