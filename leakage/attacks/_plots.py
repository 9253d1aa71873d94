"""Small plots beside a guess: numbers as columns, and the path of alpha."""

import torch
from torch import Tensor

from leakage.attacks._spear_search import GradientSpectrum

SIDE = 96  # pixels
DECADES, BINS = 9, 32
PLAIN, MARKED, PAPER = (0.62, 0.62, 0.62), (0.90, 0.33, 0.05), (1.0, 1.0, 1.0)


def columns(heights: Tensor, marked: Tensor) -> Tensor:
    """Draw heights (N,) from 0 to 1 as columns, those where `marked` (N,) is true in a warm colour, as a picture (1, 3, SIDE, SIDE)."""
    indices = (torch.arange(SIDE) * len(heights)) // SIDE if len(heights) < SIDE else torch.linspace(0, len(heights) - 1, SIDE).long()
    filled = torch.arange(SIDE, 0, -1)[:, None] <= (heights[indices].clamp(0, 1) * SIDE).round()[None]  # (SIDE, SIDE), from the top
    colour = torch.where(marked[indices][None], torch.tensor(MARKED)[:, None], torch.tensor(PLAIN)[:, None])  # (3, SIDE)
    paper = torch.tensor(PAPER).view(3, 1, 1)
    return torch.where(filled, colour[:, None].expand(3, SIDE, SIDE), paper).unsqueeze(0)


def logarithmic(values: Tensor, decades: float) -> Tensor:
    """Scale values (N,) >= 0 logarithmically: the largest becomes 1; values `decades` or more below it, and 0, become 0."""
    fraction = values / values.max()
    return 1 + fraction.clamp(min=10.0**-decades).log10() / decades


def spectrum_view(cut: GradientSpectrum) -> dict[str, Tensor]:
    """Draw the singular values as columns; those that stand for pictures are marked. Return the plot by its title."""
    some = cut.values[: max(3 * cut.rank, SIDE // 3)]
    name = f"Singular values, over {DECADES} decades: {cut.rank} stand out, as many as pictures"
    return {name: columns(logarithmic(some, DECADES), torch.arange(len(some)) < cut.rank)}


def zeros_view(cut: GradientSpectrum, q: Tensor) -> dict[str, Tensor]:
    """Draw a histogram of log |entries| of dL/dz for all units and pictures, the zeros as a marked first column.

    Up to a scale for each picture, dL/dz is `cut.left @ q` (m, K) for directions q (rank, K). Return the plot by its title.
    """
    entries, zero = cut.left @ q, cut.zeros(q)
    indices = ((BINS - 1) * logarithmic(entries.abs().flatten(), DECADES)).round().long()
    indices[zero.flatten()] = 0
    counts = torch.bincount(indices, minlength=BINS).double()
    name = f"Entries of the pictures' gradients by size: {float(zero.double().mean()):.0%} are zero (left), where ReLU was off"
    return {name: columns(counts / counts.max(), torch.arange(BINS) == 0)}


def path_view(alpha: Tensor, steps: int) -> dict[str, Tensor]:
    """Draw SME's alpha over the first T of `steps` steps as curves, from left to right; return the plot by its title.

    `alpha` (T, layers) says where the weights of the surrogate model lie between the received weights (0, the line below) and the weights
    that the client ended with (1, the line above).
    """
    canvas = torch.full((3, SIDE, SIDE), 1.0)
    low, high = SIDE - SIDE // 8, SIDE // 8  # rows of 0 and of 1
    canvas[:, [low, high]] = torch.tensor(PLAIN)[:, None, None]
    values = alpha.detach().cpu()
    across = torch.linspace(0, (SIDE - 1) * min(1.0, len(values) / steps), SIDE).long()
    rows = (low + (high - low) * values[torch.linspace(0, len(values) - 1, SIDE).long()]).round().long()  # (SIDE, layers)
    for thick in (0, 1):
        canvas[:, (rows - thick).clamp(0), across[:, None].expand_as(rows)] = torch.tensor(MARKED)[:, None, None]
    middle = f"{float(values[-1].mean()):.2f}{' on average' if values.shape[1] > 1 else ''}"
    name = f"Alpha after {min(len(values), steps)} of {steps} steps: {middle}. The lines: 0, the first model (below), and 1, the last"
    return {name: canvas[None]}
