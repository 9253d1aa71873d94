"""What an answer says of labels: of how many pictures the attacker named what they show, beside a blind guess."""

from collections.abc import Sequence
from dataclasses import dataclass

from leakage.results.comparison import Row
from leakage.runs.reader import RunReader
from leakage.runs.store import Run
from leakage.spec.experiment import Experiment


@dataclass(frozen=True)
class LabelsRead:
    """How many labels were named.

    Args:
        named: of how many pictures; of each group the most that one attack named.
        total: pictures of which that is known.
        blind: how many would be named by somebody who calls every picture the most frequent class.
        classes: how many classes the network tells apart.
    """

    named: int
    total: int
    blind: int
    classes: int

    @property
    def words(self) -> str:
        """In a sentence, with what a blind guess names."""
        words = f"guessed for {self.named} of {self.total} (blind guess: {self.blind} of {self.total})"
        return f"{words}. All are of one class, so this says little" if self.blind == self.total else words


def labels_read(reader: RunReader, runs: Sequence[Run], told: Sequence[Row]) -> LabelsRead | None:
    """Of these runs and their rows; None while no run has come to an answer."""
    best, truth, classes = dict[str, int](), dict[str, list[str]](), 0
    for run, row in zip(runs, told, strict=True):
        meta, asked = reader.meta(run.id), Experiment.model_validate_json(run.experiment)
        if row.label_accuracy is None or meta is None or not (row.answered or row.shows):  # a search that was cut off had not decided yet
            continue
        group = "".join(picture.model_dump_json() for picture in asked.pictures)
        best[group] = max(best.get(group, 0), round(row.label_accuracy * len(asked.pictures)))
        truth[group] = [picture.class_name for picture in meta.truth.pictures]
        classes = max(classes, meta.truth.classes or len(meta.truth.class_names))
    every = [name for names in truth.values() for name in names]
    if not every:
        return None
    return LabelsRead(sum(best.values()), len(every), max(every.count(name) for name in every), classes)
