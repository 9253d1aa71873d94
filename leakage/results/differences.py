"""The differences between the variants of a comparison, and what they share, in words."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from leakage.data.datasets import TITLES
from leakage.data.images import PictureError, find
from leakage.spec.catalog import LOCAL_RATE, LOCAL_STEPS, Catalog, Entry
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.spec.threat_model import coincide
from leakage.spec.words import BATCH_NORM, KNOWS, LOSSES, STATISTICS, TASKS, counted, format_value

NOTHING = "no protection"
HONEST = "honest server"


def attacker(experiment: Experiment, known: Catalog) -> str:
    """Return "adaptive" if the attacker imitates what the client does, "naive" if not, and "both" if the two would do the same."""
    if coincide(experiment, known):
        return "both"
    return "adaptive" if experiment.assume.adaptive else "naive"


def titles(experiments: Sequence[Experiment], known: Catalog) -> list[str]:
    """Return a short title for every experiment, made of the settings in which the experiments differ.

    Experiments that differ only in whether the attacker knows the protection (naive, adaptive) have the same title. If nothing else
    differs, the name of the protection is the title.
    """
    parts = [words for _, words in aspects(experiments, known, short=True) if len(set(words)) > 1]
    parts = parts or [words for about, words in aspects(experiments, known, short=True) if about == "The protection"]
    return [", ".join(words) for words in zip(*parts, strict=True)]


def differs(experiments: Sequence[Experiment], known: Catalog) -> tuple[list[str], list[str]]:
    """Return the aspects in which experiments differ, and the aspects in which all are equal, each as a line of text."""
    attackers = [KNOWS[which].lower() for each in experiments if (which := attacker(each, known)) != "both"]
    described = [*aspects(experiments, known, short=False), ("The attacker", attackers)]
    lines = [(about, list(dict.fromkeys(words))) for about, words in described if words]
    normed = any(each.model.fields.get("norm") == "batch" for each in experiments)
    apart = [f"{about}: {'; '.join(words)}" for about, words in lines if len(words) > 1]
    return apart, [f"{about}: {words[0]}" for about, words in lines if len(words) == 1 and (normed or "BatchNorm" not in about)]


def aspects(experiments: Sequence[Experiment], known: Catalog, *, short: bool) -> list[tuple[str, list[str]]]:
    """List the aspects in which experiments may differ: the name of each aspect, and a description of every experiment in this aspect.

    Args:
        experiments: the experiments to describe.
        known: the plug-ins.
        short: True for titles, which leave defaults out; False for lists, which name them.
    """

    def every(words: Callable[[Experiment], str]) -> list[str]:
        return [words(each) for each in experiments]

    def part(kind: str, of: Callable[[Experiment], Part], without: Sequence[str] = ()) -> list[str]:
        peers = [of(each) for each in experiments]
        full = kind == "attack" and not short and len({peer.id for peer in peers}) == 1
        bare = [_without(peer, without, known) for peer in peers]
        return [part_words(kind, peer, bare, known, short=short, full=full) for peer in bare]

    apart = (LOCAL_STEPS, LOCAL_RATE) if all(local_training(each, known) for each in experiments) else ()
    usual = "default countermeasure" if short else "default"
    defenses = [defense for each in experiments for defense in each.defenses]
    summed = [each.aggregation for each in experiments if each.aggregation]
    servers = [each.server for each in experiments if each.server]
    checks = [check for each in experiments for check in each.checks]
    return [
        ("The protection", every(lambda each: protection(each.defenses, defenses, known, short=short))),
        *(
            [("The server", every(lambda each: part_words("server", each.server, servers, known, short=short) if each.server else HONEST))]
            if servers
            else []
        ),
        ("The attacker's countermeasure", every(lambda each: known.strategy_title(each.assume.strategy) or usual)),
        ("The attack", part("attack", lambda each: each.attack)),
        ("The pictures", _pictures(experiments, short=short)),
        ("Their size", every(lambda each: f"{each.size} px")),
        ("Their colours", every(lambda each: "grey" if each.channels == 1 else "colour")),
        ("The model", part("model", lambda each: each.model)),
        ("Its weights", every(lambda each: f"trained ({each.checkpoint})" if each.checkpoint else "untrained")),
        ("Its outputs", every(lambda each: TASKS[each.task].short)),
        *([("Its classes", every(_classes))] if any(each.outputs for each in experiments) else []),
        *([("Its loss", every(lambda each: LOSSES[each.loss].short))] if any(each.loss != "cross-entropy" for each in experiments) else []),
        ("Its arithmetic", every(lambda each: each.precision)),
        ("BatchNorm uses", every(lambda each: BATCH_NORM[each.batch_norm].short)),
        ("What is sent", part("protocol", lambda each: each.protocol, apart)),
        ("Local steps", _local(experiments, known, _steps_words(experiments, known, short=short))),
        ("Local rate", _local(experiments, known, lambda fields: f"{'local rate ' if short else ''}{fields[LOCAL_RATE]:g}")),
        (
            "Added up with other phones",
            every(lambda each: part_words("protocol", each.aggregation, summed, known, short=short) if each.aggregation else "no"),
        ),
        *([("The phone's checks", every(lambda each: _checks(each, checks, known)))] if checks else []),
        ("The round", every(lambda each: f"{'round ' if short else ''}{each.attacked_round} of {each.rounds}")),
        ("The labels", every(lambda each: f"{'labels ' if short else ''}{'granted' if each.assume.labels else 'found out'}")),
        ("BatchNorm statistics", every(lambda each: f"{'statistics ' if short else ''}{STATISTICS[each.assume.statistics].short}")),
        *([("The accomplice", every(_accomplice))] if any(each.assume.accomplice for each in experiments) else []),
        *([("Other pictures of every class", every(_examples))] if any(each.assume.examples for each in experiments) else []),
        ("The seed", every(lambda each: f"{'seed ' if short else ''}{each.seed}")),
        ("The time limit", every(lambda each: f"at most {each.max_seconds} s")),
    ]


def _classes(experiment: Experiment) -> str:
    """Describe how many classes the network of an experiment distinguishes."""
    return f"{experiment.num_classes:,} classes"


def _local(experiments: Sequence[Experiment], known: Catalog, words: Callable[[dict[str, Any]], str]) -> list[str]:
    """Describe the local training of each experiment; return an empty list if an experiment has no local training.

    Args:
        experiments: the experiments.
        known: the plug-ins.
        words: describes the fields of a protocol, defaults filled in.
    """
    fields = [local_training(each, known) for each in experiments]
    return [words(values) for values in fields if values] if all(fields) else []


def _steps_words(experiments: Sequence[Experiment], known: Catalog, *, short: bool) -> Callable[[dict[str, Any]], str]:
    """Return a function that describes local training from its fields: in steps, or in epochs if an experiment has mini-batches."""
    parts = any((local_training(each, known) or {}).get("mini_batch") for each in experiments)
    return lambda fields: counted(fields[LOCAL_STEPS], "epoch" if parts else "local step") if short or parts else str(fields[LOCAL_STEPS])


def local_training(experiment: Experiment, known: Catalog) -> dict[str, Any] | None:
    """Return the fields of an experiment's protocol, defaults filled in; None if its clients do not train locally or it is unknown."""
    entry = known.protocols.find(experiment.protocol.id)
    return _filled(entry, experiment.protocol) if entry and entry.trains_locally else None


