"""The threat model of an experiment in words: what the phones do, and what the attacker knows, finds out, is granted and never sees."""

from collections.abc import Sequence
from typing import Any

from leakage.spec.catalog import AttackEntry, Catalog, DefenseEntry, ModelEntry
from leakage.spec.check_words import FoundByCheck, check_rows
from leakage.spec.check_words import Row as Row
from leakage.spec.client_behavior import ClientBehavior
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.spec.introduction import Introduction
from leakage.spec.unimitated import describe_answer, describe_network, describe_without_steps
from leakage.spec.words import ATTACKERS, BATCH_NORM, LOSSES, SERVERS, STATISTICS, TASKS, format_value

ATTACKER_ROW = "Naive or adaptive"  # title of the row on what the attacker makes of the update
_READS = "it reads in the sum what the server built into the model of each phone"


def coincide(experiment: Experiment, known: Catalog) -> bool:
    """Return whether the naive and the adaptive attacker of this experiment do the same; False if its protocol no longer exists."""
    if known.protocols.find(experiment.protocol.id) is None:
        return False
    return ClientBehavior.in_experiment(experiment, known).coincide(experiment.defenses, experiment.attack)


def meaning(
    behavior: ClientBehavior,
    protections: Sequence[DefenseEntry],
    attack: AttackEntry,
    fields: dict[str, Any],
    *,
    answers: Sequence[str] | None,
) -> str:
    """Describe in a sentence what the attacker does.

    Args:
        behavior: what the clients do.
        protections: the defenses.
        attack: the attack.
        fields: the fields of the attack, with their values.
        answers: what the attacker does about each defense; None for a naive attacker.
    """
    attacker = ATTACKERS["naive" if answers is None else "adaptive"]
    if attack.learned:
        return f"{attacker}: {describe_network(protections, knows=answers is not None)}"
    answers = answers and [describe_answer(attack, entry, answer) for entry, answer in zip(protections, answers, strict=True)]
    if attack.in_place_of_steps and behavior.steps not in (None, 1):
        return f"{attacker}: {describe_without_steps(attack, behavior.clients, protections, answers)}"
    does = _naive(behavior, protections, attack, fields) if answers is None else _adaptive(behavior, protections, attack, answers)
    return f"{attacker}: {does}"


def _adaptive(behavior: ClientBehavior, protections: Sequence[DefenseEntry], attack: AttackEntry, answers: Sequence[str]) -> str:
    same = behavior.coincide(protections, attack)
    if same and behavior.clients == 1:
        return "it computes what the phone computes. The phone sends a plain gradient, so a naive attacker would do the same."
    known = "".join(f" {entry.short} is {answer}." for entry, answer in zip(protections, answers, strict=True))
    if behavior.reads_models(attack):
        return f"{_READS}{', as a naive attacker would' if same else ''}.{known}"
    each = " of each phone" if behavior.clients > 1 else ""
    how = behavior.protocol.travels.imitated.format(steps=behavior.local_steps + each) or f"it imitates what {behavior.name} does"
    also = behavior.other_sums or (f"of each by itself {behavior.apart}" if behavior.apart else "")
    known_sum = f"the sum, and {also}" if also else "the sum alone"
    sum_of = f"; of {behavior.clients} phones it knows {known_sum}, and guesses the pictures of all" if behavior.clients > 1 else ""
    sum_of += ", as a naive attacker would" if same else ""
    order = " The random order of the pictures it cannot know." if behavior.fields.get("shuffled") else ""
    return f"{how}{sum_of}.{order}{known}"


def _naive(behavior: ClientBehavior, protections: Sequence[DefenseEntry], attack: AttackEntry, fields: dict[str, Any]) -> str:
    unknown = "".join(f" It does not know of {entry.short}." for entry in protections)
    if behavior.plain:
        what = "the sum, divided by the number of phones," if behavior.clients > 1 else "what arrives"
        same = behavior.coincide(protections, attack)
        if behavior.reads_models(attack):
            return f"{_READS}{', and an adaptive attacker would do the same' if same else ''}.{unknown}"
        how = ", and here it is one: an adaptive attacker would do the same" if same else _overlooked(behavior)
        return f"it takes {what} for a plain gradient{how}.{unknown}"
    if imitates_naively(attack):
        mistakes = [words for name, words in attack.mistakes.items() if not fields.get(name)]
        how = f"but {' and '.join(mistakes)}" if mistakes else "both mistakes repaired"
        return f"it imitates the phone, {how}.{unknown}"
    travels = behavior.protocol.travels
    if behavior.steps == 1 and travels.one_step:
        return f"it takes what arrives, rescaled, for a plain gradient; after a single local step it is one.{unknown}"
    steps = [f"the {behavior.steps} local steps"] if behavior.steps not in (None, 1) and travels.imitated else []
    overlooked = " and ".join([*steps, *([travels.overlooked] if travels.overlooked else [])]) or f"what {behavior.name} does"
    return f"it takes what arrives, rescaled, for one plain gradient, and knows nothing of {overlooked}.{unknown}"


