"""The answer to a question of the page Ask: what is run for it, worst first, and what may be said of what that came to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from leakage.results import worst_case
from leakage.results.comparison import Row, rows, scenario
from leakage.results.differences import protection, sentence_case
from leakage.results.precomputed import Line, matrix, reach, seen_words
from leakage.results.utility import Cost, cost, with_defaults
from leakage.runs.events import AttackEnd
from leakage.runs.reader import RunReader
from leakage.runs.store import OPEN, Run
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture
from leakage.spec.prepared import prepared
from leakage.spec.question import ATTACKERS, STEPS, Question, groups
from leakage.spec.words import CUT_SHORT, INAPPLICABLE, LEAKS, MEANING, PARTLY, RECOGNIZABLE, SINGLED_OUT, VERDICTS

MOST = 24  # runs of one answer
SEVERITY = (*VERDICTS, CUT_SHORT, INAPPLICABLE)  # worst first
GUESSED = 30.0  # seconds of a run that nobody has timed yet
SHARE = 0.85  # of the time is planned for: workers have to start, and results to be scored
LEAK, NOT_SAFE, ASKING, GONE = "leaks", "not shown safe", "not answered yet", "no answer"
ANOTHER = (
    "One picture of each phone, by the best attacker of the precomputed results: an untrained LeNet, CIFAR-10. Who puts "
    "rounds together watches 16 of a server that stands still. What was not shown there is not shown safe."
)
NEVER = (
    "Attacks that nobody has published, or that this program does not have: attackers who learned from other pictures of the same people, "
    "and servers that send a model of their own making.",
    "Other networks. All this is on the small demo network (LeNet), untrained; a wider one gives more away, a trained one often less.",
    "Other pictures, larger ones, more rounds, more time.",
)


def plan(
    question: Question, known: Catalog, estimate: Callable[[Experiment], float | None], *, slots: int, own: Sequence[Picture] = ()
) -> list[Experiment]:
    """What is run: the strongest attacker on every group of people, then the next one, as many as the time allows; at least one.

    Raises SpecError where the question cannot be run.
    """
    tries = [_allowed(worst_case.tries(group.resolve(known), known), question) for group in groups(question, own)]
    ordered = [own_tries[place] for place in range(max(map(len, tries))) for own_tries in tries if place < len(own_tries)]
    left, planned = SHARE * 60 * question.minutes * slots, list[Experiment]()
    for one in ordered[:MOST]:
        left -= estimate(one) or GUESSED
        if planned and left < 0:
            break
        planned.append(one)
    return planned


def _allowed(tries: list[Experiment], question: Question) -> list[Experiment]:
    """Who knows a protection may also attack as if not; who does not know it may not, and does what it says of itself."""
    if question.attacker != "naive":
        return tries
    unaware = [one for one in tries if not one.assume.adaptive]
    return unaware or [one.model_copy(update={"assume": Assumptions(adaptive=False)}) for one in tries if not one.assume.strategy]


@dataclass(frozen=True)
class Alternative:
    """Another protection: what the strongest attacker of the precomputed results got of it, and what it cost a training."""

    title: str
    stack: tuple[Part, ...]
    chosen: bool
    seen: str
    attacker: str
    cost: Cost


@dataclass(frozen=True)
class Answer:
    """What may be said.

    word      LEAK, NOT_SAFE, ASKING while nothing leaks and runs are left, or GONE where nothing leaks and runs were deleted
    people    word of a verdict -> of how many pictures it was the worst
    total     how many pictures were attacked
    seconds   that the attacks took together
    best      the run that shows most; None while none has shown or ended
    cut       runs that did not come to their own answer: stopped, failed, or not done yet
    idle      id of an attack that does not apply here -> why: it was not tried
    begun     ids of the attacks that were begun
    tried     those among them that came to an answer, or showed something before
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

    @property
    def headline(self) -> str:
        """The answer in a sentence."""
        if self.word == LEAK:
            return f"Leaks. {self.seen}"
        if self.word == ASKING:
            return "Nothing shown by the attacks that have ended. Others are still running."
        if self.word == GONE:
            return "Some attacks of this answer were deleted, and what they found with them. Ask again."
        if self.idle and not self.begun:
            return "Not shown safe. None of these attacks applies here, so none was tried, and nothing is known."
        if not self.tried:
            return "Not shown safe. No attack came to an answer, so nothing is known."
        found = sum(row.answered or row.shows for row in self.rows)
        return f"Not shown safe. {self.seen} That is what {found} attack{'s' * (found > 1)} found, and no proof of safety."

    @property
    def decision(self) -> str:
        """What somebody may go by who decides."""
        if self.word == LEAK:
            return "Decide as if whoever runs the server had such pictures: sending updates in this way does not keep them private."
        return "Decide as if it may leak: a failed attack proves nothing." if self.word == NOT_SAFE else ""

    @property
    def meaning(self) -> str:
        """What the word of the picture of which most was shown stands for."""
        return next((MEANING[word] for word in self.people if word in VERDICTS), "")

    @property
    def seen(self) -> str:
        """What could be seen, of how many."""
        counts = [f"{count} {word}" for word, count in self.people.items() if word in (RECOGNIZABLE, SINGLED_OUT, PARTLY)]
        of = f"Of {self.total} picture{'s' if self.total != 1 else ''}: "
        return of + (", ".join(counts) if counts else "none shown by these attacks") + "."


