"""Scores of guesses against private pictures, beside the scores of pictures that use no update."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from leakage.api import input_check
from leakage.evaluation.baselines import make_baselines, measure
from leakage.evaluation.lineup import OWN
from leakage.evaluation.pairing import pair
from leakage.evaluation.referee import listed
from leakage.evaluation.verdict import verdict


@dataclass(frozen=True)
class Scores:
    """How similar guesses are to the private pictures.

    Args:
        scores: as in `Result`.
        baselines: the same scores of pictures that use no update: grey, mean, noise and more.
        verdict: word, why, meaning and rule of the plain verdict, and the word of each picture.
        order: `order[i]` is the guess that belongs to picture i.

    Example:
        >>> import torch, leakage
        >>> x = torch.rand(1, 3, 16, 16, generator=torch.Generator().manual_seed(0))
        >>> found = leakage.score(x, x)
        >>> found.verdict["word"], sorted(found.baselines)
        ('recognizable', ['blurred', 'grey', 'mean', 'mean_colour', 'noise'])
    """

    scores: dict[str, Any]
    baselines: dict[str, dict[str, float]]
    verdict: dict[str, Any]
    order: list[int]


def score(guess: Tensor, x: Tensor, *, seed: int = 1) -> Scores:
    """Score guesses against private pictures; each guess goes to the picture that it fits best.

    Args:
        guess: (B, C, H, W) in [0, 1].
        x: the private pictures, (B, C, H, W) in [0, 1].
        seed: of the line-up and of the noise that is scored as a baseline.

    Returns:
        Scores.

    Raises:
        TypeError, ValueError: with a sentence, when these are not pictures of one shape in [0, 1].

    Example:
        >>> import torch, leakage
        >>> x = torch.rand(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))
        >>> found = leakage.score(x.flip(0), x)
        >>> found.order, found.scores["mse"], found.scores["rank"]
        ([1, 0], 0.0, 1.0)
    """
    guess, x = (input_check.pictures(batch).to("cpu", torch.float32) for batch in (guess, x))
    if guess.shape != x.shape:
        raise ValueError(f"Guesses and pictures must have one shape; got {tuple(guess.shape)} and {tuple(x.shape)}.")
    baselines = make_baselines([OWN], x, torch.zeros(len(x), dtype=torch.long), seed=seed)
    order = pair(guess, x)
    measured = measure(guess[order], x, baselines.lineup, baselines.perceptual)
    return Scores(
        scores=listed(measured, baselines.reference),
        baselines=baselines.scores,
        verdict=verdict(measured, baselines.reference),
        order=order.tolist(),
    )
