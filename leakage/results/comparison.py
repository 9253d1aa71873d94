"""Several attacks side by side as plain data: what tells the arms apart, and what each one came to."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from leakage.data.datasets import TITLES
from leakage.data.images import PictureError, find
from leakage.results.utility import UNKNOWN, Cost, cost, in_full
from leakage.runs.endings import how_it_stands
from leakage.runs.event_parts import BaselineScores, FrameScores
from leakage.runs.events import AttackEnd
from leakage.runs.reader import RunReader
from leakage.runs.store import Run
from leakage.spec.catalog import Catalog, Entry
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.spec.threat_model import coincide, format_value
from leakage.spec.words import BATCH_NORM, NOT_SHOWN, PARTLY, RECOGNIZABLE, SINGLED_OUT, STATISTICS, TASKS

EXPORTS = {
    "comparison.html": "Report (HTML)",
    "table.csv": "Table (CSV)",
    "comparison.json": "Data (JSON)",
    "pictures.png": "Picture (PNG)",
}
MAX_ARMS = 24  # of one file, both attackers of an arm and all its seeds counted
NOTHING = "no protection"


@dataclass(frozen=True)
class Row:
    """One run of a comparison; a number is None where it was not measured, or is not known.

    arm             the title without the attack, what it does and the seed: what was attacked
    attacker        "adaptive", "naive", or "both" where the two do the same
    status, ended   the run's state, and how it ended or stands, in words; `answered`: the attack came to its own answer
    verdict, words  the verdict's word (spec/words.py) and the sentence that says why
    psnr            in dB; ssim, lpips as published; rank is the median place of the private picture in the line-up
    accuracy        share of test pictures named right by the training in `cost`, which says what has to be known of it
    epsilon         of differential privacy, for one picture in all that this client sent; no sampling assumed; infinite: it bounds nothing
    grey            what a grey picture scores: psnr, ssim, lpips, rank, as far as they were measured
    protection      the protections in words
    attack          the attack in words
    answer          what an adaptive attacker did about them, in words
    """

    title: str
    arm: str
    attacker: str
    run: str
    status: str
    ended: str
    answered: bool
    verdict: str | None
    words: str | None
    psnr: float | None
    ssim: float | None
    lpips: float | None
    rank: float | None
    label_accuracy: float | None
    epsilon: float | None
    accuracy: float | None
    grey: dict[str, float]
    protection: str
    attack: str
    answer: str
    cost: Cost = UNKNOWN

    @property
    def name(self) -> str:
        """Title and attacker."""
        return self.title if self.attacker == "both" else f"{self.title} ({self.attacker})"

    @property
    def failed(self) -> bool:
        """Whether the attack ran to its end and showed nothing."""
        return self.answered and self.verdict == NOT_SHOWN

    @property
    def shows(self) -> bool:
        """Whether the attack shows something, however far it came."""
        return self.verdict in (RECOGNIZABLE, SINGLED_OUT, PARTLY)


def rows(reader: RunReader, runs: list[Run], known: Catalog) -> list[Row]:
    """One row for every run, in their order."""
    asked = [Experiment.model_validate_json(run.experiment) for run in runs]
    peers, attacks = [part for one in asked for part in one.defenses], [one.attack for one in asked]

    def words(one: Experiment) -> dict[str, str]:
        attack = _part("attack", one.attack, attacks, known, short=True)
        return {"protection": protection(one.defenses, peers, known), "attack": attack}

    arms = titles([scenario(one) for one in asked], known)
    return [
        _row(reader, run, experiment, known, title=title, arm=arm, **words(experiment))
        for run, experiment, title, arm in zip(runs, asked, titles(asked, known), arms, strict=True)
    ]


def scenario(experiment: Experiment) -> Experiment:
    """What is attacked: the experiment without the attack, what the attacker does about protections, and the seed."""
    assume = experiment.assume.model_copy(update={"adaptive": True, "strategy": ""})
    return experiment.model_copy(update={"attack": Experiment().attack, "assume": assume, "seed": Experiment().seed})


def _row(reader: RunReader, run: Run, experiment: Experiment, known: Catalog, **words: str) -> Row:
    meta, end = reader.meta(run.id), run.outcome(AttackEnd)
    scores, verdict = end.scores if end else FrameScores(), end.verdict if end else None
    grey = (meta.baselines if meta else {}).get("grey", BaselineScores())
    costs, told = cost(reader, experiment, known), {"psnr": grey.psnr, "ssim": grey.ssim, "lpips": grey.lpips, "rank": grey.rank}
    heard = attacker(experiment, known)
    return Row(
        attacker=heard,
        run=run.id,
        status=run.status,
        ended=how_it_stands(run),
        answered=run.status == "done" and not (end and end.ending and end.ending.how != "answer"),
        verdict=verdict.word if verdict else None,
        words=verdict.why if verdict else None,
        psnr=scores.psnr,
        ssim=scores.ssim,
        lpips=scores.lpips,
        rank=scores.rank,
        label_accuracy=scores.label_accuracy,
        epsilon=in_full(meta.epsilon.value) if meta and meta.epsilon else None,
        accuracy=costs.accuracy,
        cost=costs,
        grey={name: value for name, value in told.items() if value is not None},
        answer="; ".join(meta.answers if meta and heard == "adaptive" else ()),
        **words,
    )


def crossed(experiments: Sequence[Experiment], known: Catalog) -> bool:
    """Whether protections are crossed with attacks, each pair asked once of each attacker: then a table has one cell for every run."""
    met = [(tuple(part.model_dump_json() for part in one.defenses), one.attack.id) for one in experiments]
    pairs, stacks, attacks = set(met), {stack for stack, _ in met}, {attack for _, attack in met}
    once = len({(pair, attacker(one, known)) for pair, one in zip(met, experiments, strict=True)}) == len(experiments)
    return once and len(pairs) > max(len(stacks), len(attacks))


def attacker(experiment: Experiment, known: Catalog) -> str:
    """Whether the attacker imitates what the phone does; "both" where one who does not would do the same."""
    if coincide(experiment, known):
        return "both"
    return "adaptive" if experiment.assume.adaptive else "naive"


def only_naive(rows: list[Row]) -> list[str]:
    """A sentence for each protection that stopped every naive attacker, and not all of those who know what the phone does.

    A naive attack that has not ended, or was stopped early, may find more: nothing is said of its protection.
    """
    naive = [row for row in rows if row.attacker == "naive"]
    open_to_naive = {row.protection for row in naive if not row.failed}
    finds: dict[str, list[str]] = {}  # protection -> the attacks that find the picture when they know of it
    for row in rows:
        if row.attacker == "adaptive" and row.shows:
            finds.setdefault(row.protection, []).append(row.attack)
    several, names = len({row.attack for row in rows}) > 1, {NOTHING: "what is sent"}  # by local steps, or in a sum
    return [
        f"{sentence_case(names.get(one, one))} stops only an attacker who does not know of it."
        + (f" Who knows of it finds the picture by {' and by '.join(dict.fromkeys(finds[one]))}." if several else "")
        for one in dict.fromkeys(row.protection for row in naive)
        if one not in open_to_naive and one in finds
    ]


def same_answers(rows: list[Row]) -> list[str]:
    """A sentence for each arm whose attacker could do no more about the protection than that of an earlier arm."""
    first, told = dict[tuple[str, str, str], str](), list[str]()
    for row in rows:
        if row.attacker == "adaptive" and row.answer:
            other = first.setdefault((row.protection, row.attack, row.answer), row.title)
            told += [f"{sentence_case(row.title)}: here that is the same as “{other}”."] if other != row.title else []
    return told


# ---------------------------------------------------------------- what tells the arms apart


def titles(experiments: Sequence[Experiment], known: Catalog) -> list[str]:
    """The shortest words that tell the arms apart, whose naive and adaptive runs share a title; one arm alone: by its protection."""
    told = [words for _, words in aspects(experiments, known, short=True) if len(set(words)) > 1]
    told = told or [words for about, words in aspects(experiments, known, short=True) if about == "The protection"]
    return [", ".join(words) for words in zip(*told, strict=True)]


def differs(experiments: Sequence[Experiment], known: Catalog) -> tuple[list[str], list[str]]:
    """What differs, and what is equal, a line each."""
    attackers = [heard for one in experiments if (heard := attacker(one, known)) != "both"]
    told = [*aspects(experiments, known, short=False), ("How the attacker reads what arrives", attackers)]
    lines = [(about, list(dict.fromkeys(words))) for about, words in told if words]
    normed = any(one.model.fields.get("norm") == "batch" for one in experiments)
    apart = [f"{about}: {'; '.join(words)}" for about, words in lines if len(words) > 1]
    return apart, [f"{about}: {words[0]}" for about, words in lines if len(words) == 1 and (normed or "BatchNorm" not in about)]


def aspects(experiments: Sequence[Experiment], known: Catalog, *, short: bool) -> list[tuple[str, list[str]]]:
    """What an experiment consists of: what it is about, and the words for every one of them."""

    def every(words: Callable[[Experiment], str]) -> list[str]:
        return [words(one) for one in experiments]

    def part(kind: str, of: Callable[[Experiment], Part]) -> list[str]:
        peers = [of(one) for one in experiments]
        full = kind == "attack" and not short and len({peer.id for peer in peers}) == 1
        return [_part(kind, peer, peers, known, short=short, full=full) for peer in peers]

    stacked = [defense for one in experiments for defense in one.defenses]
    summed = [one.aggregation for one in experiments if one.aggregation]
    return [
        ("The protection", every(lambda one: protection(one.defenses, stacked, known, short=short))),
        ("The answer to it", every(lambda one: one.assume.strategy or ("the usual answer" if short else "the usual one"))),
        ("The attack", part("attack", lambda one: one.attack)),
        ("The pictures", _pictures(experiments, short=short)),
        ("Their size", every(lambda one: f"{one.size} px")),
        ("Their colours", every(lambda one: "grey" if one.channels == 1 else "colour")),
        ("The model", part("model", lambda one: one.model)),
        ("Its weights", every(lambda one: f"trained ({one.checkpoint})" if one.checkpoint else "untrained")),
        ("Its outputs", every(lambda one: TASKS[one.task].short)),
        ("Its arithmetic", every(lambda one: one.precision)),
        ("BatchNorm uses", every(lambda one: BATCH_NORM[one.batch_norm].short)),
        ("What is sent", part("protocol", lambda one: one.protocol)),
        (
            "Added up with other phones",
            every(lambda one: _part("protocol", one.aggregation, summed, known, short=short) if one.aggregation else "no"),
        ),
        ("The round", every(lambda one: f"{'round ' if short else ''}{one.attacked_round} of {one.rounds}")),
        ("The labels", every(lambda one: f"{'labels ' if short else ''}{'granted' if one.assume.labels else 'found out'}")),
        ("BatchNorm statistics", every(lambda one: f"{'statistics ' if short else ''}{STATISTICS[one.assume.statistics].short}")),
        ("The seed", every(lambda one: f"{'seed ' if short else ''}{one.seed}")),
        ("The time limit", every(lambda one: f"at most {one.max_seconds} s")),
    ]


def sentence_case(words: str) -> str:
    """As at the beginning of a sentence."""
    return words[:1].upper() + words[1:]


def protection(stack: Sequence[Part], peers: Sequence[Part], known: Catalog, *, short: bool = True) -> str:
    """A stack of protections in the words that tell it from its `peers`."""
    return ", then ".join(_part("defense", part, peers, known, short=short) for part in stack) or NOTHING


def _part(kind: str, part: Part, peers: Iterable[Part], known: Catalog, *, short: bool, full: bool = False) -> str:
    """Title and fields: what differs from its like; of a protection its strength and, as of all unless short, what is not as usual.

    `full`: every field.
    """
    entry = next((entry for entry in known.of(kind) if entry.id == part.id), None)
    if entry is None:  # gone since
        return ", ".join([part.id, *(f"{name} {_value(value)}" for name, value in part.fields.items())])
    values, alike = _filled(entry, part), [_filled(entry, peer) for peer in peers if peer.id == part.id]
    numbers = [field.name for field in entry.fields if field.type in ("int", "float")]
    lead = (numbers if len(numbers) == 1 else [] if numbers else [field.name for field in entry.fields][:1]) if kind == "defense" else []
    words = [_name(entry, short=short)]
    for field in entry.fields:
        value = values[field.name]
        telling = full or (value != field.default and (kind == "defense" or not short))
        if field.name in lead and field.type != "str":
            words[0] += f" {_value(value)}"
        elif field.name in lead or telling or any(other[field.name] != value for other in alike):
            name = "" if field.type == "str" else f"{field.name.replace('_', ' ')} "
            words.append(f"{name}{_value(value)}")
    return ", ".join(words)


def _name(entry: Entry, *, short: bool) -> str:
    """The title without what explains it: FedAvg; short, also without what stands in brackets: DLG."""
    return entry.title.split(":")[0].split(" (" if short else ":")[0]


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


def _picture(picture: Picture) -> str:
    if picture.source == "upload":
        return f"own picture {picture.id} (class {picture.label})"
    try:
        title = find("gallery", picture.id).title if picture.source == "gallery" else f"{TITLES[picture.source]} {picture.id}"
    except PictureError:  # gone since
        title = picture.id
    return title if picture.label is None else f"{title} (class {picture.label})"