def _without(part: Part, names: Sequence[str], known: Catalog) -> Part:
    """Return a protocol with the fields `names`, which are described separately, reset to their defaults."""
    entry = known.protocols.find(part.id) if names else None
    usual = {field.name: field.default for field in entry.fields if field.name in names} if entry else {}
    return Part(id=part.id, fields={**part.fields, **usual})


def sentence_case(words: str) -> str:
    """Return the words with a capital first letter."""
    return words[:1].upper() + words[1:]


def protection(defenses: Sequence[Part], peers: Sequence[Part], known: Catalog, *, short: bool = True) -> str:
    """Describe protections in the words that tell them from the protections `peers`, which are listed beside them."""
    return ", then ".join(part_words("defense", part, peers, known, short=short) for part in defenses) or NOTHING


def part_words(kind: str, part: Part, peers: Iterable[Part], known: Catalog, *, short: bool, full: bool = False) -> str:
    """Describe a plug-in by its title and some of its fields.

    Args:
        kind: the kind of the plug-in.
        part: the plug-in.
        peers: other plug-ins; the fields in which one with the same id differs are described.
        known: the catalog.
        short: whether the short title is used and, except for protections, fields are left out unless they differ from `peers`; otherwise
            all fields with values other than their defaults are described. A protection always describes these, and its strength.
        full: whether every field is described.
    """
    entry = next((entry for entry in known.of(kind) if entry.id == part.id), None)
    if entry is None:  # it no longer exists
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
    """Describe the pictures of each experiment: by their number if no more than that differs, else by their titles."""
    batches = [each.pictures for each in experiments]
    if short and len({len(batch) for batch in batches}) == len(set(batches)):
        return [f"{len(batch)} picture{'' if len(batch) == 1 else 's'}" for batch in batches]
    return [" + ".join(_picture(picture) for picture in batch) for batch in batches]


def _checks(experiment: Experiment, peers: Sequence[Part], known: Catalog) -> str:
    """Describe what the phone checks of the received model, in the words that tell its checks from `peers`, and whether it refuses."""
    words = ", ".join(part_words("check", part, peers, known, short=True) for part in experiment.checks)
    return (f"checks {words}" if experiment.refuse else f"checks {words}, and refuses nothing") if words else "no checks"


def _examples(experiment: Experiment) -> str:
    """Describe whether the attacker starts from another picture of the same class as the private picture."""
    return "starts from another picture of the class" if experiment.assume.examples else "starts without one"


def _accomplice(experiment: Experiment) -> str:
    """Describe the accomplice (another client that colludes with the attacker), or say that there is none."""
    picture = experiment.assume.accomplice
    return f"accomplice with {_picture(picture)}" if picture else "no accomplice"


def _picture(picture: Picture) -> str:
    if picture.source == "upload":
        return f"own picture {picture.id} (class {picture.label})"
    try:
        title = find("gallery", picture.id).title if picture.source == "gallery" else f"{TITLES[picture.source]} {picture.id}"
    except PictureError:  # it no longer exists
        title = picture.id
    return title if picture.label is None else f"{title} (class {picture.label})"