def _overlooked(behavior: ClientBehavior) -> str:
    """Say why the sum of several phones is not the gradient of one batch; nothing if it is, or if there is no sum."""
    if behavior.own_models:
        return ", though each phone received a model of its own"
    return ", though each phone's BatchNorm used statistics of its own" if behavior.mixed else ""


def imitates_naively(attack: AttackEntry) -> bool:
    """Return whether this attack, run by a naive attacker, imitates the client's local steps too, with the mistakes that it declares."""
    return bool(attack.mistakes)


def assumptions(
    experiment: Experiment, known: Catalog, meta: Introduction | None, note: dict[str, Any], *, readings: Sequence[FoundByCheck] = ()
) -> list[Row]:
    """Return the rows of the threat model table: what the attacker knows, finds out, is granted and never sees.

    Args:
        experiment: the experiment.
        known: the plug-ins.
        meta: the first event of the run; None before the run has started.
        note: the notes of the attack's answer; empty before the run has ended.
        readings: what the phones' checks of the received model found; empty before the run has told it.
    """
    model, granted = known.models.get(experiment.model.id), experiment.assume.labels
    normalise = experiment.model.fields.get("normalise", "none")
    weights = meta.knowledge.weights if meta else experiment.checkpoint or "untrained"
    behavior, adaptive = ClientBehavior.in_experiment(experiment, known), experiment.assume.adaptive
    attack, protections = known.attacks.get(experiment.attack.id), [known.defenses.get(part.id) for part in experiment.defenses]
    unused = attack.in_place_of_steps and behavior.steps not in (None, 1)
    sees = adaptive or behavior.plain or imitates_naively(attack)
    strategy = experiment.assume.strategy
    answers = (meta.knowledge.answers if meta else ()) or [entry.strategy(strategy).description for entry in protections]
    what = meaning(behavior, protections, attack, experiment.attack.fields, answers=answers if adaptive else None)
    by_attack = f" The attack reports: {note['attacker']}." if "attacker" in note else ""
    task = TASKS[experiment.task].sentence.format(experiment.num_classes, LOSSES[experiment.loss].sentence)
    batch = f"{len(experiment.pictures)} of {experiment.channels} x {experiment.size} x {experiment.size}"
    rows = [
        *_server(experiment.server, known),
        *check_rows(experiment, known, readings),
        ("knows", "The model and its weights", f"{_model(model, experiment.model)}, {weights}, {task}"),
        ("does not use" if unused else "knows" if sees else "does not know", "What the client does", behavior.describe(experiment.rounds)),
        ("assumed", ATTACKER_ROW, what + by_attack),
        *_sum(behavior),
        ("knows", "Rounds watched", _rounds(experiment)),
        ("knows", "How many pictures, and their size", batch),
        ("knows", "How pixels are normalised", "not at all" if normalise == "none" else f"by the constants of {normalise}"),
        *_accomplice(experiment.assume.accomplice),
        *_examples(experiment, note),
        ("granted" if granted else "finds out", "The labels", "granted by a switch" if granted else _labels(note)),
        *([("assumed", "What such pictures look like", str(note["prior"]))] if "prior" in note else []),
        *([("assumed", "How large the protection's errors are", str(note["errors"]))] if "errors" in note and protections else []),
        *_proof(note),
    ]
    for part, defense, answer in zip(experiment.defenses, protections, answers, strict=True):
        fields = ", ".join(f"{name} {format_value(value)}" for name, value in part.fields.items())
        what = describe_answer(attack, defense, answer) if adaptive else "not known: the update is taken as it came"
        rows.append(("knows" if adaptive else "does not know", "The protection", f"{defense.title} ({fields}): {what}"))
    if meta and meta.knowledge.batch_norm:
        rows.append(("knows", "BatchNorm", BATCH_NORM[experiment.batch_norm].sentence))
        given = experiment.assume.statistics
        rows.append(("does not know" if given == "none" else "granted", "BatchNorm statistics", STATISTICS[given].sentence))
    if meta:
        unknowns, numbers = len(experiment.pictures) * experiment.channels * experiment.size**2, meta.entries
        fewer = "" if numbers >= unknowns else ": fewer than there are unknowns, so some guessing remains"
        rows.append(("receives", "Numbers against unknowns", f"{numbers:,} numbers for {unknowns:,} pixel values{fewer}"))
    return [*rows, ("never sees", "The private pictures", "they are with the referee, which computes the scores")]


