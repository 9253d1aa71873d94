"""A search near a solution: DLG's distance, minimised by damped Gauss-Newton steps."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from leakage.engine.core import Observation, Snapshot
from leakage.engine.devices import double
from leakage.engine.discrepancy import expected_distance
from leakage.engine.matching import to_pixels
from leakage.engine.whole_distance import flatten

DAMPING = 1e-3  # at first, as a fraction of the mean of (J^T J)'s diagonal
LEAST = 1e-14  # the lowest damping
ROWS = 256  # of the Jacobian, computed at once
NEAR = 1e-4  # below this distance the search ends when PATIENCE steps in a row come no nearer
PATIENCE = 2
LARGEST = 20_000  # numbers in a gradient; the work of a step grows with them, and with the square of the pixels


def gauss_newton(seen: Observation, labels: Tensor, begin: Tensor, steps: int) -> Iterator[Snapshot]:
    """Minimize the sum over the tensors of ||g_l(x, y) - g_l*||^2 / ||g_l*||^2, from `begin` (B, C, H, W) in normalized space.

    A step is x <- x - (J^T J + damping)^-1 J^T r, where r holds all differences and J is their Jacobian. With ReLU and LeakyReLU the
    distance jumps where a unit changes its sign, and a search that accepts only smaller distances gets stuck there. So every step is
    accepted here, and the damping falls tenfold with each step that comes nearest so far. The `loss` of a Snapshot is the root of the
    distance; the last Snapshot is the nearest of all. If the attacker knows the size of the errors, the search ends at the distance where
    the true pictures would be.
    Source: Levenberg 1944, Marquardt 1963.
    """
    pixels = to_pixels(seen)
    target = {name: value for name, value in seen.as_gradient().items() if bool(value.any())}
    z, damping, step, nearest = begin.detach().clone(), DAMPING, 0, 0
    sizes = {name: 1 / float(value.square().sum()) for name, value in target.items()}
    floor = expected_distance("squared", target, seen.knowledge.errors or {}, importance=sizes).sqrt()  # 0 where errors are not known
    best = Snapshot(0, pixels(z), labels, torch.tensor(math.inf))
    for step in range(steps + 1):
        z.requires_grad_()
        sent = seen.gradient(pixels(z), labels)
        r = flatten({name: (sent[name] - value) / value.norm() for name, value in target.items()})
        now = Snapshot(step, pixels(z.detach()), labels, r.detach().norm())
        yield now
        if now.loss < best.loss:
            damping = max(damping / 10, LEAST) if step else damping
            best, nearest = now, step
        settled = (float(best.loss) < NEAR and step - nearest >= PATIENCE) or bool(now.loss <= floor)
        if settled or step == steps or not bool(now.loss.isfinite()):
            break
        z = z.detach() - descent(r, z, damping)
    yield Snapshot(step, best.x, labels, best.loss)


def descent(r: Tensor, z: Tensor, damping: float) -> Tensor:
    """Compute (J^T J + damping * mean(diag(J^T J)) I)^-1 J^T r, shaped as z, for J = dr/dz; in float64, as J^T J is ill-conditioned."""
    differences = double(r.detach())
    square = differences.new_zeros(z.numel(), z.numel())
    right = square.new_zeros(z.numel())
    for indices in torch.arange(len(r), device=r.device).split(ROWS):
        one_hot = torch.nn.functional.one_hot(indices, len(r)).to(r)
        (gradients,) = torch.autograd.grad(r, z, one_hot, retain_graph=True, is_grads_batched=True)
        rows = double(gradients.flatten(1))  # (ROWS, n)
        square += rows.T @ rows
        right += rows.T @ differences[indices.to(rows.device)]
    square.diagonal().add_(damping * square.diagonal().mean())
    step: Tensor = torch.linalg.solve(square, right)
    return step.view_as(z).to(z)
