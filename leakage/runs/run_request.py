"""A task to be queued, and the version of the run that will compute it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from leakage.data.checkpoints import find
from leakage.runs.device_kinds import CPU, on_device
from leakage.settings import FORMULA
from leakage.spec.audit_task import AuditTask
from leakage.spec.experiment import Experiment
from leakage.spec.tasks import GradientNorms, HandedModel, Ranks, Task

Measurement: TypeAlias = Ranks | HandedModel | GradientNorms
MEASURED = {Ranks: "rank", HandedModel: "handed", GradientNorms: "norms"}  # a measurement -> the kind of its run, computed on the CPU


@dataclass(frozen=True)
class RunRequest:
    """A task with defaults filled in, to be queued; `also` names the weights and files of this machine on which the result depends."""

    task: Task
    kind: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    also: str = ""

    @property
    def shareable(self) -> bool:
        """Whether an equal request of another owner may share the run: not if it uses private files."""
        return not self.files and not isinstance(self.task, AuditTask)

    def version(self, code: str, device: str, step: str) -> str:
        """Return the version of the run: runs of equal tasks and versions share their result.

        Args:
            code: the version of the program.
            device: the kind of device that computes attacks.
            step: how gradients are differentiated (`Settings.step`); it changes the last digits of an attack.
        """
        way = f" by {step}" if isinstance(self.task, Experiment) and step != FORMULA else ""
        return on_device(code + self.also + way, CPU if type(self.task) in MEASURED else device)


def version_of_weights(experiment: Experiment) -> str:
    """Return the beginning of the SHA-256 of an experiment's trained weights, or "untrained"."""
    return find(experiment.checkpoint)[1].sha256[:12] if experiment.checkpoint else "untrained"
