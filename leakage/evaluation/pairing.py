"""The assignment of guesses to private pictures, which all metrics use."""

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor


def costs(guess: Tensor, truth: Tensor) -> Tensor:
    """Compute the pixel MSE of every pair: guesses and truths (B, C, H, W) -> (B truths, B guesses)."""
    return (truth.flatten(1)[:, None] - guess.flatten(1)[None]).square().mean(2)  # (B, B)


def pair(guess: Tensor, truth: Tensor, *, kept: Tensor | None = None, filled: Tensor | None = None) -> Tensor:
    """Return the order (B,) of least summed MSE: guess[order[i]] belongs to truth[i].

    With an earlier order in `kept`, return `kept` unless the new order lowers the summed MSE by more than 5 %, so that live pictures do not
    jump. A place that is not `filled` (B,) holds no guess, so it costs nothing, whichever picture it is paired with.
    """
    cost = costs(guess, truth).double().cpu()
    if filled is not None:
        cost[:, ~filled] = 0
    order = torch.as_tensor(linear_sum_assignment(cost.numpy())[1])
    here = torch.arange(len(order))
    if kept is not None and cost[here, kept].sum() * 0.95 <= cost[here, order].sum():
        return kept
    return order
