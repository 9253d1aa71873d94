"""Reasons to refuse a server that changes the last layer, or that tells clients apart, from the declarations of plug-ins. No torch."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from leakage.spec.catalog import ModelEntry, ServerEntry
from leakage.spec.local_steps import count_local_steps


@dataclass(frozen=True)
class Clients:
    """The clients of an experiment, as far as a server must suit them."""

    members: int
    """How many clients are added up; 1: no sum."""
    steps: int
    """How many local steps each client takes."""
    batch_statistics: bool
    """Whether BatchNorm uses the statistics of the batch."""

    @staticmethod
    def of(members: int, pictures: int, protocol: Mapping[str, Any], *, batch_statistics: bool) -> "Clients":
        """Return the clients of an experiment.

        Args:
            members: how many clients are added up.
            pictures: how many pictures they have together.
            protocol: the fields of the protocol.
            batch_statistics: whether BatchNorm uses the statistics of the batch.

        >>> Clients.of(2, 8, {"epochs": 3, "mini_batch": 2}, batch_statistics=False).steps
        6
        """
        return Clients(members, count_local_steps(protocol, -(-pictures // members)) or 1, batch_statistics)


def last_layer_refusals(
    entry: ServerEntry, fields: Mapping[str, Any], model: ModelEntry, model_fields: Mapping[str, Any], *, outputs: int
) -> Iterator[str]:
    """Yield the reasons for which a server cannot change the last layer of this model.

    Args:
        entry: the server.
        fields: its fields.
        model: the model.
        model_fields: its fields.
        outputs: the number of outputs of the network; 1: one output for two classes.

    Yields:
        A sentence with the remedy for each reason.
    """
    if entry.last_layer != "any" and "linear" not in model.structure:
        yield f"server: {entry.short} needs a model with a linear last layer, and {model.short} has none. Choose another model."
    if entry.last_layer == "bias" and model_fields.get("bias") is False:
        yield f"server: {entry.short} needs a bias in the last layer, given was {model.short} without biases. Switch its biases on."
    if entry.last_layer == "bias" and outputs == 1:
        yield f"server: {entry.short} needs one output for each class, given was one output in all. Set task to classes."
    most = max(outputs, 2) - 1
    for name in entry.classes:
        if fields[name] > most:
            yield f"server {entry.id}.{name}: allowed is 0 to {most}, the classes of the network; given was {fields[name]}."


def client_refusals(entry: ServerEntry, fields: Mapping[str, Any], model_fields: Mapping[str, Any], clients: Clients) -> Iterator[str]:
    """Yield the reasons for which a server cannot work with these clients.

    Args:
        entry: the server.
        fields: its fields.
        model_fields: the fields of the model; it has BatchNorm if `norm` is "batch".
        clients: the clients.

    Yields:
        A sentence with the remedy for each reason.
    """
    if clients.members < entry.clients:
        yield (
            f"server: {entry.short} needs a sum over at least {entry.clients} phones, given was {clients.members}. "
            "Choose secure aggregation with more phones."
        )
    elif entry.client_field and fields[entry.client_field] > clients.members:
        name = entry.client_field
        yield f"server {entry.id}.{name}: allowed is 1 to {clients.members}, the phones that are added up; given was {fields[name]}."
    if entry.one_step and clients.steps > 1:
        yield f"server: {entry.short} needs phones that take one local step, given were {clients.steps} steps. Choose one step or FedSGD."
    if entry.separates and clients.batch_statistics and model_fields.get("norm") == "batch":
        yield (
            f"batch_norm: {entry.short} separates pictures of a batch, and here BatchNorm mixes them by its statistics of the batch. "
            "Choose the stored statistics."
        )
