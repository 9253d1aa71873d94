"""The labels in an answer: for how many pictures the attacker predicted the label, beside a blind guess."""

from collections.abc import Sequence
from dataclasses import dataclass

from leakage.results.comparison import Row
from leakage.runs.reader import RunReader
from leakage.runs.store import Run
from leakage.spec.experiment import Experiment


@dataclass(frozen=True)
class LabelsRead:
    """The number of labels that were predicted correctly."""

    named: int
    """The number of correct labels; for each group of pictures, those of the best attack."""
    total: int
    """The number of pictures in these groups."""
    blind: int
    """The number of correct labels if every picture is taken for the most frequent class."""
    classes: int
    """The number of classes that the network distinguishes."""

    @property
    def words(self) -> str:
        """A sentence on these numbers."""
        words = f"guessed for {self.named} of {self.total} (blind guess: {self.blind} of {self.total})"
        return f"{words}. All are of one class, so this says little" if self.blind == self.total else words


def labels_read(reader: RunReader, runs: Sequence[Run], rows: Sequence[Row]) -> LabelsRead | None:
    """Count the labels that attacks predicted correctly; None while no attack has come to an answer.

    Args:
        reader: reads the runs' first events.
        runs: the attacks.
        rows: the row of each attack, in the same order.
    """
    best, truth, classes = dict[str, int](), dict[str, list[str]](), 0
    for run, row in zip(runs, rows, strict=True):
        meta, experiment = reader.meta(run.id), run.experiment_as(Experiment)
        if row.label_accuracy is None or meta is None or not (row.answered or row.shows):  # a stopped search has not decided on labels
            continue
        group = "".join(picture.model_dump_json() for picture in experiment.pictures)
        best[group] = max(best.get(group, 0), round(row.label_accuracy * len(experiment.pictures)))
        truth[group] = [picture.class_name for picture in meta.truth.pictures]
        classes = max(classes, meta.truth.classes or len(meta.truth.class_names))
    every = [name for names in truth.values() for name in names]
    if not every:
        return None
    return LabelsRead(sum(best.values()), len(every), max(every.count(name) for name in every), classes)
