"""The events of runs as data: a model for every kind of event that a worker writes and a page reads. No torch.

An event in a store may be older or newer than this file: unknown fields are ignored, and newer fields have defaults.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from leakage.runs.event_parts import (
    CheckFacts,
    Ending,
    EventPart,
    FindingFacts,
    FrameScores,
    GradientRank,
    LayerFacts,
    Maybe,
    Note,
    TrainingPrivacy,
    VerdictWords,
)
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
    """The base of all events. The store fills in `run` and `seq`, the number; an event that is not in the store has no number."""

    kind: str
    run: str = ""
    seq: int = 0

    def body(self) -> dict[str, Any]:
        """Return the fields that the store keeps as JSON: those that were given, without the fields that have columns in the table."""
        return self.model_dump(exclude_unset=True, exclude={"kind", "run", "seq", "picture"})

    def wire(self) -> dict[str, Any]:
        """Return the event as JSON for a page, for an event that is not in the store."""
        return {"run": self.run, "kind": self.kind, **self.body()}

    @classmethod
    def kind_name(cls) -> str:
        """Return the kind of all events of this class."""
        return str(cls.model_fields["kind"].default)


# ---------------------------------------------------------------- every kind of run


class StateEvent(RunEvent):
    """The state of the run: queued, running, done, cancelled or failed. If queued: the position from 1, and the wait in seconds."""

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
    """The run begins anew, and its earlier events are deleted. `text`: the reason, as a sentence."""

    kind: Literal["restart"] = "restart"
    text: str


class EndEvent(RunEvent):
    """The result of a run, which is stored in its row too; the store fills in `status`."""

    kind: Literal["end"] = "end"
    status: str = ""


# ---------------------------------------------------------------- an attack


class MetaEvent(WrittenFlat, RunEvent):
    """The facts about an attack that do not change during the run, for pages: a group for each question that it answers.

    checks  what the phones' checks of the received model found; the attacker does not get it
    """

    kind: Literal["meta"] = "meta"
    truth: PrivateBatch
    update: UpdateFacts
    method: AttackMethod
    knowledge: AttackerKnowledge
    environment: RunEnvironment
    judging: Judging
    checks: tuple[CheckFacts, ...] = Field(default=(), exclude_if=lambda given: not given)

    @property
    def entries(self) -> int:
        """How many numbers the server received."""
        return self.update.received.entries


class FrameEvent(RunEvent):
    """A frame: the attack's guess at one step, with its scores.

    picture  whether the store still has the guess as a picture
    views    other small pictures of the attack by name, as data: URLs
    """

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
    """Pictures of frames were deleted: of the frames so far, only those with the numbers `kept` still have a picture."""

    kind: Literal["thinned"] = "thinned"
    kept: tuple[int, ...]


class AttackEnd(EndEvent):
    """The result of an attack; `answer` is the sequence number of the frame with its final guess, null if the attack was not tried."""

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
    """Runs with equal keys take about the same time per step."""


# ---------------------------------------------------------------- a training


class TrainingMetaEvent(RunEvent):
    """The number of rounds of a training, and its device."""

    kind: Literal["meta"] = "meta"
    rounds: int
    device: str


class TrainingEvent(RunEvent):
    """The progress of a training: rounds done, training loss, seconds."""

    done: float
    loss: Maybe
    seconds: float


class ProgressEvent(TrainingEvent):
    """The progress of a training within a round."""

    kind: Literal["progress"] = "progress"


class RoundEvent(TrainingEvent):
    """The progress of a training at the end of a round, with the accuracy: the fraction of test pictures that are classified correctly."""

    kind: Literal["round"] = "round"
    accuracy: float


class TrainingEnd(EndEvent):
    """The result of a training; no accuracy before the end of its first round, and no checkpoint unless it is finished."""

    accuracy: float | None
    checkpoint: str | None = None
    rounds: int = 0
    seconds: float = 0.0
    privacy: TrainingPrivacy | None = None  # None: no protection promises any


class InverterEnd(EndEvent):
    """The result of training a network that undoes updates: its id, and its mean squared error on held-out pictures; null if stopped."""

    inverter: str | None = None
    mse: float | None = None
    mse_mean: float | None = None
    """The error of the mean training picture, which does not depend on the update."""
    seconds: float = 0.0


# ---------------------------------------------------------------- measured ranks


class TurnEvent(RunEvent):
    """The measurement of a layer's rank begins: the `number`-th of `layers` layers."""

    kind: Literal["turn"] = "turn"
    name: str
    number: int
    layers: int


class RankEvent(RunEvent):
    """The rank of the equations that a layer's weights and gradient give for its input; null if the layer is too large."""

    kind: Literal["rank"] = "rank"
    name: str
    rank: int | None


class MovedEvent(RunEvent):
    """The progress of measuring the rank of d(gradient)/d(picture): the picture was changed along `done` of `directions` directions."""

    kind: Literal["moved"] = "moved"
    done: int
    directions: int


class GradientRankEvent(RunEvent):
    """The measured rank of the whole gradient."""

    kind: Literal["gradient"] = "gradient"
    measured: GradientRank


class RanksEnd(EndEvent):
    """The result of measuring ranks: the rank of every measured layer and of the whole gradient, and whether everything was measured.

    gradient  null if the run was stopped before, if the network is too large, or if the run is of a version that did not measure it
    """

    ranks: dict[str, int | None]
    seconds: float
    whole: bool
    gradient: GradientRank | None = None


class HandedModelEnd(EndEvent):
    """The layers of the model that a server hands out in the first round, beside the network that was agreed on."""

    layers: tuple[LayerFacts, ...]


class GradientNormsEnd(EndEvent):
    """The norm of the gradient of each picture alone, by the picture's id; null where the norm is no finite number."""

    norms: Mapping[str, Maybe]


# ---------------------------------------------------------------- an audit of a recorded update


class StatementEvent(RunEvent):
    """A sentence on what the update says by itself, before any attack."""

    kind: Literal["statement"] = "statement"
    text: str


class FindingEvent(FindingFacts, RunEvent):
    """What one attack found; `picture`: whether the store has its pictures."""

    kind: Literal["finding"] = "finding"
    picture: bool = False


class AuditEnd(EndEvent):
    """The result of an audit: a sentence on what was found, and how many attacks were tried and gave pictures."""

    conclusion: str
    tried: int
    answered: int
    seconds: float
    whole: bool


ALL: tuple[type[RunEvent], ...] = (  # all kinds of events that may be in a store
    *(StateEvent, NoteEvent, RestartEvent, MetaEvent, FrameEvent, ThinnedEvent, AttackEnd),
    *(TrainingMetaEvent, ProgressEvent, RoundEvent, TrainingEnd, InverterEnd),
    *(TurnEvent, RankEvent, MovedEvent, GradientRankEvent, RanksEnd, HandedModelEnd, GradientNormsEnd),
    *(StatementEvent, FindingEvent, AuditEnd),
)
