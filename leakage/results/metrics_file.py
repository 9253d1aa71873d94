"""The file metrics.json that `run` writes: what was asked, what came of it, and on which program and machine. No torch."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_serializer

from leakage.runs.event_parts import BaselineScores, Ending, FrameScores, Maybe, Note, VerdictWords
from leakage.spec.experiment import Experiment


class MetricsPart(BaseModel):
    """A part of metrics.json: it holds what is named here, and nothing else."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Privacy(MetricsPart):
    """The budget of differential privacy that a protection promises."""

    epsilon: Maybe = Field(description="An upper bound; null where it is above 200 and bounds nothing, or was not computed: see words.")
    delta: float = Field(description="How often the guarantee may fail.")
    unit: str = Field(description="Whom it is about, and what that depends on.")
    uses: int = Field(description="How many noisy sums it adds up.")
    assumption: str = Field(description="What it takes for granted.")
    words: str = Field(description="All of it in one sentence.")


class ProgramFacts(MetricsPart):
    """Which program computed it."""

    version: str = Field(description="Of the package.")
    code: str = Field(description="A hash of all files that a result depends on.")
    commit: str = Field(description='Of the checkout, with "-dirty" where files were changed; "unknown" outside one.')


class Machine(MetricsPart):
    """On what it was computed: the last digits of results depend on it."""

    device: str = Field(description="cpu, cuda or mps, and the name of a GPU.")
    threads: int = Field(description="Of torch on the CPU.")
    platform: str = Field(description="Operating system and processor.")


class MetricsFrame(MetricsPart):
    """A moment of the attack that was kept: frames/NNNNNN.png by its step, and the last one final.png."""

    step: int
    seconds: float = Field(description="Since the attack began, without the time that scoring took.")
    loss: Maybe = Field(description="What the attack minimises, in its own unit.")
    labels: tuple[int, ...] = Field(description="The classes that the attacker takes the pictures for.")
    scores: FrameScores = Field(description="Against the private pictures; what was not measured at this moment is missing.")

    @field_serializer("scores")
    def _measured(self, scores: FrameScores) -> dict[str, Any]:
        return scores.model_dump(mode="json", exclude_unset=True)


class Metrics(MetricsPart):
    """All that `python -m leakage run` says of one run, beside the pictures."""

    version: Literal[1] = Field(default=1, description="Of this format.")
    experiment: Experiment = Field(description="With every field of every plug-in; a file of it asks the same again.")
    program: ProgramFacts
    packages: dict[str, str] = Field(description="Python and the packages that results depend on, with their versions.")
    machine: Machine
    privacy: Privacy | None = Field(description="null: no protection promises differential privacy.")
    baselines: dict[str, BaselineScores] = Field(description="What pictures that know nothing score: grey, mean, noise.")
    answer: MetricsFrame | None = Field(
        description="null: the attack does not apply to this experiment, as `ending` says, and was not tried."
    )
    verdict: VerdictWords | None
    ending: Ending
    note: Note = Field(description="The attack's own words and numbers.")
    frames: tuple[MetricsFrame, ...]

    @field_serializer("baselines")
    def _measured(self, baselines: dict[str, BaselineScores]) -> dict[str, Any]:
        return {name: scores.model_dump(mode="json", exclude_unset=True) for name, scores in baselines.items()}
