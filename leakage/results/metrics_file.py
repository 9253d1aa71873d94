"""The file metrics.json that `run` writes: the experiment, its results, and the program and machine that computed them. No torch."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_serializer

from leakage.runs.event_parts import BaselineScores, CheckFacts, Ending, FrameScores, Maybe, Note, VerdictWords
from leakage.spec.experiment import Experiment


class MetricsPart(BaseModel):
    """A part of metrics.json, with exactly the fields that are named here."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


class Privacy(MetricsPart):
    """The budget of differential privacy that a protection promises."""

    epsilon: Maybe
    """An upper bound; null if it is above 200 and bounds nothing, or was not computed: see words."""
    delta: float
    """The probability with which the guarantee may fail."""
    unit: str
    """What is protected, such as one picture, and what that depends on."""
    uses: int
    """The number of noisy sums over which the budget is added up."""
    assumption: str
    """What the bound assumes."""
    words: str
    """The privacy budget in one sentence."""


class ProgramFacts(MetricsPart):
    """The program that computed the results."""

    version: str
    """The version of the package."""
    code: str
    """A hash of all files that a result depends on."""
    commit: str
    """The commit of the checkout, with "-dirty" if files were changed; "unknown" outside a checkout."""


class Machine(MetricsPart):
    """The machine that computed the results: their last digits depend on it."""

    device: str
    """cpu, cuda or mps, and the name of a GPU."""
    threads: int
    """The number of threads of torch on the CPU."""
    platform: str
    """Operating system and processor."""


class MetricsFrame(MetricsPart):
    """A stored moment of the attack. Its picture is frames/NNNNNN.png, numbered by step; the picture of the last moment is final.png."""

    step: int
    seconds: float
    """The time since the attack began, without the time for scoring."""
    loss: Maybe
    """The attack loss, in the unit of the attack."""
    labels: tuple[int, ...]
    """The classes that the attacker predicts for the pictures."""
    scores: FrameScores
    """The scores against the private pictures; scores that were not measured at this moment are missing."""

    @field_serializer("scores")
    def _measured(self, scores: FrameScores) -> dict[str, Any]:
        return scores.model_dump(mode="json", exclude_unset=True)


class Metrics(MetricsPart):
    """Everything that `python -m leakage run` reports on a run, beside the pictures."""

    version: Literal[1] = 1
    """The version of this format."""
    experiment: Experiment
    """The experiment with defaults filled in; as a file it repeats the run."""
    program: ProgramFacts
    packages: dict[str, str]
    """Python and the packages that results depend on, with their versions."""
    machine: Machine
    privacy: Privacy | None
    """The privacy budget; null if no protection promises differential privacy."""
    baselines: dict[str, BaselineScores]
    """The scores of pictures that are independent of the private pictures: grey, mean, noise."""
    answer: MetricsFrame | None
    """The answer; null if the attack does not apply to this experiment, or if the phone refused, as `ending` says: it was not tried."""
    verdict: VerdictWords | None
    ending: Ending
    note: Note
    """Words and numbers that the attack reports."""
    checks: tuple[CheckFacts, ...] = Field(default=(), exclude_if=lambda given: not given)
    """What the phones' checks of the received model found; of a run that the phone refused this is in `ending`."""
    frames: tuple[MetricsFrame, ...]

    @field_serializer("baselines")
    def _measured(self, baselines: dict[str, BaselineScores]) -> dict[str, Any]:
        return {name: scores.model_dump(mode="json", exclude_unset=True) for name, scores in baselines.items()}
