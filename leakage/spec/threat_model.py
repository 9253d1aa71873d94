"""What an experiment assumes, in words: what the phones do, what the attacker knows of it, finds out, was granted, and never sees."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leakage.spec.catalog import AttackEntry, Catalog, DefenseEntry, ModelEntry, ProtocolEntry
from leakage.spec.declarations import Travels
from leakage.spec.experiment import Experiment, Part, Picture, clients_of
from leakage.spec.introduction import Introduction
from leakage.spec.unimitated import asks, steps_left_out, used
from leakage.spec.words import ATTACKERS, BATCH_NORM, LOSSES, STATISTICS, TASKS

Row = tuple[str, str, str]  # a tag, what it is about, what holds


# ---------------------------------------------------------------- the phones


@dataclass(frozen=True)
class ClientBehavior:
    """What the phones do, as far as words need it. `steps`: local steps of each, None where it does not train by itself."""

    protocol: ProtocolEntry
    fields: dict[str, Any]
    steps: int | None
    clients: int
    pictures: int  # of each phone
    batch_norm: str
    apart: str = ""  # of a sum: the tensors that arrive from each phone by itself, as they are named
    other_sums: str = ""  # ... or what else reaches the attacker, in words
    receiver: str = Travels.receiver

    @staticmethod
    def of(known: Catalog, protocol: Part, aggregation: Part | None, pictures: int, *, batch_norm: str) -> "ClientBehavior":
        entry = known.protocols.get(protocol.id)
        fields = {field.name: protocol.fields.get(field.name, field.default) for field in entry.fields}
        clients, over = clients_of(aggregation, known), known.protocols.find(aggregation.id) if aggregation else None
        given = aggregation.fields if aggregation else {}
        own = {field.name: given.get(field.name, field.default) for field in over.fields} if over else {}
        apart = " ".join(str(own[field.name]) for field in over.fields if field.syntax) if over else ""
        laid = over.travels if over else Travels()
        each = max(1, -(-pictures // clients))
        steps = fields["epochs"] * -(-each // (fields.get("mini_batch") or each)) if "epochs" in fields else None
        return ClientBehavior(entry, fields, steps, clients, each, batch_norm, apart, laid.beside_sum(own, clients), laid.receiver)

    @staticmethod
    def in_experiment(experiment: Experiment, known: Catalog) -> "ClientBehavior":
        pictures, batch_norm = len(experiment.pictures), experiment.batch_norm
        return ClientBehavior.of(known, experiment.protocol, experiment.aggregation, pictures, batch_norm=batch_norm)

    @property
    def name(self) -> str:
        """The protocol by the field's term: FedAvg."""
        return self.protocol.short

    @property
    def plain(self) -> bool:
        """One gradient and no more."""
        return self.protocol.sends_gradient

    @property
    def mixed(self) -> bool:
        """Whether every phone of a sum has BatchNorm statistics of its own: then the sum is the gradient of no single batch."""
        return self.clients > 1 and self.batch_norm == "batch"

    def coincide(self, protections: Sequence[DefenseEntry | Part]) -> bool:
        """Whether the naive and the adaptive attacker do the same: what arrives, divided by the number of phones, is the gradient itself.

        Phones share the pictures evenly, so the mean of their gradients is that of one batch, unless BatchNorm mixes the pictures of each.
        """
        return self.plain and not protections and not self.mixed and not self.apart and not self.other_sums

    @property
    def local_steps(self) -> str:
        """What the phone does before it sends, for who imitates it."""
        return counted(self.steps or 0, "local step") if self.steps != 1 else "the one local step"

    def describe(self, rounds: int = 1) -> str:
        """The protocol with its settings, for the threat model table."""
        fields, words = dict(self.fields), [self.protocol.title]
        if self.steps is not None:
            epochs, part = fields.pop("epochs"), fields.pop("mini_batch", 0)
            batches = f"mini-batches of {part}" if 0 < part < self.pictures else "all its pictures at once"
            words.append(f"{counted(epochs, 'epoch')} over {batches}, {counted(self.steps, 'local step')}")
        if "rate" in fields:
            rate, who = fields.pop("rate"), "the server steps" if self.receiver == Travels.receiver else "every phone steps"
            words += [f"step size {rate:g}"] if self.steps is not None else [f"{who} by {rate:g}"] if rounds > 1 else []
        if "shuffled" in fields:
            words.append("in a random order that nobody else knows" if fields.pop("shuffled") else "in a known order")
        return "; ".join([*words, *(f"{name.replace('_', ' ')} {format_value(value)}" for name, value in fields.items() if value != 0)])


