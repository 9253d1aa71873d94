"""What an attack comes to: frame by frame, and in the end."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from leakage.api.reading import UpdateReading, reading
from leakage.engine.core import Observation
from leakage.engine.federation import ThreatModel
from leakage.evaluation.referee import Frame


@dataclass(frozen=True)
class Result:
    """What an attack came to. All tensors lie on the CPU.

    Args:
        reconstruction: (B, C, H, W) in [0, 1]; beside private pictures in their order
        labels: the class that the attacker took each picture for
        scores: psnr (dB), mse, ssim, lpips, rank (place of the private picture in its line-up), label_accuracy and more, means over
            the batch; of an update alone only gradient distances: there is no truth to score against
        baselines: the same scores of pictures that know nothing: grey, mean, noise; empty for an update alone
        verdict: word, why, meaning and rule of the plain verdict; None for an update alone
        threat_model: what the attacker was granted
        update: what the update says by itself: labels, numbers against unknowns, ranks
        note: the attack's own words
        steps: optimiser steps that it took
        seconds: that it took
    """

    reconstruction: Tensor
    labels: list[int]
    scores: dict[str, Any]
    baselines: dict[str, dict[str, float]]
    verdict: dict[str, str] | None
    threat_model: ThreatModel
    update: UpdateReading
    note: dict[str, Any] = field(default_factory=dict)
    steps: int = 0
    seconds: float = 0.0


class AttackRun:
    """An attack under way: iterate over its Frames, the last of which is final; then `result` is there. `leakage.frames` makes it."""

    def __init__(self, frames: Iterator[Frame], seen: Observation, threat: ThreatModel, baselines: dict[str, dict[str, float]]) -> None:
        self._frames, self._seen, self._threat, self._baselines = frames, seen, threat, baselines
        self._last: Frame | None = None

    def __iter__(self) -> "AttackRun":
        return self

    def __next__(self) -> Frame:
        self._last = next(self._frames)
        return self._last

    @property
    def result(self) -> Result:
        """What it came to, a Result; plays what is left first."""
        for _ in self:
            pass
        last = self._last
        assert last is not None
        return Result(
            reconstruction=last.x,
            labels=last.labels,
            scores=last.scores,
            baselines=self._baselines,
            verdict=last.verdict,
            threat_model=self._threat,
            update=reading(self._seen),
            note=last.note,
            steps=last.step,
            seconds=last.seconds,
        )
