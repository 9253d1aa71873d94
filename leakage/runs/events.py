"""What a run tells, as data: one model for every kind of event that a worker writes and a page reads. No torch.

An event that lies in a store may be older or newer than this file: unknown fields are ignored, and newer fields have defaults.
"""

from typing import Any, Literal

from pydantic import Field

from leakage.runs.event_parts import Ending, EventPart, FrameScores, GradientRank, Maybe, Note, TrainingPrivacy, VerdictWords
from leakage.runs.meta_parts import (
    AttackerKnowledge,
    AttackMethod,
    Judging,
    PrivateBatch,
    RunEnvironment,
    UpdateFacts,
    WrittenFlat,
)
from leakage.spec.aliases import also_as_before


class RunEvent(EventPart):
    """What all kinds share. The store gives the run and the number; what is made on the way to a page has no number."""

    kind: str
    run: str = ""
    seq: int = 0

    def body(self) -> dict[str, Any]:
        """Return what the store keeps: the fields that were given, without those that have columns of their own."""
        return self.model_dump(exclude_unset=True, exclude={"kind", "run", "seq", "picture"})

    def wire(self) -> dict[str, Any]:
        """Return an event that is in no store as a page receives it."""
        return {"run": self.run, "kind": self.kind, **self.body()}

    @classmethod
    def kind_name(cls) -> str:
        """Return the kind of all events of this class."""
        return str(cls.model_fields["kind"].default)


# ---------------------------------------------------------------- every kind of run


class StateEvent(RunEvent):
    """How the run stands: queued, running, done, cancelled or failed. One that is queued: its position from 1, its wait in seconds."""

    kind: Literal["state"] = "state"
    status: str
    message: str = ""
    position: int | None = None
    wait: Maybe = None


class NoteEvent(RunEvent):
    """A sentence that the user must not miss."""

    kind: Literal["note"] = "note"
    text: str


class RestartEvent(RunEvent):
    """The run begins anew: what it told before no longer counts, and is gone from the store. `text`: a sentence that says why."""

    kind: Literal["restart"] = "restart"
    text: str


class EndEvent(RunEvent):
    """The result of a run, which its row repeats; `status` is given by the store."""

    kind: Literal["end"] = "end"
    status: str = ""


# ---------------------------------------------------------------- an attack


class MetaEvent(WrittenFlat, RunEvent):
    """All that a page shows of an attack and that does not change while it plays: one group for each question that it answers."""

    kind: Literal["meta"] = "meta"
    truth: PrivateBatch
    update: UpdateFacts
    method: AttackMethod
    knowledge: AttackerKnowledge
    environment: RunEnvironment
    judging: Judging

    @property
    def entries(self) -> int:
        """How many numbers the server received."""
        return self.update.received.entries


class FrameEvent(RunEvent):
    """A kept guess with its scores. `picture`: whether the store still has its contact sheet; `views`: small pictures as addresses."""

    kind: Literal["frame"] = "frame"
    picture: bool = False
    step: int
    seconds: float
    loss: Maybe
    scores: FrameScores = FrameScores()
    labels: tuple[int, ...] = ()
    note: Note = {}
    verdict: VerdictWords | None = Field(default=None, exclude_if=lambda given: given is None)
    views: dict[str, str] | None = Field(default=None, exclude_if=lambda given: not given)


class ThinnedEvent(RunEvent):
    """Of the frames so far only these still have a picture."""

    kind: Literal["thinned"] = "thinned"
    kept: tuple[int, ...]


class AttackEnd(EndEvent):
    """What an attack came to. `answer` is the number of its frame, null of one that does not apply.

    Runs with equal `timing_key` take about as long per step.
    """

    answer: int | None = None
    step: int | None = None
    steps: int | None = None
    seconds: float | None = None
    scores: FrameScores = FrameScores()
    labels: tuple[int, ...] = ()
    note: Note = {}
    verdict: VerdictWords | None = None
    ending: Ending | None = None
    timing_key: str | None = Field(default=None, validation_alias=also_as_before("timing_key"))


# ---------------------------------------------------------------- a training


class TrainingMetaEvent(RunEvent):
    """How many rounds a training asks for, and where it runs."""

    kind: Literal["meta"] = "meta"
    rounds: int
    device: str


class TrainingEvent(RunEvent):
    """How far a training is: rounds done, training loss, seconds."""

    done: float
    loss: Maybe
    seconds: float


class ProgressEvent(TrainingEvent):
    """Within a round."""

    kind: Literal["progress"] = "progress"


class RoundEvent(TrainingEvent):
    """At the end of one: with the share of test pictures named right."""

    kind: Literal["round"] = "round"
    accuracy: float


class TrainingEnd(EndEvent):
    """What a training came to; no accuracy before its first round has ended, no checkpoint unless it is finished."""

    accuracy: float | None
    checkpoint: str | None = None
    rounds: int = 0
    seconds: float = 0.0
    privacy: TrainingPrivacy | None = None  # None: no protection promises any


class InverterEnd(EndEvent):
    """What the training of an attacker's network came to: its id and errors on held-out pictures; none of one that was stopped."""

    inverter: str | None = None
    mse: float | None = None
    mse_mean: float | None = None  # that of the mean picture, which knows nothing of the update
    seconds: float = 0.0


# ---------------------------------------------------------------- measured ranks


class TurnEvent(RunEvent):
    """The measurement turns to a layer, the `number`-th of so many."""

    kind: Literal["turn"] = "turn"
    name: str
    number: int
    layers: int


class RankEvent(RunEvent):
    """The rank of a layer's equations; None where it is too large."""

    kind: Literal["rank"] = "rank"
    name: str
    rank: int | None


class MovedEvent(RunEvent):
    """How far the measurement of the whole gradient is: so many directions of the picture have been moved, of all that will be."""

    kind: Literal["moved"] = "moved"
    done: int
    directions: int


class GradientRankEvent(RunEvent):
    """What was measured of the whole gradient."""

    kind: Literal["gradient"] = "gradient"
    measured: GradientRank


class RanksEnd(EndEvent):
    """The ranks of all layers that were measured, that of the whole gradient, and whether these are all.

    gradient  None: it was stopped before, the network is too large, or an earlier version measured
    """

    ranks: dict[str, int | None]
    seconds: float
    whole: bool
    gradient: GradientRank | None = None


ALL: tuple[type[RunEvent], ...] = (  # what may be in a store; four kinds of runs end, and two introduce themselves, each in its own way
    *(StateEvent, NoteEvent, RestartEvent, MetaEvent, FrameEvent, ThinnedEvent, AttackEnd),
    *(TrainingMetaEvent, ProgressEvent, RoundEvent, TrainingEnd, InverterEnd),
    *(TurnEvent, RankEvent, MovedEvent, GradientRankEvent, RanksEnd),
)