def format_value(value: float | str) -> str:
    """The value of a field for a reader: on and off, no spare zeros, words in quotes."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"“{value}”" if isinstance(value, str) else f"{value:g}"


def counted(number: int, what: str) -> str:
    """1 epoch, 5 epochs."""
    return f"{number} {what}{'' if number == 1 else 's'}"


# ---------------------------------------------------------------- the attacker


def coincide(experiment: Experiment, known: Catalog) -> bool:
    """Whether the naive and the adaptive attacker of this experiment do the same; False where its protocol is gone."""
    if known.protocols.find(experiment.protocol.id) is None:
        return False
    return ClientBehavior.in_experiment(experiment, known).coincide(experiment.defenses)


def meaning(
    behavior: ClientBehavior,
    protections: Sequence[DefenseEntry],
    attack: AttackEntry,
    fields: dict[str, Any],
    *,
    answers: Sequence[str] | None,
) -> str:
    """What being adaptive (then `answers` says what is done about each protection), or naive, amounts to here."""
    who = ATTACKERS["naive" if answers is None else "adaptive"]
    if attack.learned:
        return f"{who}: {asks(protections, knows=answers is not None)}"
    answers = answers and [used(attack, entry, answer) for entry, answer in zip(protections, answers, strict=True)]
    if attack.in_place_of_steps and behavior.steps not in (None, 1):
        return f"{who}: {steps_left_out(attack, behavior.clients, protections, answers)}"
    return f"{who}: {_naive(behavior, protections, attack, fields) if answers is None else _adaptive(behavior, protections, answers)}"


def _adaptive(behavior: ClientBehavior, protections: Sequence[DefenseEntry], answers: Sequence[str]) -> str:
    same = behavior.coincide(protections)
    if same and behavior.clients == 1:
        return "it computes what the phone computes. The phone sends a plain gradient, so a naive attacker would do the same."
    each = " of each phone" if behavior.clients > 1 else ""
    how = behavior.protocol.travels.imitated.format(steps=behavior.local_steps + each) or f"it imitates what {behavior.name} does"
    also = behavior.other_sums or (f"of each by itself {behavior.apart}" if behavior.apart else "")
    known_sum = f"the sum, and {also}" if also else "the sum alone"
    sum_of = f"; of {behavior.clients} phones it knows {known_sum}, and guesses the pictures of all" if behavior.clients > 1 else ""
    sum_of += ", as a naive attacker would" if same else ""
    known = "".join(f" {entry.short} is {answer}." for entry, answer in zip(protections, answers, strict=True))
    order = " The random order of the pictures it cannot know." if behavior.fields.get("shuffled") else ""
    return f"{how}{sum_of}.{order}{known}"


def _naive(behavior: ClientBehavior, protections: Sequence[DefenseEntry], attack: AttackEntry, fields: dict[str, Any]) -> str:
    unknown = "".join(f" It does not know of {entry.short}." for entry in protections)
    if behavior.plain:
        what = "the sum, divided by the number of phones," if behavior.clients > 1 else "what arrives"
        right = ", and here it is one: an adaptive attacker would do the same" if behavior.coincide(protections) else ""
        wrong = ", though each phone's BatchNorm used statistics of its own" if behavior.mixed else ""
        return f"it takes {what} for a plain gradient{right or wrong}.{unknown}"
    if imitates(attack):
        made = [words for name, words in attack.mistakes.items() if not fields.get(name)]
        how = f"but {' and '.join(made)}" if made else "both mistakes repaired"
        return f"it imitates the phone, {how}.{unknown}"
    travels = behavior.protocol.travels
    if behavior.steps == 1 and travels.one_step:
        return f"it takes what arrives, rescaled, for a plain gradient; after a single local step it is one.{unknown}"
    steps = [f"the {behavior.steps} local steps"] if behavior.steps not in (None, 1) and travels.imitated else []
    overlooked = " and ".join([*steps, *([travels.overlooked] if travels.overlooked else [])]) or f"what {behavior.name} does"
    return f"it takes what arrives, rescaled, for one plain gradient, and knows nothing of {overlooked}.{unknown}"


def imitates(attack: AttackEntry) -> bool:
    """Whether even the naive attacker imitates the phone, only wrongly."""
    return bool(attack.mistakes)


def assumptions(experiment: Experiment, known: Catalog, meta: Introduction | None, note: dict[str, Any]) -> list[Row]:
    """What the attacker knows, finds out, was granted, and never sees."""
    model, granted = known.models.get(experiment.model.id), experiment.assume.labels
    normalise = experiment.model.fields.get("normalise", "none")
    weights = meta.knowledge.weights if meta else experiment.checkpoint or "untrained"
    behavior, adaptive = ClientBehavior.in_experiment(experiment, known), experiment.assume.adaptive
    attack, protections = known.attacks.get(experiment.attack.id), [known.defenses.get(part.id) for part in experiment.defenses]
    unused = attack.in_place_of_steps and behavior.steps not in (None, 1)
    sees = adaptive or behavior.plain or imitates(attack)
    strategy = experiment.assume.strategy
    answers = (meta.knowledge.answers if meta else ()) or [entry.strategy(strategy).description for entry in protections]
    what = meaning(behavior, protections, attack, experiment.attack.fields, answers=answers if adaptive else None)
    own = f" In the attack's own words: {note['attacker']}." if "attacker" in note else ""
    rows = [
        (
            "knows",
            "The model and its weights",
            f"{_model(model, experiment.model)}, {weights}, "
            f"{TASKS[experiment.task].sentence.format(experiment.num_classes, LOSSES[experiment.loss].sentence)}",
        ),
        ("does not use" if unused else "knows" if sees else "does not know", "What the client does", behavior.describe(experiment.rounds)),
        ("assumed", "Naive or adaptive", what + own),
        *_sum(behavior),
        ("knows", "Rounds watched", _rounds(experiment)),
        (
            "knows",
            "How many pictures, and their size",
            f"{len(experiment.pictures)} of {experiment.channels} x {experiment.size} x {experiment.size}",
        ),
        ("knows", "How pixels are normalised", "not at all" if normalise == "none" else f"by the constants of {normalise}"),
        *_accomplice(experiment.assume.accomplice),
        *_examples(experiment, note),
        ("granted" if granted else "finds out", "The labels", "granted by a switch" if granted else _labels(note)),
        *([("assumed", "What such pictures look like", str(note["prior"]))] if "prior" in note else []),
        *([("assumed", "How large the protection's errors are", str(note["errors"]))] if "errors" in note and protections else []),
        *_own_verdict(note),
    ]
    for part, defense, answer in zip(experiment.defenses, protections, answers, strict=True):
        told = adaptive
        fields = ", ".join(f"{name} {format_value(value)}" for name, value in part.fields.items())
        what = used(attack, defense, answer) if told else "not known: the update is taken as it came"
        rows.append(("knows" if told else "does not know", "The protection", f"{defense.title} ({fields}): {what}"))
    if meta and meta.knowledge.batch_norm:
        rows.append(("knows", "BatchNorm", BATCH_NORM[experiment.batch_norm].sentence))
        given = experiment.assume.statistics
        rows.append(("does not know" if given == "none" else "granted", "BatchNorm statistics", STATISTICS[given].sentence))
    if meta:
        unknowns, numbers = len(experiment.pictures) * experiment.channels * experiment.size**2, meta.entries
        fewer = "" if numbers >= unknowns else ": fewer than there are unknowns, so some guessing remains"
        rows.append(("receives", "Numbers against unknowns", f"{numbers:,} numbers for {unknowns:,} pixel values{fewer}"))
    return [*rows, ("never sees", "The private pictures", "they are with the referee, who computes the scores")]


def _model(entry: ModelEntry, model: Part) -> str:
    """The model's title, and in quotes what its user wrote."""
    texts = [format_value(model.fields[field.name]) for field in entry.fields if field.syntax and model.fields.get(field.name)]
    return " ".join([entry.title, *texts])


