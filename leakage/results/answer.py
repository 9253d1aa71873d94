"""The answer to a question of the page Ask: what its attacks and their controls came to, and what may be said of it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from leakage.results import worst_case
from leakage.results.asking import is_control
from leakage.results.comparison import Row, rows
from leakage.results.control import Control
from leakage.results.labels_read import LabelsRead, labels_read
from leakage.results.nearest import NAIVE, nearest
from leakage.results.precomputed import SPREAD, UNMEASURED, Cell, reach, seen_words
from leakage.results.promise import Promise, stated
from leakage.runs.events import AttackEnd
from leakage.runs.reader import RunReader
from leakage.runs.store import OPEN, Run
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment
from leakage.spec.threat_model import counted
from leakage.spec.words import CUT_SHORT, INAPPLICABLE, LEAKS, MEANING, PARTLY, RECOGNIZABLE, SINGLED_OUT, VERDICTS

SEVERITY = (*VERDICTS, CUT_SHORT, INAPPLICABLE)  # worst first
LEAK, NOT_SAFE, ASKING, GONE = "leaks", "not shown safe", "not answered yet", "no answer"
PROVES_NOTHING = "Nothing recognized, and that proves nothing."


@dataclass(frozen=True)
class Answer:
    """What may be said.

    word      LEAK, NOT_SAFE, ASKING while nothing leaks and runs are left, or GONE where nothing leaks and runs were deleted
    people    word of a verdict -> of how many pictures it was the worst
    total     how many pictures were attacked
    seconds   that the attacks took together
    best      the run that shows most; None while none has shown or ended
    rows      of the attacks, without the controls
    cut       runs that did not come to their own answer: stopped, failed, or not done yet
    idle      id of an attack that does not apply here -> why: it was not tried
    begun     ids of the attacks that were begun
    tried     those among them that came to an answer, or showed something before
    control   the same pictures without protection; None where no protection was asked about
    labels    of how many pictures their label was named; None while no run has named any
    promise   of differential privacy, as the runs state it; None where they state none
    protected whether a protection was asked about
    when      when its runs were computed, to be appended to a sentence
    stronger  an attack that came further in the nearest precomputed rows than all that were tried, and how far; empty: none did
    """

    word: str
    people: dict[str, int]
    total: int
    seconds: float
    best: Row | None
    rows: tuple[Row, ...]
    open: int
    cut: int
    begun: frozenset[str]
    tried: frozenset[str]
    idle: dict[str, str] = field(default_factory=dict)
    control: Control | None = None
    labels: LabelsRead | None = None
    promise: Promise | None = None
    protected: bool = False
    when: str = ""
    stronger: str = ""

    @property
    def recognized(self) -> int:
        """How many pictures were recognizable or singled out."""
        return sum(self.people.get(word, 0) for word in LEAKS)

    @property
    def headline(self) -> str:
        """The answer in a few sentences."""
        if self.word == LEAK:
            return f"Leaks. {self.seen}"
        if self.word == ASKING:
            return "Nothing recognized by the attacks that have ended. Others are still running."
        if self.word == GONE:
            return "Some attacks of this answer were deleted, and what they found with them. Ask again."
        if self.idle and not self.begun:
            return "None of these attacks applies here, so none was tried, and nothing is known."
        if not self.tried:
            return "No attack came to an answer, so nothing is known."
        return " ".join([PROVES_NOTHING, self.seen, self.played, *self.doubts])

    @property
    def doubts(self) -> list[str]:
        """What a failed answer must be read beside: a stronger attack that was not played, and the control."""
        words = [f"A stronger known attack was not played to an answer: {self.stronger}."] if self.stronger else []
        return words + ([self.control.in_headline(self.recognized)] if self.control and self.control.total else [])

    @property
    def played(self) -> str:
        """How many attacks were played, how often, and how many of the planned runs have no answer."""
        answered, runs = sum(row.answered or row.shows for row in self.rows), len(self.rows)
        words = f"{counted(len(self.tried), 'attack')} {'was' if len(self.tried) == 1 else 'were'} played, in {counted(answered, 'run')}"
        missing = runs - answered
        return f"{words}; {missing} of {counted(runs, 'planned run')} came to no answer." if missing else f"{words}."

    @property
    def decision(self) -> str:
        """What somebody may go by who decides."""
        if self.word == LEAK:
            return "Decide as if the people who run the server had such pictures: sending updates in this way does not keep them private."
        return "Decide as if it may leak: a failed attack proves nothing." if self.word == NOT_SAFE else ""

    @property
    def meaning(self) -> str:
        """What the word of the picture of which most was shown stands for."""
        return next((MEANING[word] for word in self.people if word in VERDICTS), "")

    @property
    def seen(self) -> str:
        """What could be seen, of how many."""
        counts = [f"{count} {word}" for word, count in self.people.items() if word in (RECOGNIZABLE, SINGLED_OUT, PARTLY)]
        unknown = self.people.get(CUT_SHORT, 0)
        words = f"Of {counted(self.total - unknown, 'picture')}: {', '.join(counts) if counts else 'none shown by these attacks'}"
        return f"{words}; time ran out on {unknown} more." if unknown else f"{words}."


def answer(reader: RunReader, runs: Sequence[Run], known: Catalog, *, gone: int = 0) -> Answer:
    """The answer as far as the runs have come; so many others of it are `gone`."""
    every = {run.id: Experiment.model_validate_json(run.experiment) for run in runs}
    main = [run for run in runs if not is_control(every[run.id], list(every.values()))]
    told, worst, begun, tried = rows(reader, main, known), dict[str, str](), set[str](), set[str]()
    idle = dict[str, str]()
    for run, row in zip(main, told, strict=True):
        asked = every[run.id]
        if row.inapplicable:
            idle[asked.attack.id] = row.inapplicable
        elif run.started:
            begun.add(asked.attack.id)
        if row.answered or row.shows:
            tried.add(asked.attack.id)
        for picture, found in words_of(run, row):
            worst[picture] = min(worst.get(picture, INAPPLICABLE), found, key=SEVERITY.index)
    people = {word: count for word in SEVERITY if (count := sum(found == word for found in worst.values()))}
    open_runs = sum(run.status in OPEN for run in main)
    leaks = any(word in people for word in LEAKS)
    best = max(told, key=worst_case.reach_of, default=None)
    return Answer(
        word=LEAK if leaks else ASKING if open_runs else GONE if gone else NOT_SAFE,
        people=people,
        total=len(worst),
        seconds=sum(end.seconds or 0.0 for run in main if (end := run.outcome(AttackEnd))),
        best=best if best and best.verdict else None,
        rows=tuple(told),
        open=open_runs,
        cut=sum(not row.answered and not row.inapplicable for row in told),
        idle={attack: why for attack, why in idle.items() if attack not in begun | tried},
        begun=frozenset(begun | tried),
        tried=frozenset(tried),
        control=_control(reader, [run for run in runs if run not in main], known),
        labels=labels_read(reader, main, told),
        promise=stated([(meta.update.epsilon, every[run.id].rounds) for run in main if (meta := reader.meta(run.id))]),
        protected=any(one.defenses for one in every.values()),
        when=computed(runs),
        stronger=stronger([every[run.id] for run in main], tried, known),
    )


def computed(runs: Sequence[Run]) -> str:
    """When runs were computed, to be appended to a sentence; "" while none has ended."""
    ended = [run.finished for run in runs if run.finished]
    if not ended:
        return ""
    first, last = (time.strftime("%Y-%m-%d %H:%M", time.gmtime(when)) for when in (min(ended), max(ended)))
    return f", computed at {first} UTC" if first == last else f", computed from {first} to {last} UTC"


def words_of(run: Run, row: Row) -> list[tuple[str, str]]:
    """Every picture of a run as text, with the word of its verdict, or why it has none."""
    end, asked = run.outcome(AttackEnd), Experiment.model_validate_json(run.experiment)
    words = end.verdict.each or (end.verdict.word,) * len(asked.pictures) if end and end.verdict else ()
    missing = INAPPLICABLE if row.inapplicable else CUT_SHORT
    return [(picture.model_dump_json(), words[place] if place < len(words) else missing) for place, picture in enumerate(asked.pictures)]


def _control(reader: RunReader, runs: Sequence[Run], known: Catalog) -> Control | None:
    """What the controls came to; None where there are none."""
    if not runs:
        return None
    told = rows(reader, list(runs), known)
    ended = [(run, row) for run, row in zip(runs, told, strict=True) if row.answered or row.shows]
    worst = dict[str, str]()
    for picture, word in (pair for run, row in ended for pair in words_of(run, row)):
        worst[picture] = min(worst.get(picture, INAPPLICABLE), word, key=SEVERITY.index)
    return Control(
        seen=sum(word in LEAKS for word in worst.values()),
        total=len(worst),
        open=sum(run.status in OPEN for run in runs),
        cut=len(told) - len(ended),
        attacks=tuple(dict.fromkeys(row.attack for row in told)),
        how=max(told, key=worst_case.reach_of).words or "",
    )


def stronger(experiments: Sequence[Experiment], played: set[str], known: Catalog) -> str:
    """The attack that came further in the nearest rows than each of those that were played, by id, and how far; "" where none did.

    Further: in more runs the picture was shown, or it was shown better by more than another seed makes. Only attackers that the scenario
    permits count: one that averages rounds needs several, and a naive one stays naive.
    """
    if not experiments:
        return ""
    asked = next((one for one in experiments if one.assume.adaptive), experiments[0])
    permitted = set(worst_case.attackers(asked, known)) - (worst_case.averaging(known) if asked.rounds == 1 else set())
    permitted = permitted if asked.assume.adaptive else {NAIVE}
    cells = dict[str, Cell]()
    for one in nearest(asked, known).attackers.values():
        before = cells.get(one.attack.id)
        if one.who in permitted and (before is None or reach(one.cell) > reach(before)):
            cells[one.attack.id] = one.cell
    *fractions, psnr = max((reach(cell) for attack, cell in cells.items() if attack in played), default=UNMEASURED)
    further = {attack: reach(cell) for attack, cell in cells.items() if attack not in played}
    others = {
        attack: cells[attack]
        for attack, own in further.items()
        if [*own[:-1]] > fractions or ([*own[:-1]] == fractions and own.psnr > psnr + SPREAD)
    }
    if not others:
        return ""
    best = max(others, key=lambda attack: reach(others[attack]))
    entry = known.attacks.find(best)
    return f"{entry.short if entry else best} ({seen_words(others[best])} in the nearest precomputed row)"
