"""A recorded run that a phone refused: NAME.json with the refusal and what the checks found; nothing was sent, so there are no pictures."""

from functools import cache
from typing import Literal

from leakage.learn.recordings import read
from leakage.runs.event_parts import Ending
from leakage.runs.events import AttackEnd
from leakage.settings import ROOT
from leakage.spec.experiment import Base, Experiment

FOLDER = ROOT / "assets" / "lessons" / "refused"


class RefusalRecording(Base):
    """A recorded run that ended before anything was sent, because a check of the received model tripped."""

    format: Literal[1] = 1
    title: str
    experiment: Experiment
    experiment_digest: str
    """The digest of the experiment with defaults filled in."""
    engine: str
    """The version of the code that computed the run."""
    ending: Ending
    """The refusal, and what the checks found."""

    @property
    def end(self) -> AttackEnd:
        """The end of the run, without an answer, scores and a verdict."""
        return AttackEnd(ending=self.ending, seconds=0.0)


@cache
def load_refusal(name: str) -> RefusalRecording:
    """Return the recorded refusal of that name; raise SpecError if it is missing or damaged."""
    return read(FOLDER, name, RefusalRecording, "a recorded refusal")
