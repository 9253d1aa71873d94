"""Several attacks side by side as plain data: the result of each."""

from collections.abc import Sequence
from dataclasses import dataclass

from leakage.results.accuracy_cost import UNKNOWN, Cost, cost, epsilon_of_json
from leakage.results.differences import NOTHING, attacker, part_words, protection, sentence_case, titles
from leakage.runs.endings import how_it_stands, why_inapplicable, why_refused
from leakage.runs.event_parts import BaselineScores, CheckFacts, FrameScores
from leakage.runs.events import AttackEnd
from leakage.runs.reader import RunReader
from leakage.runs.store import Run
from leakage.spec.catalog import Catalog
from leakage.spec.check_words import summary
from leakage.spec.experiment import Experiment
from leakage.spec.words import NOT_SHOWN, PARTLY, RECOGNIZABLE, SINGLED_OUT

EXPORTS = {
    "comparison.html": "Report (HTML)",
    "table.csv": "Table (CSV)",
    "comparison.json": "Data (JSON)",
    "pictures.png": "Picture (PNG)",
}
MAX_RUNS = 24  # runs of a file, counting both attackers of a variant and all its seeds


@dataclass(frozen=True)
class Row:
    """A run of a comparison. A number is None if it was not measured or is unknown."""

    title: str
    """The words that tell the variant apart."""
    arm: str
    """The words for the attacked scenario: those of the title, without the attack, the attacker and the seed."""
    attacker: str
    """"adaptive", "naive", or "both" if the two do the same."""
    run: str
    """The id of the run."""
    status: str
    """The status of the run."""
    ended: str
    """How the run ended or stands, in words."""
    answered: bool
    """Whether the attack came to a final answer."""
    verdict: str | None
    """The word of the verdict (spec/words.py)."""
    words: str | None
    """The sentence that gives the reason for the verdict."""
    psnr: float | None
    """In dB."""
    ssim: float | None
    lpips: float | None
    rank: float | None
    """The median rank of the private picture in the line-up."""
    label_accuracy: float | None
    epsilon: float | None
    """Epsilon of one picture in all that this client sent, without sampling; infinite if it bounds nothing."""
    accuracy: float | None
    """The fraction of test pictures that the training in `cost` classifies correctly."""
    grey: dict[str, float]
    """The scores of a grey picture that were measured: psnr, ssim, lpips, rank."""
    protection: str
    """The protections in words."""
    attack: str
    """The attack in words."""
    answer: str
    """What an adaptive attacker did about the protections, in words."""
    cost: Cost = UNKNOWN
    inapplicable: str = ""
    """Why the attack does not apply here, so that it has no verdict and no scores; "" if it applies."""
    server: str = ""
    """The server that changes the model, in words; "" for an honest server."""
    refused: str = ""
    """The refusal of the phone, which sent nothing, so that there is no verdict and no scores; "" if it did not refuse."""
    checks: str = ""
    """What the phones' checks of the received model found, in words; "" if they checked nothing."""
    readings: tuple[CheckFacts, ...] = ()
    """What each check found in each round."""

    @property
    def name(self) -> str:
        """The title, followed by "(naive)" or "(adaptive)" unless both attackers do the same."""
        return self.title if self.attacker == "both" else f"{self.title} ({self.attacker})"

    @property
    def untried(self) -> bool:
        """Whether no attack was tried: it does not apply here, or the phone sent nothing."""
        return bool(self.inapplicable or self.refused)

    @property
    def failed(self) -> bool:
        """Whether the attack ran to its end and showed nothing."""
        return self.answered and self.verdict == NOT_SHOWN

    @property
    def shows(self) -> bool:
        """Whether the attack shows something, finished or not."""
        return self.verdict in (RECOGNIZABLE, SINGLED_OUT, PARTLY)


def rows(reader: RunReader, runs: list[Run], known: Catalog) -> list[Row]:
    """Return a row of the comparison (title, verdict, scores and cost) for every run, in the order of the runs."""
    experiments = [run.experiment_as(Experiment) for run in runs]
    peers, attacks = [part for experiment in experiments for part in experiment.defenses], [experiment.attack for experiment in experiments]
    servers = [experiment.server for experiment in experiments if experiment.server]

    def words(experiment: Experiment) -> dict[str, str]:
        attack = part_words("attack", experiment.attack, attacks, known, short=True)
        server = part_words("server", experiment.server, servers, known, short=True) if experiment.server else ""
        return {"protection": protection(experiment.defenses, peers, known), "attack": attack, "server": server}

    scenario_titles = titles([scenario(experiment) for experiment in experiments], known)
    return [
        _row(reader, run, experiment, known, title=title, arm=scenario_title, **words(experiment))
        for run, experiment, title, scenario_title in zip(runs, experiments, titles(experiments, known), scenario_titles, strict=True)
    ]