def answer(reader: RunReader, runs: Sequence[Run], known: Catalog, *, gone: int = 0) -> Answer:
    """The answer as far as the runs have come; so many others of it are `gone`."""
    told, worst, begun, tried = rows(reader, list(runs), known), dict[str, str](), set[str](), set[str]()
    idle = dict[str, str]()
    seconds = 0.0
    for run, row in zip(runs, told, strict=True):
        end, asked = run.outcome(AttackEnd), Experiment.model_validate_json(run.experiment)
        if row.inapplicable:
            idle[asked.attack.id] = row.inapplicable
        elif run.started:
            begun.add(asked.attack.id)
        if row.answered or row.shows:
            tried.add(asked.attack.id)
        seconds += (end.seconds or 0.0) if end else 0.0
        words = end.verdict.each or (end.verdict.word,) * len(asked.pictures) if end and end.verdict else ()
        for place, picture in enumerate(asked.pictures):
            found = words[place] if place < len(words) else INAPPLICABLE if row.inapplicable else CUT_SHORT
            key = picture.model_dump_json()
            worst[key] = min(worst.get(key, INAPPLICABLE), found, key=SEVERITY.index)
    people = {word: count for word in SEVERITY if (count := sum(found == word for found in worst.values()))}
    open_runs = sum(run.status in OPEN for run in runs)
    leaks = any(word in people for word in LEAKS)
    best = max(told, key=worst_case.reach_of, default=None)
    return Answer(
        word=LEAK if leaks else ASKING if open_runs else GONE if gone else NOT_SAFE,
        people=people,
        total=len(worst),
        seconds=seconds,
        best=best if best and best.verdict else None,
        rows=tuple(told),
        open=open_runs,
        cut=sum(not row.answered and not row.inapplicable for row in told),
        idle={attack: why for attack, why in idle.items() if attack not in begun | tried},
        begun=frozenset(begun | tried),
        tried=frozenset(tried),
    )


def is_about(question: Question, runs: Sequence[Run], known: Catalog) -> bool:
    """Whether these runs were asked by this question: scenario, pictures and seeds are the same; of own pictures their number."""
    asked = [Experiment.model_validate_json(run.experiment) for run in runs]
    own = list(dict.fromkeys(picture for one in asked for picture in one.pictures))

    def asked_of(one: Experiment) -> tuple[object, ...]:
        pictures: object = one.pictures if question.who != "own" else len(one.pictures)
        bare = scenario(one).model_copy(update={"pictures": Experiment().pictures, "max_seconds": Experiment().max_seconds})
        return bare.digest(), pictures, one.seed

    try:
        expected = {asked_of(group.resolve(known)) for group in groups(question, own)}
    except ValueError:
        return False
    return {asked_of(one) for one in asked} <= expected


def who(row: Row) -> str:
    """The attack of a run, and by whom."""
    words = worst_case.attacker_words(row)
    return f"{row.attack}, by somebody who {words}" if words else row.attack


def not_tried(question: Question, told: Answer, known: Catalog) -> list[str]:
    """What the answer says nothing of."""

    def titles(ids: frozenset[str]) -> str:
        return ", ".join(entry.short for entry in known.of("attack") if entry.id in ids)

    every = frozenset(entry.id for entry in known.of("attack"))
    words = []
    if broken_off := titles(told.begun - told.tried):
        words.append(f"Begun, and broken off before an answer: {broken_off}.")
    words += [f"{titles(frozenset({attack}))} does not apply here, and was not tried: {why}" for attack, why in told.idle.items()]
    if others := titles(every - told.begun - frozenset(told.idle)):
        words.append(f"These attacks of this program: {others}.")
    if told.cut:
        words.append(
            f"{told.cut} of {sum(not row.inapplicable for row in told.rows)} attacks did not come to their own answer. What they had shown "
            "until then counts; what they had not shown says nothing."
        )
    return [*words, *NEVER]


def alternatives(question: Question, reader: RunReader, known: Catalog) -> list[Alternative]:
    """Every protection that was measured beforehand: what leaks to the best attacker, and what it costs a training."""
    lines = [line for line in matrix(known) if line.duels]
    asked = [with_defaults(part, known) for part in question.defenses]
    summed = question.phones > 1  # a single phone says nothing of a sum, nor a sum of a single phone
    own = [line for line in lines if [with_defaults(part, known) for part in line.stack] == asked and (line.phones > 1) == summed]
    chosen = own[0] if own else None
    return [one for line in lines if (one := _alternative(line, line is chosen, reader, known))]


def _alternative(line: Line, chosen: bool, reader: RunReader, known: Catalog) -> Alternative | None:
    cells = [(attack, cell) for attack, duel in line.duels.items() for cell in (duel.naive, duel.best) if cell and "psnr" in cell]
    if not cells:
        return None
    attack, best = max(cells, key=lambda pair: reach(pair[1]))
    behind = cost(reader, Experiment(defenses=line.stack), known)
    title = known.get("attack", attack).short
    return Alternative(
        line.title, line.stack, chosen, sentence_case(seen_words(best)), f"{title}, {known.strategy_title(best['who'])}", behind
    )


def scenario_words(question: Question, known: Catalog) -> list[tuple[str, str]]:
    """The question, line by line."""
    shown = groups(question)[0] if question.who != "own" else Experiment()
    kind = "Your own pictures" if question.who == "own" else prepared().ask.kinds[question.who].title
    sums = f"{question.phones} phones, added up before the server sees them (secure aggregation)"
    return [
        ("Pictures", f"{kind}, {shown.size} px, {'grey' if shown.channels == 1 else 'in colour'}"),
        ("Phones", sums if question.phones > 1 else "one phone by itself"),
        ("In one update", f"{question.each} of each phone, {question.pictures} in all"),
        ("What a phone does", STEPS[question.steps]),
        ("Protection", sentence_case(protection(question.defenses, question.defenses, known))),
        ("Attacker", ATTACKERS[question.attacker]),
        ("Effort", f"{question.minutes} min on this machine"),
    ]
