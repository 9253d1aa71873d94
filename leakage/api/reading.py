"""What an update reveals by itself, without a search for pictures."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from leakage.api.declared import UpdateFit
from leakage.api.model_errors import MODEL_ERRORS, first_line
from leakage.engine.core import Observation
from leakage.engine.labels import recover

LARGE = 1024  # longest shorter side of a matrix for which the rank is computed; of larger matrices it takes too long


@dataclass(frozen=True)
class UpdateReading:
    """What an update reveals by itself.

    Args:
        labels: the classes of the batch, sorted, by `rule`; of a picture with several labels all of them; None where the rules cannot read
            labels from this model's update
        certainty: the fraction of the labels, 0 to 1, that is expected to be right; None where unknown
        numbers: how many numbers of the update are not 0
        unknowns: how many pixel values are unknown
        ranks: the numerical rank of every matrix among the gradients; without protection that of a linear layer is at most the batch size;
            None where the matrix is too large, or has entries that are not finite
        unsure: why the labels may be wrong although they could be read; empty where nothing speaks against them
    """

    labels: list[int] | None
    rule: str
    certainty: float | None
    numbers: int
    unknowns: int
    ranks: dict[str, int | None]
    unsure: str = ""


def reading(seen: Observation) -> UpdateReading:
    """Read what the update says without an attack: labels, how many numbers stand against the unknown pixels, the ranks of gradients."""
    gradient = seen.as_gradient()
    labels, rule, certainty = None, "", None
    try:
        recovered = recover(seen)
        labels, rule, certainty = listed_classes(recovered.labels), recovered.rule, recovered.certainty
    except MODEL_ERRORS as error:  # no linear layer makes the logits, or a rule does not fit them: a report must not fail the attack
        rule = str(error) if isinstance(error, ValueError) else f"The labels could not be read from this update ({first_line(error)})."
    matrices = {name: value.detach() for name, value in gradient.items() if value.dim() == 2}
    channels, height, width = seen.batch.image_shape
    return UpdateReading(
        labels=labels,
        rule=rule,
        certainty=certainty,
        numbers=sum(int((value != 0).sum()) for value in seen.received.update.values()),
        unknowns=seen.batch.size * channels * height * width,
        ranks={name: _rank(m) for name, m in matrices.items()},
    )


def listed_classes(y: Tensor) -> list[int]:
    """Return labels (B,) as a list; of labels (B, K), 0 or 1 each, the classes that are 1, picture by picture.

    >>> listed_classes(torch.tensor([2, 0])), listed_classes(torch.tensor([[0.0, 1.0, 1.0]]))
    ([2, 0], [1, 2])
    """
    found: list[int] = (y if y.dim() == 1 else (y > 0.5).nonzero()[:, 1]).tolist()
    return found


def unconfirmed(read: UpdateReading, fit: UpdateFit) -> UpdateReading:
    """Return what an update reveals by itself, with its labels marked as unsure if the attack's answer does not explain the update.

    `fit` says how well it does; without warnings in it, `read` is returned unchanged.
    """
    if read.labels is None or not fit.warnings:
        return read
    why = f"With these labels the update of the reconstruction is {fit.distance:.2g} away from the one that arrived: nothing confirms them."
    return replace(read, certainty=None, unsure=why)


def _rank(matrix: torch.Tensor) -> int | None:
    known = min(matrix.shape) <= LARGE and bool(matrix.isfinite().all())
    return int(torch.linalg.matrix_rank(matrix)) if known else None
