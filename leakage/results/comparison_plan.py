"""The experiments of a comparison: every arm for every attacker with every seed, and what cannot run."""

from collections.abc import Sequence

from leakage.results import worst_case
from leakage.results.comparison import MAX_ARMS, scenario
from leakage.results.differences import attacker
from leakage.results.variant import Variant, resolved
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment

WORST = "worst"  # the choice of every strong attacker, beside those of HEARD
SEEDS = (1, 3, 5)  # of a sweep
NAMED = 3  # of the arms that are left out
TRIES = 4  # ways to attack an arm, at most
HEARD = {"both": (False, True), "adaptive": (True,), "naive": (False,)}  # choice -> whether it knows what the phone does


def plan(base: Experiment, arms: Sequence[Variant], who: str, known: Catalog, *, seeds: int = 1) -> tuple[list[Experiment], list[str]]:
    """Every arm for every attacker with every seed, each experiment once; and a sentence on all that cannot run."""
    able, problems = [], list[str]()
    for arm in arms:
        one = resolved(base, arm, known)
        if isinstance(one, str):
            problems.append(one)
        else:
            able.append((arm.title, one))
    most = min(TRIES, max(1, MAX_ARMS // max(1, seeds * len(able))))
    made, left = dict[str, Experiment](), list[str]()
    for title, one in able:
        own = worst_case.tries(one, known)[:most] if who == WORST else chosen_attackers(one, who, known)
        more = made | {experiment.digest(): experiment for experiment in own}
        if len(more) > MAX_ARMS:
            left.append(title)
        else:
            made = more
    if left:
        problems.append(
            f"At most {MAX_ARMS} runs go at once. Left out: {'; '.join(left[:NAMED])}{' and more' if len(left) > NAMED else ''} "
            f"({len(left)} of {len(arms)} variants). Choose fewer protections or attacks, or one of the attackers."
        )
    possible = max(number for number in SEEDS if number == 1 or (number <= seeds and number * len(made) <= MAX_ARMS))
    if possible < seeds:
        problems.append(
            f"With {seeds} seeds these would be {seeds * len(made)} runs, and at most {MAX_ARMS} go at once: {possible} of the seeds will "
            "be tried. Leave out strengths, or one of the attackers, for more."
        )
    return [one.model_copy(update={"seed": (one.seed + later) % 2**31}) for later in range(possible) for one in made.values()], problems


def in_queue(experiments: Sequence[Experiment]) -> list[int]:
    """Their places as they are queued: who knows the protection before who does not, and the strongest of every arm first."""
    met = list[Experiment]()
    ways = []
    for one in experiments:
        met.append(scenario(one))
        ways.append(met.count(met[-1]))
    return sorted(range(len(experiments)), key=lambda place: (not experiments[place].assume.adaptive, ways[place]))


def chosen_attackers(one: Experiment, who: str, known: Catalog) -> list[Experiment]:
    """The arm against the attack that was chosen, by who knows what the phone does, who does not, or both; once where they coincide."""
    heard = (True,) if attacker(one, known) == "both" else HEARD[who]
    naive = one.assume.model_copy(update={"adaptive": False, "strategy": ""})
    return [one.model_copy(update={"assume": one.assume if adaptive else naive}) for adaptive in heard]
