"""Reasons to refuse a combination of model, protections and pictures, from the declarations of plug-ins. No torch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from leakage.networks.kept_pictures import keeps_pictures
from leakage.spec.catalog import AttackEntry, DefenseEntry, ModelEntry, ServerEntry
from leakage.spec.words import MIXED, NO_LABELS, NO_STATISTICS, inputs_of_maps, too_large_block

MAX_CLASSES = 10_000  # of a network; LFW, the data set with the most classes here, has 5,749 people
CLASSES_OF = {"cifar100": 100, "faces": 40, "lfw": 5749}  # source of pictures -> its number of classes; the others have 10


def classes_of(source: str) -> int:
    """Return the number of classes of a source of pictures."""
    return CLASSES_OF.get(source, 10)


@dataclass(frozen=True)
class LocalSteps:
    """The number of pictures in the smallest and the largest local step (mini-batch) of a client, and the side of a picture."""

    fewest: int
    """The number of pictures in the smallest step."""
    most: int
    """The number of pictures in the largest step."""
    size: int
    """The side of a picture, in pixels."""

    @staticmethod
    def of(pictures: int, mini_batch: int, size: int) -> "LocalSteps":
        """Return the local steps of a client that takes its pictures in mini-batches.

        Args:
            pictures: how many pictures the client has.
            mini_batch: how many pictures a step takes; 0: all.
            size: the side of a picture, in pixels.

        >>> LocalSteps.of(5, 2, 32)
        LocalSteps(fewest=1, most=2, size=32)
        """
        most = min(mini_batch or pictures, pictures)
        return LocalSteps(pictures % most or most, most, size)


def refusals(
    model: ModelEntry, fields: dict[str, Any], defenses: Sequence[DefenseEntry], steps: LocalSteps, *, batch_statistics: bool
) -> Iterator[str]:
    """Yield the reasons for which the engine would refuse this combination of model, protections and local steps.

    Args:
        model: the model.
        fields: its fields; it has BatchNorm if `norm` is "batch".
        defenses: the protections, in the order in which they act.
        steps: the local steps.
        batch_statistics: whether BatchNorm uses the statistics of the pictures of a local step.
    """
    for entry in defenses:
        yield from (words for needed, words in entry.needs_structure.items() if needed not in model.structure)
    mixes = batch_statistics and fields.get("norm") == "batch"
    if mixes and steps.fewest == 1 and steps.size < model.smallest_alone:
        yield NO_STATISTICS.format(1, steps.size, steps.size)
    yield from (MIXED.format(entry.short) for entry in defenses if mixes and entry.one_by_one)
    one_by_one = False
    for entry in defenses:
        if one_by_one and entry.needs_step and steps.most > 1:
            yield entry.needs_step
        one_by_one = one_by_one or entry.one_by_one


def label_refusals(model: ModelEntry, attack: AttackEntry, *, labels: bool) -> Iterator[str]:
    """Yield the reason to refuse the attack, if it must predict labels from the update and the model's last layer is not linear.

    Args:
        model: the model.
        attack: the attack.
        labels: whether the attacker is granted the labels, so that it need not predict them.
    """
    if attack.reads_labels and not labels and "linear" not in model.structure:
        yield NO_LABELS


def head_refusals(task: str, outputs: int, loss: str, labels: Sequence[int], *, classes: int) -> Iterator[str]:
    """Yield the reasons for which a network cannot have these outputs, this loss or these labels.

    Args:
        task: the task of the experiment: "classes" for one output for each class.
        outputs: the number of outputs; 0: as many as the pictures have classes.
        loss: the loss of the network.
        labels: the labels of the pictures.
        classes: the number of classes of the pictures.

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
    """Yield the reasons for which a client with this picture cannot be the accomplice (another client that colludes with the attacker).

    Args:
        source: the source of its picture.
        label: the label of its picture; None: the label that the picture has in its source.
        shared: whether the picture is among the private pictures.
        classes: the number of classes of the model; 0 for a model with one output.

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


def server_refusals(
    entry: ServerEntry, fields: Mapping[str, Any], *, rounds: int, shape: tuple[int, int, int], clients: int
) -> Iterator[str]:
    """Yield the reasons for which a server cannot be used with these rounds, pictures and clients.

    Args:
        entry: the server.
        fields: its fields.
        rounds: the number of watched rounds.
        shape: (C, H, W) of one picture.
        clients: the number of clients whose updates are added up.

    Yields:
        A sentence with the remedy for each reason.
    """
    if rounds < entry.rounds:
        yield f"rounds: {entry.short} needs at least {entry.rounds} watched rounds, given was {rounds}. Raise the number of rounds."
    units = prod(int(fields[name]) for name in entry.widths) if entry.widths else 0
    inputs = inputs_of_maps(shape, clients) if entry.own_maps else 0
    if words := too_large_block(entry.short, prod(shape), units, inputs=inputs):
        yield words


def changed_model_refusals(entry: ServerEntry, model: ModelEntry, fields: Mapping[str, Any], *, channels: int) -> Iterator[str]:
    """Yield the reason for which a server cannot change this model.

    Args:
        entry: the server.
        model: the model.
        fields: its fields.
        channels: the number of channels of a picture.

    Yields:
        A sentence with the remedy.
    """
    if not entry.models:
        return
    allowed, texts = entry.models.get(model.id), [str(fields[field.name]) for field in model.fields if field.syntax == "network"]
    fits = allowed is not None and all(fields[name] in values for name, values in allowed.items())
    if not fits or (entry.kernels_alone and not all(keeps_pictures(text, channels) for text in texts)):
        yield f"model: {entry.needs_model}"
