"""Several attacks side by side as plain data: what each one came to."""

from collections.abc import Sequence
from dataclasses import dataclass

from leakage.results.accuracy_cost import UNKNOWN, Cost, cost, epsilon_of_json
from leakage.results.differences import NOTHING, attacker, part_words, protection, sentence_case, titles
from leakage.runs.endings import how_it_stands, why_inapplicable
from leakage.runs.event_parts import BaselineScores, FrameScores
from leakage.runs.events import AttackEnd
from leakage.runs.reader import RunReader
from leakage.runs.store import Run
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment
from leakage.spec.words import NOT_SHOWN, PARTLY, RECOGNIZABLE, SINGLED_OUT

EXPORTS = {
    "comparison.html": "Report (HTML)",
    "table.csv": "Table (CSV)",
    "comparison.json": "Data (JSON)",
    "pictures.png": "Picture (PNG)",
}
MAX_ARMS = 24  # of one file, both attackers of an arm and all its seeds counted


@dataclass(frozen=True)
class Row:
    """One run of a comparison; a number is None where it was not measured, or is not known.

    arm             the title without the attack, what it does and the seed: what was attacked
    attacker        "adaptive", "naive", or "both" where the two do the same
    status, ended   the run's state, and how it ended or stands, in words; `answered`: the attack came to its own answer
    inapplicable    why the attack does not apply here: it was not tried, and has no verdict and no scores; "" where it does
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
    inapplicable: str = ""

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
        attack = part_words("attack", one.attack, attacks, known, short=True)
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
    grey = (meta.judging.baselines if meta else {}).get("grey", BaselineScores())
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
        epsilon=epsilon_of_json(meta.update.epsilon.value) if meta and meta.update.epsilon else None,
        accuracy=costs.accuracy,
        cost=costs,
        inapplicable=why_inapplicable(end.ending if end else None),
        grey={name: value for name, value in told.items() if value is not None},
        answer="; ".join(meta.knowledge.answers if meta and heard == "adaptive" else ()),
        **words,
    )


def crossed(experiments: Sequence[Experiment], known: Catalog) -> bool:
    """Whether protections are crossed with attacks, each pair asked once of each attacker: then a table has one cell for every run."""
    met = [(tuple(part.model_dump_json() for part in one.defenses), one.attack.id) for one in experiments]
    pairs, stacks, attacks = set(met), {stack for stack, _ in met}, {attack for _, attack in met}
    once = len({(pair, attacker(one, known)) for pair, one in zip(met, experiments, strict=True)}) == len(experiments)
    return once and len(pairs) > max(len(stacks), len(attacks))


def only_naive(rows: list[Row]) -> list[str]:
    """A sentence for each protection that stopped every naive attacker, and not all of those who know what the phone does.

    A naive attack that has not ended, or was stopped early, may find more: nothing is said of its protection.
    """
    naive = [row for row in rows if row.attacker == "naive" and not row.inapplicable]
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
