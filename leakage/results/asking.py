"""The runs that answer a question of the page Ask: attacks on every group of pictures and their controls, the strongest attacker first."""

from collections.abc import Callable, Sequence

from leakage.results import worst_case
from leakage.results.comparison import scenario
from leakage.runs.store import Run
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Assumptions, Experiment, Picture, SpecError
from leakage.spec.question import Question, groups

MOST = 24  # runs of an answer
DEFAULT_SECONDS = 30.0  # assumed for a run that was never timed
FEWEST = 3  # attacks on each group that must fit before another group is attacked
PLANNED_FRACTION = 0.85  # of the time; the rest is for starting workers and scoring results


def plan(
    question: Question, known: Catalog, estimate: Callable[[Experiment], float | None], *, slots: int, uploads: Sequence[Picture] = ()
) -> list[Experiment]:
    """Return the experiments to run: the strongest attack on every group with its control, then other attacks as the time allows.

    Every attack runs once with its strongest attacker before it runs with another. If the time is short, fewer groups are attacked, so that
    FEWEST attacks on each fit. An attack that takes longer than the whole time is left out, unless all do. The first group and its control
    are always planned.

    Args:
        question: the question, with its time in minutes.
        known: the plug-ins.
        estimate: returns the seconds that an experiment takes, or None if no such run was timed yet.
        slots: how many runs the workers compute at a time.
        uploads: the uploaded pictures, for a question about uploaded pictures.

    Returns:
        The experiments in the order in which they are to be queued, at most MOST.

    Raises:
        SpecError: the question cannot be run.
    """

    def seconds(experiment: Experiment) -> float:
        return estimate(experiment) or DEFAULT_SECONDS

    asked, time_limit = [group.resolve(known) for group in groups(question, uploads)], PLANNED_FRACTION * 60 * question.minutes

    def in_time(attacks: list[Experiment]) -> list[Experiment]:
        return [attack for attack in attacks if seconds(attack) <= time_limit] or attacks[:1]

    attacks = [in_time(_each_attack_first(_allowed(_attacks(group, question, known), question))) for group in asked]
    controls = [in_time(unprotected(group, question, known))[0] for group in asked] if is_protected(asked[0]) else []
    left, planned = time_limit * slots, list[Experiment]()
    per_group = sum(map(seconds, [*attacks[0][:FEWEST], *controls[:1]]))
    most = max(1, min(len(asked), int(left // per_group)))
    ordered = [experiment for group in range(most) for experiment in (*attacks[group][:1], *controls[group : group + 1])]
    ordered += [of_group[index] for index in range(1, max(map(len, attacks))) for of_group in attacks[:most] if index < len(of_group)]
    for experiment in ordered[:MOST]:
        left -= seconds(experiment)
        if left < 0 and len(planned) >= 1 + len(controls[:1]):
            break
        planned.append(experiment)
    return planned


def unprotected(group: Experiment, question: Question, known: Catalog) -> list[Experiment]:
    """Return the attacks on an experiment's pictures without protections and checks, the strongest first: the first is the control."""
    return _each_attack_first(_attacks(_bare(group).model_copy(update={"assume": Assumptions()}), question, known))


def is_protected(experiment: Experiment) -> bool:
    """Return whether the clients of an experiment protect themselves: by a protection, or by checks of the model that they receive."""
    return bool(experiment.defenses or experiment.checks)


def _bare(experiment: Experiment) -> Experiment:
    return experiment.model_copy(update={"defenses": (), "checks": (), "refuse": Experiment().refuse})


def _attacks(group: Experiment, question: Question, known: Catalog) -> list[Experiment]:
    """Return the attacks on a group of pictures by the question's kind of server, the strongest first.

    Raises SpecError if no server that changes the model can be used here.
    """
    if question.attacker != "changes":
        return worst_case.strongest_attacks(group, known, measured=True)
    if attacks := worst_case.attacks_by_servers(group, known):
        return attacks
    raise SpecError("No server that changes the model can be used with these pictures. Choose another attacker, or fewer pictures.")


def is_control(experiment: Experiment, asked: Sequence[Experiment]) -> bool:
    """Return whether an experiment is a control: its clients do not protect themselves, and those of another of `asked` do."""
    return not is_protected(experiment) and any(map(is_protected, asked))


def _allowed(attacks: list[Experiment], question: Question) -> list[Experiment]:
    """Return the attacks that the question permits. An adaptive attacker may also act naively.

    A naive attacker gets the naive attacks; if there are none, the attacks without a named strategy, marked naive.
    """
    if question.attacker != "naive":
        return attacks
    naive, unnamed = Assumptions(adaptive=False), [attack for attack in attacks if not attack.assume.strategy]
    unaware = [attack for attack in attacks if not attack.assume.adaptive]
    return unaware or [attack.model_copy(update={"assume": naive}) for attack in unnamed]


def _each_attack_first(attacks: list[Experiment]) -> list[Experiment]:
    """Put the first experiment of every attack method and every server before all others; both parts keep their order."""
    seen, first, rest = set[tuple[str, str]](), list[Experiment](), list[Experiment]()
    for experiment in attacks:
        method = experiment.attack.id, experiment.server.id if experiment.server else ""
        (rest if method in seen else first).append(experiment)
        seen.add(method)
    return first + rest


def is_about(question: Question, runs: Sequence[Run], known: Catalog) -> bool:
    """Return whether these runs answer the question: the same scenario, pictures and seeds, as in `matches`."""
    return matches(question, [run.experiment_as(Experiment) for run in runs], known)


def matches(question: Question, experiments: Sequence[Experiment], known: Catalog) -> bool:
    """Return whether these experiments answer the question: the same scenario, pictures and seeds.

    Of uploaded pictures only the number is compared.
    """
    pictures = list(dict.fromkeys(picture for experiment in experiments for picture in experiment.pictures))
    if any((experiment.server is None) == (question.attacker == "changes") for experiment in experiments):
        return False

    def key(experiment: Experiment) -> tuple[object, ...]:
        compared: object = experiment.pictures if question.who != "own" else len(experiment.pictures)
        same = {"pictures": Experiment().pictures, "max_seconds": Experiment().max_seconds, "server": None}
        return scenario(experiment).model_copy(update=same).digest(), compared, experiment.seed

    try:
        asked = [group.resolve(known) for group in groups(question, pictures)]
        given = {key(experiment.resolve(known)) for experiment in experiments}
    except ValueError:
        return False
    main = {key(group) for group in asked}
    return given <= main | {key(_bare(group)) for group in asked} and bool(given & main)
