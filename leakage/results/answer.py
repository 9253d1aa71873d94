"""The answer to a question of the page Ask: what its attacks and their controls showed, and what may be concluded."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from leakage.results import worst_case
from leakage.results.asking import is_control, is_protected
from leakage.results.best_of_each import best_of_each
from leakage.results.comparison import Row, rows
from leakage.results.control import Control
from leakage.results.labels_read import LabelsRead, labels_read
from leakage.results.nearest import NAIVE, nearest
from leakage.results.precomputed import SPREAD, UNMEASURED, reach, seen_words
from leakage.results.promise import Promise, first_promise
from leakage.runs.events import AttackEnd
from leakage.runs.reader import RunReader
from leakage.runs.store import OPEN, Run
from leakage.spec.catalog import Catalog
from leakage.spec.conclusion import ASSUME_LEAK, ASSUME_SEEN, LEAK, PROVES_NOTHING, SEVERITY, Conclusion, count_worst
from leakage.spec.experiment import Experiment
from leakage.spec.words import CUT_SHORT, INAPPLICABLE, LEAKS, REFUSED, counted

NOT_SAFE, ASKING, GONE = "not shown safe", "not answered yet", "no answer"


@dataclass(frozen=True)
class Answer(Conclusion):
    """The answer to a question of the page Ask."""

    word: str
    """LEAK, NOT_SAFE, ASKING (nothing leaks so far, and runs are left), GONE (nothing leaks, and runs were deleted), or REFUSED (the phone
    refused in all runs)."""
    seconds: float
    """The computing time of the attacks together, in seconds."""
    best: Row | None
    """The run that shows most; None while no run has a verdict."""
    rows: tuple[Row, ...]
    """The attacks, without the controls."""
    open: int
    """The number of attacks that wait or run."""
    cut: int
    """The number of attacks without a final answer: stopped, failed, or not finished."""
    begun: frozenset[str]
    """The ids of the attacks that were started."""
    tried: frozenset[str]
    """The ids of the attacks that came to an answer, or showed something before they were stopped."""
    servers: frozenset[str] = frozenset()
    """The ids of the servers that change the model in these attacks."""
    idle: dict[str, str] = field(default_factory=dict)
    """For the id of each attack that does not apply here, the reason. Such an attack was not tried."""
    control: Control | None = None
    """The results on the same pictures without protection; None if there are no control runs."""
    labels: LabelsRead | None = None
    """The labels that the attackers predicted; None while no run has predicted any."""
    promise: Promise | None = None
    """The differential privacy that the runs report; None if they report none."""
    protected: bool = False
    """Whether the question names a protection, or checks of the model."""
    when: str = ""
    """The time at which the runs were computed, in words that continue a sentence."""
    stronger: str = ""
    """An untried attack that showed more in the nearest precomputed rows than all tried attacks, and what it showed; empty if none did."""

    @property
    def headline(self) -> str:
        """The answer in a few sentences."""
        if self.word == LEAK:
            return f"Leaks. {self.seen}"
        if self.word == ASKING:
            return "The attacks that have ended recognized nothing. Other attacks are still running."
        if self.word == GONE:
            return "Some attacks of this answer were deleted, with their results. Ask again."
        if self.word == REFUSED:
            return self.refusals
        if self.idle and not self.begun:
            return "None of these attacks applies here, so none was tried, and nothing is known."
        if not self.tried:
            return "No attack came to an answer, so nothing is known."
        return " ".join([PROVES_NOTHING, self.seen, self.played, *self.doubts])

    @property
    def refusals(self) -> str:
        """What the phones refused, in a sentence or two: the refusal if all runs have the same, else the checks that raised an alarm."""
        words = dict.fromkeys(row.refused for row in self.rows)
        if len(words) == 1:
            return next(iter(words))
        alarms = dict.fromkeys(reading.title for row in self.rows for reading in row.readings if reading.tripped)
        refused = "The phones refused each changed model that was tried, and kept their updates."
        return f"{refused} Checks that raised an alarm: {', '.join(alarms)}."

    @property
    def doubts(self) -> list[str]:
        """Sentences that qualify a failed answer: a stronger attack that was not played, and the control."""
        words = [f"A stronger known attack was not played to an answer: {self.stronger}."] if self.stronger else []
        return words + ([self.control.in_headline(self.recognized)] if self.control and self.control.total else [])

    @property
    def played(self) -> str:
        """A sentence on how many attacks were played, in how many runs, and how many of the planned runs have no answer."""
        answered, runs = sum(row.answered or row.shows for row in self.rows), len(self.rows)
        words = f"{counted(len(self.tried), 'attack')} {'was' if len(self.tried) == 1 else 'were'} played, in {counted(answered, 'run')}"
        missing = runs - answered
        return f"{words}; {missing} of {counted(runs, 'planned run')} came to no answer." if missing else f"{words}."

    @property
    def decision(self) -> str:
        """What a decision should assume; empty while there is no answer."""
        if self.word == LEAK:
            return ASSUME_SEEN
        return ASSUME_LEAK if self.word == NOT_SAFE else ""


def answer(reader: RunReader, runs: Sequence[Run], known: Catalog, *, gone: int = 0) -> Answer:
    """Return the answer to a question of the page Ask, from the results that its runs have so far.

    Args:
        reader: reads the runs and their events.
        runs: the attacks and controls of the question that still exist.
        known: the plug-ins.
        gone: the number of runs of the question that were deleted.
    """
    every = {run.id: run.experiment_as(Experiment) for run in runs}
    main = [run for run in runs if not is_control(every[run.id], list(every.values()))]
    main_rows = rows(reader, main, known)
    pairs = list(zip(main, main_rows, strict=True))
    idle = {every[run.id].attack.id: row.inapplicable for run, row in pairs if row.inapplicable}
    begun = {every[run.id].attack.id for run, row in pairs if run.started and not row.untried}
    tried = {every[run.id].attack.id for run, row in pairs if row.answered or row.shows}
    people = count_worst(worst_words(pairs).values())
    open_runs = sum(run.status in OPEN for run in main)
    leaks = any(word in people for word in LEAKS)
    best = max(main_rows, key=worst_case.reach_of, default=None)
    refused = bool(main_rows) and all(row.refused for row in main_rows)
    return Answer(
        word=LEAK if leaks else ASKING if open_runs else GONE if gone else REFUSED if refused else NOT_SAFE,
        people=people,
        seconds=sum(end.seconds or 0.0 for run in main if (end := run.outcome(AttackEnd))),
        best=best if best and best.verdict else None,
        rows=tuple(main_rows),
        open=open_runs,
        cut=sum(not row.answered and not row.untried for row in main_rows),
        idle={attack: why for attack, why in idle.items() if attack not in begun | tried},
        begun=frozenset(begun | tried),
        servers=frozenset(server.id for run in main if (server := every[run.id].server)),
        tried=frozenset(tried),
        control=_control(reader, [run for run in runs if run not in main], known),
        labels=labels_read(reader, main, main_rows),
        promise=first_promise([(meta.update.epsilon, every[run.id].rounds) for run in main if (meta := reader.meta(run.id))]),
        protected=any(map(is_protected, every.values())),
        when=computed(runs),
        stronger=stronger([every[run.id] for run in main], tried, known),
    )


def computed(runs: Sequence[Run]) -> str:
    """Return when runs were computed, as words that continue a sentence; "" if none has ended."""
    ended = [run.finished for run in runs if run.finished]
    if not ended:
        return ""
    first, last = (time.strftime("%Y-%m-%d %H:%M", time.gmtime(when)) for when in (min(ended), max(ended)))
    return f", computed at {first} UTC" if first == last else f", computed from {first} to {last} UTC"


def worst_words(runs: Sequence[tuple[Run, Row]]) -> dict[str, str]:
    """Return for every picture of these runs, as JSON text, the word of the worst verdict that a run gave it; see `picture_words`."""
    return best_of_each((pair for run, row in runs for pair in picture_words(run, row)), lambda word: -SEVERITY.index(word))


def picture_words(run: Run, row: Row) -> list[tuple[str, str]]:
    """List the pictures of a run as JSON text, each with the word of its verdict; without one CUT_SHORT, INAPPLICABLE or REFUSED."""
    end, asked = run.outcome(AttackEnd), run.experiment_as(Experiment)
    words = end.verdict.each or (end.verdict.word,) * len(asked.pictures) if end and end.verdict else ()
    missing = INAPPLICABLE if row.inapplicable else REFUSED if row.refused else CUT_SHORT
    return [(picture.model_dump_json(), words[index] if index < len(words) else missing) for index, picture in enumerate(asked.pictures)]


def _control(reader: RunReader, runs: Sequence[Run], known: Catalog) -> Control | None:
    """Return the result of the control runs, which attack the same pictures without protection; None if there are no such runs."""
    if not runs:
        return None
    controls = rows(reader, list(runs), known)
    ended = [(run, row) for run, row in zip(runs, controls, strict=True) if row.answered or row.shows]
    worst = worst_words(ended)
    return Control(
        seen=sum(word in LEAKS for word in worst.values()),
        total=len(worst),
        open=sum(run.status in OPEN for run in runs),
        cut=len(controls) - len(ended),
        attacks=tuple(dict.fromkeys(row.attack for row in controls)),
        how=max(controls, key=worst_case.reach_of).words or "",
    )


def stronger(experiments: Sequence[Experiment], played: set[str], known: Catalog) -> str:
    """Name the strongest attack that was not played and showed more in the nearest precomputed rows than every played attack.

    An attack showed more if it showed the picture in more runs, or if its PSNR is higher by more than the spread between seeds. Only
    attackers that the scenario permits count: an attacker that averages rounds needs several rounds, and a naive attacker stays naive.
    The rows were measured with an honest server, so they rank no attacks on a model that the server has changed.

    Args:
        experiments: the attacks of the answer.
        played: the ids of the attacks that were played.
        known: the plug-ins.

    Returns:
        The attack and what it showed, in words; "" if there is no such attack.
    """
    if not experiments or any(experiment.server for experiment in experiments):
        return ""
    asked = next((experiment for experiment in experiments if experiment.assume.adaptive), experiments[0])
    permitted = set(worst_case.attackers(asked, known)) - (worst_case.averaging(known) if asked.rounds == 1 else set())
    permitted = permitted if asked.assume.adaptive else {NAIVE}
    attackers = (attacker for attacker in nearest(asked, known).attackers.values() if attacker.strategy in permitted)
    cells = best_of_each(((attacker.attack.id, attacker.cell) for attacker in attackers), reach)
    best_played = max((reach(cell) for attack, cell in cells.items() if attack in played), default=UNMEASURED)
    unplayed = {attack: reach(cell) for attack, cell in cells.items() if attack not in played}
    best = max(unplayed, key=lambda attack: unplayed[attack], default="")
    if not best or unplayed[best] <= best_played._replace(psnr=best_played.psnr + SPREAD):
        return ""
    entry = known.attacks.find(best)
    return f"{entry.short if entry else best} ({seen_words(cells[best])} in the nearest precomputed row)"
