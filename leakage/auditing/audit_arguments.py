"""The arguments of `leakage.audit`, each with its type and its default."""

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from torch import nn

from leakage.api.arguments import ClientArguments, Shape
from leakage.auditing.finding import Finding
from leakage.engine.core import Attack

LONGEST = 24 * 60  # minutes
MOST = 128  # pictures
# the arguments that an audit file holds as plain values
PLAIN = ("adaptive", "batch_norm", "seed", "minutes", "pictures", "batch_sizes", "normalized", "image_shape", "protections")


@dataclass(frozen=True, eq=False)
class AuditArguments(ClientArguments):
    """The arguments of `leakage.audit`, which explains them.

    Raises:
        TypeError, ValueError: when an argument has a value that is not allowed.
    """

    model: nn.Module
    data: object
    _: KW_ONLY
    minutes: float = 5
    pictures: int = 8
    batch_sizes: Sequence[int] = (1, 8)
    normalized: bool = False
    image_shape: Shape | None = None
    on_finding: Callable[[Finding], object] | None = None
    progress: bool = False
    attacks: Sequence[str | Attack] | None = None
    protections: bool = True
    repeat: str | Path | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.minutes, int | float) or not math.isfinite(self.minutes) or not 0 < self.minutes <= LONGEST:
            raise ValueError(f"minutes must be above 0 and at most {LONGEST}; got {self.minutes!r}.")
        if isinstance(self.attacks, str):
            raise TypeError(f"attacks must be a list; got the word {self.attacks!r}. Write [{self.attacks!r}].")
        if self.attacks is not None and not self.attacks:
            raise ValueError("attacks is empty. Name at least one attack, or leave it out.")
        if isinstance(self.batch_sizes, int):
            raise TypeError(f"batch_sizes must be a list; got {self.batch_sizes!r}. Write [{self.batch_sizes!r}].")
        for name, value in (("pictures", self.pictures), *(("batch_sizes", size) for size in self.batch_sizes)):
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
                raise ValueError(f"{name} must be whole numbers from 1 to {MOST}; got {value!r}.")
        if not self.batch_sizes:
            raise ValueError("batch_sizes is empty. Name at least one number of pictures in an update, for example (1, 8).")
        shape = self.image_shape
        if shape is not None and (
            len(shape) != 3 or shape[0] not in (1, 3) or not all(isinstance(side, int) and side > 0 for side in shape)
        ):
            raise ValueError(f"image_shape must be (C, H, W), with 1 or 3 channels; got {shape!r}.")
        if self.normalized and self.normalization is None:
            raise ValueError("normalized=True needs normalization=(mean, std), with which the data were normalized.")
        if self.on_finding is not None and not callable(self.on_finding):
            raise TypeError(f"on_finding must be a function of a Finding; got a {type(self.on_finding).__name__}.")
