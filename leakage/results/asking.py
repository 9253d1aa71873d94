"""What is run for a question of the page Ask: every group of people, with its control, the strongest attacker first."""

from collections.abc import Callable, Sequence

from leakage.results import worst_case
from leakage.results.comparison import scenario
from leakage.runs.store import Run
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Assumptions, Experiment, Picture
from leakage.spec.question import Question, groups

MOST = 24  # runs of one answer
GUESSED = 30.0  # seconds of a run that nobody has timed yet
FEWEST = 3  # attacks on each group that have room before another group is attacked
SHARE = 0.85  # of the time is planned for: workers have to start, and results to be scored


def plan(
    question: Question, known: Catalog, estimate: Callable[[Experiment], float | None], *, slots: int, own: Sequence[Picture] = ()
) -> list[Experiment]:
    """What is run: the strongest attack on every group beside its control, then the other attacks, as the time allows.

    Every attack is played once by its strongest attacker before it is played by another. Where the time is short, fewer groups are
    attacked: FEWEST attacks on each come first. An attack that takes longer than the whole time is left out, unless all do. The first
    group is always attacked, and so is its control.

    Raises SpecError where the question cannot be run.
    """

    def seconds(one: Experiment) -> float:
        return estimate(one) or GUESSED

    asked, time_limit = [group.resolve(known) for group in groups(question, own)], SHARE * 60 * question.minutes

    def in_time(tries: list[Experiment]) -> list[Experiment]:
        return [one for one in tries if seconds(one) <= time_limit] or tries[:1]

    tries = [in_time(_each_attack_first(_allowed(worst_case.tries(group, known, measured=True), question))) for group in asked]
    controls = [in_time(unprotected(group, known))[0] for group in asked] if question.defenses else []
    left, planned = time_limit * slots, list[Experiment]()
    per_group = sum(map(seconds, [*tries[0][:FEWEST], *controls[:1]]))
    most = max(1, min(len(asked), int(left // per_group)))
    ordered = [one for group in range(most) for one in (*tries[group][:1], *controls[group : group + 1])]
    ordered += [own[index] for index in range(1, max(map(len, tries))) for own in tries[:most] if index < len(own)]
    for one in ordered[:MOST]:
        left -= seconds(one)
        if left < 0 and len(planned) >= 1 + len(controls[:1]):
            break
        planned.append(one)
    return planned


def unprotected(group: Experiment, known: Catalog) -> list[Experiment]:
    """The same pictures without protection, by the attacks that are strongest there: the first is the control."""
    bare = group.model_copy(update={"defenses": (), "assume": Assumptions()})
    return _each_attack_first(worst_case.tries(bare, known, measured=True))


def is_control(experiment: Experiment, asked: Sequence[Experiment]) -> bool:
    """Whether it is a control among these: it has no protection, and others have one."""
    return not experiment.defenses and any(one.defenses for one in asked)


def _allowed(tries: list[Experiment], question: Question) -> list[Experiment]:
    """The attacks that the question permits. An adaptive attacker may also act naively.

    A naive attacker gets the naive attacks; where there are none, the attacks without a named strategy, marked naive.
    """
    if question.attacker != "naive":
        return tries
    unaware = [one for one in tries if not one.assume.adaptive]
    return unaware or [one.model_copy(update={"assume": Assumptions(adaptive=False)}) for one in tries if not one.assume.strategy]


def _each_attack_first(tries: list[Experiment]) -> list[Experiment]:
    """The strongest attacker of every attack, then the others; each in the order in which they came."""
    seen, first, rest = set[str](), list[Experiment](), list[Experiment]()
    for one in tries:
        (rest if one.attack.id in seen else first).append(one)
        seen.add(one.attack.id)
    return first + rest


def is_about(question: Question, runs: Sequence[Run], known: Catalog) -> bool:
    """Whether these runs were asked by this question: scenario, pictures and seeds are the same; of own pictures their number."""
    return matches(question, [Experiment.model_validate_json(run.experiment) for run in runs], known)


def matches(question: Question, experiments: Sequence[Experiment], known: Catalog) -> bool:
    """The same of experiments."""
    own = list(dict.fromkeys(picture for one in experiments for picture in one.pictures))

    def asked_of(one: Experiment) -> tuple[object, ...]:
        pictures: object = one.pictures if question.who != "own" else len(one.pictures)
        bare = scenario(one).model_copy(update={"pictures": Experiment().pictures, "max_seconds": Experiment().max_seconds})
        return bare.digest(), pictures, one.seed

    try:
        found = [group.resolve(known) for group in groups(question, own)]
        given = {asked_of(one.resolve(known)) for one in experiments}
    except ValueError:
        return False
    main = {asked_of(one) for one in found}
    return given <= main | {asked_of(one.model_copy(update={"defenses": ()})) for one in found} and bool(given & main)