def _model(entry: ModelEntry, model: Part) -> str:
    """Return the model's title, followed by the free texts in its fields, in quotes."""
    texts = [format_value(model.fields[field.name]) for field in entry.fields if field.syntax and model.fields.get(field.name)]
    return " ".join([entry.title, *texts])


def _server(server: Part | None, known: Catalog) -> list[Row]:
    """Return the rows about the server: whether it changes the model, and what it is granted for that."""
    if server is None:
        return [("assumed", "The server", SERVERS["honest"])]
    entry = known.servers.get(server.id)
    fields = ", ".join(f"{name} {format_value(value)}" for name, value in server.fields.items())
    rows: list[Row] = [("assumed", "The server", f"{SERVERS[entry.changes]}. {entry.title} ({fields})")]
    if entry.granted:
        heading, text = entry.granted
        rows.append(("granted", heading, text.format(**server.fields)))
    return rows


def _sum(behavior: ClientBehavior) -> list[Row]:
    """Return the row about the sum of several clients' updates that the attacker receives; no row without an aggregation."""
    if behavior.clients == 1:
        return []
    shared = f"{behavior.pictures} picture{'' if behavior.pictures == 1 else 's'} each"
    if behavior.other_sums:
        return [("receives", "A sum of several phones", f"of {behavior.clients} phones with {shared}; and {behavior.other_sums}")]
    single = f"of each phone by itself only {behavior.apart}, which is not encrypted" if behavior.apart else "never a single update"
    return [("receives", "A sum of several phones", f"of {behavior.clients} phones with {shared}; {single}")]


def _accomplice(picture: Picture | None) -> list[Row]:
    """Return the row about the accomplice (another client that colludes with the attacker); no row if there is none."""
    if picture is None:
        return []
    sentence = f"it works with the attacker, which thus knows its picture ({picture.source} {picture.id}) and its gradient in every round"
    return [("granted", "Another phone colludes", sentence)]


def _examples(experiment: Experiment, note: dict[str, Any]) -> list[Row]:
    """Return the row about other pictures of every class that the attacker is granted; no row if it is granted none."""
    if not experiment.assume.examples:
        return []
    used = f"; it started from {note['begins']}" if "begins" in note else "; this attack starts from no picture" if note else ""
    return [("granted", "Other pictures of every class", f"where the private ones are from, never one of these{used}")]


def _rounds(experiment: Experiment) -> str:
    """Describe how many rounds the attacker has watched, and which of them it attacks."""
    if experiment.rounds == 1:
        return "1, which is attacked"
    return f"{experiment.rounds}, of which round {experiment.attacked_round} is attacked"


def _proof(note: dict[str, Any]) -> list[Row]:
    """Return the row about how many of its pictures the attack has proved right without the truth; no row if the attack gives no proofs."""
    if "lambda" not in note:
        return []
    rule = "the fraction of units that are on or off just as its pictures would have them, a half at random"
    proved = f"{note['proved']} pictures proved, without the truth"
    return [("finds out", "Whether it was right", f"lambda {note['lambda']:.4g} ({rule}); {proved}")]


def _labels(note: dict[str, Any]) -> str:
    """Describe by which rule the attack predicted the labels, and the probability that the rule is right."""
    rule, certainty = str(note.get("label rule", "stated when the run has ended")), note.get("label certainty")
    if certainty is None:
        return rule
    if certainty < 0.005:
        return f"{rule}; nothing promises that it is right here"
    percent = "more than 99" if 0.99 < certainty < 1 else f"about {certainty:.0%}"[:-1]
    return f"{rule}, expected to be right for {percent} %"
