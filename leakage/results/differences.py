"""What tells the variants of a comparison apart, and what they share, in words."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from leakage.data.datasets import TITLES
from leakage.data.images import PictureError, find
from leakage.spec.catalog import LOCAL_RATE, LOCAL_STEPS, Catalog, Entry
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.spec.threat_model import coincide, counted, format_value
from leakage.spec.words import BATCH_NORM, KNOWS, LOSSES, STATISTICS, TASKS

NOTHING = "no protection"


def attacker(experiment: Experiment, known: Catalog) -> str:
    """Whether the attacker imitates what the phone does; "both" where one who does not would do the same."""
    if coincide(experiment, known):
        return "both"
    return "adaptive" if experiment.assume.adaptive else "naive"


def titles(experiments: Sequence[Experiment], known: Catalog) -> list[str]:
    """The shortest words that tell the arms apart, whose naive and adaptive runs share a title; one arm alone: by its protection."""
    told = [words for _, words in aspects(experiments, known, short=True) if len(set(words)) > 1]
    told = told or [words for about, words in aspects(experiments, known, short=True) if about == "The protection"]
    return [", ".join(words) for words in zip(*told, strict=True)]


def differs(experiments: Sequence[Experiment], known: Catalog) -> tuple[list[str], list[str]]:
    """What differs, and what is equal, a line each."""
    attackers = [KNOWS[heard].lower() for one in experiments if (heard := attacker(one, known)) != "both"]
    told = [*aspects(experiments, known, short=False), ("The attacker", attackers)]
    lines = [(about, list(dict.fromkeys(words))) for about, words in told if words]
    normed = any(one.model.fields.get("norm") == "batch" for one in experiments)
    apart = [f"{about}: {'; '.join(words)}" for about, words in lines if len(words) > 1]
    return apart, [f"{about}: {words[0]}" for about, words in lines if len(words) == 1 and (normed or "BatchNorm" not in about)]


def aspects(experiments: Sequence[Experiment], known: Catalog, *, short: bool) -> list[tuple[str, list[str]]]:
    """What an experiment consists of: what it is about, and the words for every one of them."""

    def every(words: Callable[[Experiment], str]) -> list[str]:
        return [words(one) for one in experiments]

    def part(kind: str, of: Callable[[Experiment], Part], without: Sequence[str] = ()) -> list[str]:
        peers = [of(one) for one in experiments]
        full = kind == "attack" and not short and len({peer.id for peer in peers}) == 1
        bare = [_without(peer, without, known) for peer in peers]
        return [part_words(kind, peer, bare, known, short=short, full=full) for peer in bare]

    apart = (LOCAL_STEPS, LOCAL_RATE) if all(local_training(one, known) for one in experiments) else ()
    usual = "default countermeasure" if short else "default"
    stacked = [defense for one in experiments for defense in one.defenses]
    summed = [one.aggregation for one in experiments if one.aggregation]
    return [
        ("The protection", every(lambda one: protection(one.defenses, stacked, known, short=short))),
        ("The attacker's countermeasure", every(lambda one: known.strategy_title(one.assume.strategy) or usual)),
        ("The attack", part("attack", lambda one: one.attack)),
        ("The pictures", _pictures(experiments, short=short)),
        ("Their size", every(lambda one: f"{one.size} px")),
        ("Their colours", every(lambda one: "grey" if one.channels == 1 else "colour")),
        ("The model", part("model", lambda one: one.model)),
        ("Its weights", every(lambda one: f"trained ({one.checkpoint})" if one.checkpoint else "untrained")),
        ("Its outputs", every(lambda one: TASKS[one.task].short)),
        *([("Its classes", every(_classes))] if any(one.outputs for one in experiments) else []),
        *([("Its loss", every(lambda one: LOSSES[one.loss].short))] if any(one.loss != "cross-entropy" for one in experiments) else []),
        ("Its arithmetic", every(lambda one: one.precision)),
        ("BatchNorm uses", every(lambda one: BATCH_NORM[one.batch_norm].short)),
        ("What is sent", part("protocol", lambda one: one.protocol, apart)),
        ("Local steps", _local(experiments, known, _steps_words(experiments, known, short=short))),
        ("Local rate", _local(experiments, known, lambda fields: f"{'local rate ' if short else ''}{fields[LOCAL_RATE]:g}")),
        (
            "Added up with other phones",
            every(lambda one: part_words("protocol", one.aggregation, summed, known, short=short) if one.aggregation else "no"),
        ),
        ("The round", every(lambda one: f"{'round ' if short else ''}{one.attacked_round} of {one.rounds}")),
        ("The labels", every(lambda one: f"{'labels ' if short else ''}{'granted' if one.assume.labels else 'found out'}")),
        ("BatchNorm statistics", every(lambda one: f"{'statistics ' if short else ''}{STATISTICS[one.assume.statistics].short}")),
        *([("The accomplice", every(_accomplice))] if any(one.assume.accomplice for one in experiments) else []),
        *([("Other pictures of every class", every(_examples))] if any(one.assume.examples for one in experiments) else []),
        ("The seed", every(lambda one: f"{'seed ' if short else ''}{one.seed}")),
        ("The time limit", every(lambda one: f"at most {one.max_seconds} s")),
    ]


def _classes(experiment: Experiment) -> str:
    """How many classes its network tells apart."""
    return f"{experiment.num_classes:,} classes"


def _local(experiments: Sequence[Experiment], known: Catalog, words: Callable[[dict[str, Any]], str]) -> list[str]:
    """What is said of the local training of each; nothing where one has none: then it is told with the protocols."""
    fields = [local_training(one, known) for one in experiments]
    return [words(own) for own in fields if own] if all(fields) else []


def _steps_words(experiments: Sequence[Experiment], known: Catalog, *, short: bool) -> Callable[[dict[str, Any]], str]:
    """Local steps, where every one of them takes all the pictures; else how often the phone goes through its pictures."""
    parts = any((local_training(one, known) or {}).get("mini_batch") for one in experiments)
    return lambda fields: counted(fields[LOCAL_STEPS], "epoch" if parts else "local step") if short or parts else str(fields[LOCAL_STEPS])


def local_training(experiment: Experiment, known: Catalog) -> dict[str, Any] | None:
    """All fields of a protocol whose phones train by themselves; None of another, or of one that is gone since."""
    entry = known.protocols.find(experiment.protocol.id)
    return _filled(entry, experiment.protocol) if entry and entry.trains_locally else None


def _without(part: Part, names: Sequence[str], known: Catalog) -> Part:
    """A protocol without the fields that are told by themselves: with their defaults."""
    entry = known.protocols.find(part.id) if names else None
    usual = {field.name: field.default for field in entry.fields if field.name in names} if entry else {}
    return Part(id=part.id, fields={**part.fields, **usual})


def sentence_case(words: str) -> str:
    """As at the beginning of a sentence."""
    return words[:1].upper() + words[1:]


def protection(stack: Sequence[Part], peers: Sequence[Part], known: Catalog, *, short: bool = True) -> str:
    """A stack of protections in the words that tell it from its `peers`."""
    return ", then ".join(part_words("defense", part, peers, known, short=short) for part in stack) or NOTHING


def part_words(kind: str, part: Part, peers: Iterable[Part], known: Catalog, *, short: bool, full: bool = False) -> str:
    """Title and fields: what differs from its like; of a protection its strength and, as of all unless short, what is not as usual.

    `full`: every field.
    """
    entry = next((entry for entry in known.of(kind) if entry.id == part.id), None)
    if entry is None:  # gone since
        return ", ".join([part.id, *(f"{name} {_value(value)}" for name, value in part.fields.items())])
    values, alike = _filled(entry, part), [_filled(entry, peer) for peer in peers if peer.id == part.id]
    numbers = [field.name for field in entry.fields if field.type in ("int", "float")]
    lead = (numbers if len(numbers) == 1 else [] if numbers else [field.name for field in entry.fields][:1]) if kind == "defense" else []
    words = [entry.short if short or kind == "defense" else entry.title]  # a strength may follow
    for field in entry.fields:
        value = values[field.name]
        telling = full or (value != field.default and (kind == "defense" or not short))
        if field.name in lead and field.type != "str":
            words[0] += f" {_value(value)}"
        elif field.name in lead or telling or any(other[field.name] != value for other in alike):
            name = "" if field.type == "str" else f"{field.name.replace('_', ' ')} "
            words.append(f"{name}{_value(value)}")
    return ", ".join(words)


def _filled(entry: Entry, part: Part) -> dict[str, Any]:
    return {field.name: part.fields.get(field.name, field.default) for field in entry.fields}


def _value(value: float | str) -> str:
    return value if isinstance(value, str) else format_value(value)


def _pictures(experiments: Sequence[Experiment], *, short: bool) -> list[str]:
    """How many, where that is what differs; else which."""
    batches = [one.pictures for one in experiments]
    if short and len({len(batch) for batch in batches}) == len(set(batches)):
        return [f"{len(batch)} picture{'' if len(batch) == 1 else 's'}" for batch in batches]
    return [" + ".join(_picture(picture) for picture in batch) for batch in batches]


def _examples(experiment: Experiment) -> str:
    """Whether the attacker owns such pictures."""
    return "starts from another picture of the class" if experiment.assume.examples else "starts without one"


def _accomplice(experiment: Experiment) -> str:
    """Who works with the attacker."""
    own = experiment.assume.accomplice
    return f"accomplice with {_picture(own)}" if own else "no accomplice"


def _picture(picture: Picture) -> str:
    if picture.source == "upload":
        return f"own picture {picture.id} (class {picture.label})"
    try:
        title = find("gallery", picture.id).title if picture.source == "gallery" else f"{TITLES[picture.source]} {picture.id}"
    except PictureError:  # gone since
        title = picture.id
    return title if picture.label is None else f"{title} (class {picture.label})"
