"""A run in which a client refused to train the model that it received: no Frames, and a Result that names the check."""

from math import prod

import torch

from leakage.api.outcome import AttackRun, Result
from leakage.api.progress import AttackProgress
from leakage.api.reading import UpdateReading
from leakage.engine.check import RefusedError
from leakage.engine.federation import ThreatModel
from leakage.engine.observation import Observation
from leakage.evaluation.referee import Frame

GREY = 0.5


class RefusedRun(AttackRun):
    """A run in which a client sent nothing, because one of its checks tripped.

    Args:
        refusal: the refusal, with what the checks found
        shape: (B, C, H, W) of the private pictures
        threat: what the attacker was granted
        loss: what the client would have minimised
        progress: the report of the run's progress; None for no report
    """

    def __init__(
        self, refusal: RefusedError, shape: tuple[int, ...], threat: ThreatModel, loss: str, progress: AttackProgress | None = None
    ) -> None:
        if progress:
            progress.close()
        self._result = Result(
            reconstruction=torch.full(shape, GREY),
            labels=[],
            scores={},
            baselines={},
            verdict=None,
            threat_model=threat,
            loss=loss,
            update=UpdateReading(labels=None, rule=str(refusal), certainty=None, numbers=0, unknowns=prod(shape), ranks={}),
            refused=refusal.tripped.check,
        )

    @property
    def observation(self) -> Observation:
        """There is none. Raises ValueError: the client sent nothing."""
        raise ValueError(f"{self.result.update.rule} So there is no observation.")

    def __next__(self) -> Frame:
        raise StopIteration