def scenario(experiment: Experiment) -> Experiment:
    """Return an experiment with the default attack, attacker and seed, so that equal scenarios have equal digests."""
    assume = experiment.assume.model_copy(update={"adaptive": True, "strategy": ""})
    return experiment.model_copy(update={"attack": Experiment().attack, "assume": assume, "seed": Experiment().seed})


def _row(reader: RunReader, run: Run, experiment: Experiment, known: Catalog, **words: str) -> Row:
    meta, end = reader.meta(run.id), run.outcome(AttackEnd)
    scores, verdict = end.scores if end else FrameScores(), end.verdict if end else None
    grey = (meta.judging.baselines if meta else {}).get("grey", BaselineScores())
    costs, baseline = cost(reader, experiment, known), {"psnr": grey.psnr, "ssim": grey.ssim, "lpips": grey.lpips, "rank": grey.rank}
    attacker_type, ending = attacker(experiment, known), end.ending if end else None
    readings = ending.checks if ending and ending.checks else meta.checks if meta else ()
    return Row(
        attacker=attacker_type,
        run=run.id,
        status=run.status,
        ended=how_it_stands(run),
        answered=run.status == "done" and not (ending and ending.how != "answer"),
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
        inapplicable=why_inapplicable(ending),
        refused=why_refused(ending),
        checks=summary(readings),
        readings=tuple(readings),
        grey={name: value for name, value in baseline.items() if value is not None},
        answer="; ".join(meta.knowledge.answers if meta and attacker_type == "adaptive" else ()),
        **words,
    )


def crossed(experiments: Sequence[Experiment], known: Catalog) -> bool:
    """Return whether a table of protections and attacks has a cell for every run.

    This needs several protections and several attacks, and no pair of protections and attack twice with the same attacker. The same
    protections with another server count as other protections.
    """
    met = [(tuple(part.model_dump_json() for part in (*each.defenses, each.server) if part), each.attack.id) for each in experiments]
    pairs, stacks, attacks = set(met), {stack for stack, _ in met}, {attack for _, attack in met}
    once = len({(pair, attacker(each, known)) for pair, each in zip(met, experiments, strict=True)}) == len(experiments)
    return once and len(pairs) > max(len(stacks), len(attacks))


def crossed_with_servers(rows: Sequence[Row]) -> bool:
    """Return whether a table of protections and servers has a cell for every row, and more cells than there are of either."""
    pairs, stacks, servers = {(row.protection, row.server) for row in rows}, {row.protection for row in rows}, {row.server for row in rows}
    once = len({(row.protection, row.server, row.attacker) for row in rows}) == len(rows)
    return once and len(pairs) > max(len(stacks), len(servers))


def only_naive(rows: list[Row]) -> list[str]:
    """List a sentence for each protection that stopped every naive attacker and not every adaptive attacker.

    A naive attack that has not ended, or was stopped early, may find more, so its protection gets no sentence.
    """
    naive = [row for row in rows if row.attacker == "naive" and not row.untried]
    open_to_naive = {row.protection for row in naive if not row.failed}
    finds: dict[str, list[str]] = {}  # protection -> the adaptive attacks that find the picture
    for row in rows:
        if row.attacker == "adaptive" and row.shows:
            finds.setdefault(row.protection, []).append(row.attack)
    several, names = len({row.attack for row in rows}) > 1, {NOTHING: "what is sent"}  # by local steps, or in a sum
    return [
        f"{sentence_case(names.get(name, name))} stops only an attacker that does not know of it."
        + (f" An attacker that knows of it finds the picture by {' and by '.join(dict.fromkeys(finds[name]))}." if several else "")
        for name in dict.fromkeys(row.protection for row in naive)
        if name not in open_to_naive and name in finds
    ]


def same_answers(rows: list[Row]) -> list[str]:
    """List a sentence for each variant whose attack and countermeasure against the protection are those of an earlier variant."""
    first, sentences = dict[tuple[str, str, str, str], str](), list[str]()
    for row in rows:
        if row.attacker == "adaptive" and row.answer:
            other = first.setdefault((row.protection, row.server, row.attack, row.answer), row.title)
            sentences += [f"{sentence_case(row.title)}: here that is the same as “{other}”."] if other != row.title else []
    return sentences