def _sum(behavior: ClientBehavior) -> list[Row]:
    """Who else is in the sum that arrives."""
    if behavior.clients == 1:
        return []
    shared = f"{behavior.pictures} picture{'' if behavior.pictures == 1 else 's'} each"
    if behavior.other_sums:
        return [("receives", "A sum of several phones", f"of {behavior.clients} phones with {shared}; and {behavior.other_sums}")]
    single = f"of each phone by itself only {behavior.apart}, which is not encrypted" if behavior.apart else "never a single update"
    return [("receives", "A sum of several phones", f"of {behavior.clients} phones with {shared}; {single}")]


def _accomplice(picture: Picture | None) -> list[Row]:
    """Who works with the attacker."""
    if picture is None:
        return []
    told = f"it works with the attacker, who so knows its picture ({picture.source} {picture.id}) and its gradient in every round"
    return [("granted", "Another phone colludes", told)]


def _examples(experiment: Experiment, note: dict[str, Any]) -> list[Row]:
    """Whether it owns other pictures of every class, and what it did with them; `note` is empty until the run has ended."""
    if not experiment.assume.examples:
        return []
    used = f"; it started from {note['begins']}" if "begins" in note else "; this attack starts from no picture" if note else ""
    return [("granted", "Other pictures of every class", f"where the private ones are from, never one of these{used}")]


def _rounds(experiment: Experiment) -> str:
    """How long the attacker has listened, and which round it attacks."""
    if experiment.rounds == 1:
        return "1, which is attacked"
    return f"{experiment.rounds}, of which round {experiment.attacked_round} is attacked"


def _own_verdict(note: dict[str, Any]) -> list[Row]:
    """Whether the attack knows by itself that it was right, where it can."""
    if "lambda" not in note:
        return []
    rule = "the share of units that are on or off just as its pictures would have them, a half at random"
    proved = f"{note['proved']} pictures proved, without the truth"
    return [("finds out", "Whether it was right", f"lambda {note['lambda']:.4g} ({rule}); {proved}")]


def _labels(note: dict[str, Any]) -> str:
    """The rule that read the labels, and how sure it is."""
    rule, certainty = str(note.get("label rule", "said when the run has ended")), note.get("label certainty")
    if certainty is None:
        return rule
    if certainty < 0.005:
        return f"{rule}; nothing promises that it is right here"
    percent = "more than 99" if 0.99 < certainty < 1 else f"about {certainty:.0%}"[:-1]
    return f"{rule}, expected to be right for {percent} %"
