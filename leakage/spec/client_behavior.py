"""What the clients of an experiment do, in words. No torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leakage.spec.catalog import AttackEntry, Catalog, DefenseEntry, ProtocolEntry, ServerEntry
from leakage.spec.declarations import Travels
from leakage.spec.experiment import Experiment, Part, clients_of
from leakage.spec.local_steps import count_local_steps
from leakage.spec.words import counted, format_value


@dataclass(frozen=True)
class ClientBehavior:
    """What the clients of an experiment do: protocol, local steps and sum of updates, for sentences about the experiment."""

    protocol: ProtocolEntry
    fields: dict[str, Any]
    """The fields of the protocol, defaults filled in."""
    steps: int | None
    """Local steps of each client. None: the protocol has no local training."""
    clients: int
    """The number of clients in the sum that arrives; 1: no sum."""
    pictures: int
    """How many pictures each client has."""
    batch_norm: str
    apart: str = ""
    """The tensors that arrive from each client separately although the rest is added up. Empty: none."""
    other_sums: str = ""
    """What reaches the attacker beside the sum, in words. Empty: nothing."""
    receiver: str = Travels.receiver
    """Where the sum arrives, in words."""
    server: ServerEntry | None = None
    """The server that changes the model before it hands it out. None: no server does."""

    @staticmethod
    def of(
        known: Catalog, protocol: Part, aggregation: Part | None, server: Part | None, pictures: int, *, batch_norm: str
    ) -> "ClientBehavior":
        """Return the behavior of clients that have `pictures` pictures together."""
        entry = known.protocols.get(protocol.id)
        fields = {field.name: protocol.fields.get(field.name, field.default) for field in entry.fields}
        clients, summing = clients_of(aggregation, known), known.protocols.find(aggregation.id) if aggregation else None
        given = aggregation.fields if aggregation else {}
        filled = {field.name: given.get(field.name, field.default) for field in summing.fields} if summing else {}
        apart = " ".join(str(filled[field.name]) for field in summing.fields if field.syntax) if summing else ""
        sums = summing.travels if summing else Travels()
        each = max(1, -(-pictures // clients))
        steps = count_local_steps(fields, each)
        changing = known.servers.find(server.id) if server else None
        beside = sums.beside_sum(filled, clients)
        return ClientBehavior(entry, fields, steps, clients, each, batch_norm, apart, beside, sums.receiver, changing)

    @staticmethod
    def in_experiment(experiment: Experiment, known: Catalog) -> "ClientBehavior":
        """Return the behavior of the clients of an experiment."""
        pictures, batch_norm = len(experiment.pictures), experiment.batch_norm
        protocol, aggregation, server = experiment.protocol, experiment.aggregation, experiment.server
        return ClientBehavior.of(known, protocol, aggregation, server, pictures, batch_norm=batch_norm)

    @property
    def name(self) -> str:
        """The field's term for the protocol, for example FedAvg."""
        return self.protocol.short

    @property
    def plain(self) -> bool:
        """Whether the client sends the gradient of one step, and nothing else."""
        return self.protocol.sends_gradient

    @property
    def mixed(self) -> bool:
        """Whether each of several clients uses its own BatchNorm statistics, so that the sum is not the gradient of one batch."""
        return self.clients > 1 and self.batch_norm == "batch"

    @property
    def own_models(self) -> bool:
        """Whether each of several clients received a model of its own, so that the sum is the gradient of none of these models."""
        return self.clients > 1 and self.server is not None and self.server.own_maps

    def reads_models(self, attack: AttackEntry | Part) -> bool:
        """Return whether this attack reads, in the sum, what the server built into the model of each client."""
        return self.own_models and self.server is not None and attack.id in self.server.reading

    def coincide(self, protections: Sequence[DefenseEntry | Part], attack: AttackEntry | Part) -> bool:
        """Return whether the naive and the adaptive attacker do the same.

        They do if what arrives, divided by the number of clients, is the gradient itself. All clients have the same number of pictures, so
        the mean of their gradients is the gradient of one batch, unless BatchNorm mixes the pictures of each client, or each client has a
        model of its own. An attack that reads such models needs no gradient of one batch.
        """
        one_model = self.reads_models(attack) or not self.own_models
        return self.plain and not protections and not self.mixed and not self.apart and not self.other_sums and one_model

    @property
    def local_steps(self) -> str:
        """The local steps in words, as the object of an attacker's imitation."""
        return counted(self.steps or 0, "local step") if self.steps != 1 else "the one local step"

    def describe(self, rounds: int = 1) -> str:
        """Describe the protocol with its settings; without local steps, the step size is left out unless several `rounds` are watched."""
        fields, words = dict(self.fields), [self.protocol.title]
        if self.steps is not None:
            epochs, part = fields.pop("epochs"), fields.pop("mini_batch", 0)
            batches = f"mini-batches of {part}" if 0 < part < self.pictures else "all its pictures at once"
            words.append(f"{counted(epochs, 'epoch')} over {batches}, {counted(self.steps, 'local step')}")
        if "rate" in fields:
            rate, moves = fields.pop("rate"), "the server steps" if self.receiver == Travels.receiver else "every phone steps"
            words += [f"step size {rate:g}"] if self.steps is not None else [f"{moves} by {rate:g}"] if rounds > 1 else []
        if "shuffled" in fields:
            words.append("in a random order that nobody else knows" if fields.pop("shuffled") else "in a known order")
        return "; ".join([*words, *(f"{name.replace('_', ' ')} {format_value(value)}" for name, value in fields.items() if value != 0)])
