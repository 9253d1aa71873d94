"""What a model, its protections and the pictures of a local step do not allow together, from what plug-ins declare. No torch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from leakage.spec.catalog import AttackEntry, DefenseEntry, ModelEntry
from leakage.spec.words import MIXED, NO_LABELS, NO_STATISTICS

MAX_CLASSES = 10_000  # of a network; LFW, the largest of our data sets, has 5,749 people
CLASSES_OF = {"cifar100": 100, "faces": 40, "lfw": 5749}  # of sources of pictures; all others have 10


def classes_of(source: str) -> int:
    """How many classes the pictures of a source are sorted into."""
    return CLASSES_OF.get(source, 10)


@dataclass(frozen=True)
class LocalSteps:
    """The local steps of a client: how many pictures the smallest and the largest of them has, and the side of a picture in pixels."""

    fewest: int
    most: int
    size: int

    @staticmethod
    def of(pictures: int, mini_batch: int, size: int) -> "LocalSteps":
        """Those of a client with so many pictures, taken in their order `mini_batch` at a time; 0: all at once.

        >>> LocalSteps.of(5, 2, 32)
        LocalSteps(fewest=1, most=2, size=32)
        """
        most = min(mini_batch or pictures, pictures)
        return LocalSteps(pictures % most or most, most, size)


def refusals(
    model: ModelEntry, fields: dict[str, Any], defenses: Sequence[DefenseEntry], steps: LocalSteps, *, batch_statistics: bool
) -> Iterator[str]:
    """Why the engine would refuse this: protections in the order in which they act, on a model with these fields.

    `batch_statistics`: BatchNorm, which a model says by its field `norm` that it has, takes those of a local step's pictures.
    """
    for entry in defenses:
        yield from (words for needed, words in entry.needs_structure.items() if needed not in model.structure)
    mixes = batch_statistics and fields.get("norm") == "batch"
    if mixes and steps.fewest == 1 and steps.size < model.smallest_alone:
        yield NO_STATISTICS.format(1, steps.size, steps.size)
    yield from (MIXED.format(entry.short) for entry in defenses if mixes and entry.one_by_one)
    alone = False
    for entry in defenses:
        if alone and entry.needs_step and steps.most > 1:
            yield entry.needs_step
        alone = alone or entry.one_by_one


def unreadable(model: ModelEntry, attack: AttackEntry, *, labels: bool) -> Iterator[str]:
    """Why the attack cannot do without labels that are not granted."""
    if attack.reads_labels and not labels and "linear" not in model.structure:
        yield NO_LABELS


def head_refusals(task: str, outputs: int, loss: str, labels: Sequence[int], *, classes: int) -> Iterator[str]:
    """Why a network cannot have these outputs.

    Args:
        task: of the experiment: "classes" for one output for each class.
        outputs: how many classes it is to tell apart, 0 for as many as its pictures have.
        loss: what it is trained by.
        labels: of the pictures.
        classes: how many the pictures are sorted into.

    Yields:
        A sentence with the remedy for each reason.
    """
    if outputs and task != "classes":
        yield f"outputs: with task {task} a network has one output, given was {outputs}. Leave outputs out, or set task to classes."
    elif outputs and not classes <= outputs <= MAX_CLASSES:
        yield (
            f"outputs: allowed is {classes} (the classes of these pictures) to {MAX_CLASSES:,}, given was {outputs}. "
            "Choose a number between them, or leave outputs out."
        )
    if loss != "cross-entropy" and task == "classes":
        yield f"loss: with one output for each class allowed is cross-entropy, given was {loss}. Set task to two."
    if max(labels) >= max(classes, outputs):
        yield f"pictures.label: allowed is 0 to {max(classes, outputs) - 1}, given was {max(labels)}."


def accomplice_refusals(source: str, label: int | None, *, shared: bool, classes: int) -> Iterator[str]:
    """Why a phone with this picture cannot be the accomplice.

    Args:
        source: where its picture is from.
        label: its class, where that is not the one it has there.
        shared: whether it is among the private pictures.
        classes: how many classes the model tells apart, 0 for a model of one output.

    Yields:
        A sentence with the remedy for each reason.
    """
    where = "assume.accomplice:"
    if shared:
        yield f"{where} given was one of the private pictures, which the attacker must not hold. Choose another picture for that phone."
    if source == "upload":
        yield f"{where} allowed are pictures of the gallery and of data sets, given was an upload. Choose one of those."
    if not classes:
        yield f"{where} needs a model with one output for each class, given was one output in all. Set task to classes."
    elif (classes_of(source) - 1 if label is None else label) >= classes:
        yield f"{where} its class must be one of the model's {classes}, given was another. Choose a picture of the same source."
