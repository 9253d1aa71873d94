"""The experiments of a comparison: every variant for every attacker with every seed, and the reasons why some cannot run."""

from collections.abc import Sequence

from leakage.results import worst_case
from leakage.results.comparison import MAX_RUNS, scenario
from leakage.results.differences import attacker
from leakage.results.variant import Variant, resolved
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment

WORST = "worst"  # the choice of every strong attacker, beside those of KNOWLEDGE
SEEDS = (1, 3, 5)  # of a sweep
NAMED = 3  # how many of the variants that are left out are named
MAX_ATTACKS = 4  # the most attacks on a variant
KNOWLEDGE = {"both": (False, True), "adaptive": (True,), "naive": (False,)}  # choice -> whether each attacker is adaptive


def plan(
    base: Experiment, variants: Sequence[Variant], attackers: str, known: Catalog, *, seeds: int = 1
) -> tuple[list[Experiment], list[str]]:
    """Return the experiments of a comparison, each once, and sentences on everything that is left out.

    Args:
        base: the experiment that all variants change.
        variants: the variants.
        attackers: the choice of attackers: a key of KNOWLEDGE, or WORST for the strongest attackers of each variant.
        known: the plug-ins.
        seeds: how many random seeds, of SEEDS; fewer are used where all would be more than MAX_RUNS runs.
    """
    able, problems = [], list[str]()
    for variant in variants:
        experiment = resolved(base, variant, known)
        if isinstance(experiment, str):
            problems.append(experiment)
        else:
            able.append((variant.title, experiment))
    most = min(MAX_ATTACKS, max(1, MAX_RUNS // max(1, seeds * len(able))))
    planned, left = dict[str, Experiment](), list[str]()
    for title, changed in able:
        if attackers == WORST:
            attacked = worst_case.strongest_attacks(changed, known)[:most]
        else:
            attacked = chosen_attackers(changed, attackers, known)
        more = planned | {experiment.digest(): experiment for experiment in attacked}
        if len(more) > MAX_RUNS:
            left.append(title)
        else:
            planned = more
    if left:
        problems.append(
            f"At most {MAX_RUNS} runs go at once. Left out: {'; '.join(left[:NAMED])}{' and more' if len(left) > NAMED else ''} "
            f"({len(left)} of {len(variants)} variants). Choose fewer protections or attacks, or one of the attackers."
        )
    possible = max(number for number in SEEDS if number == 1 or (number <= seeds and number * len(planned) <= MAX_RUNS))
    if possible < seeds:
        problems.append(
            f"With {seeds} seeds these would be {seeds * len(planned)} runs, and at most {MAX_RUNS} go at once: {possible} of the seeds "
            "will be tried. Leave out strengths, or one of the attackers, for more."
        )
    experiments = list(planned.values())
    return [each.model_copy(update={"seed": (each.seed + later) % 2**31}) for later in range(possible) for each in experiments], problems


def queue_order(experiments: Sequence[Experiment]) -> list[int]:
    """Return the indices of the experiments in the order of the queue: adaptive before naive, the strongest attack of a variant first."""
    met = list[Experiment]()
    ways = []
    for experiment in experiments:
        met.append(scenario(experiment))
        ways.append(met.count(met[-1]))
    return sorted(range(len(experiments)), key=lambda index: (not experiments[index].assume.adaptive, ways[index]))


def chosen_attackers(experiment: Experiment, attackers: str, known: Catalog) -> list[Experiment]:
    """Return an experiment once for every chosen attacker (adaptive, naive or both), or just once if both attackers do the same."""
    knowledge = (True,) if attacker(experiment, known) == "both" else KNOWLEDGE[attackers]
    naive = experiment.assume.model_copy(update={"adaptive": False, "strategy": ""})
    return [experiment.model_copy(update={"assume": experiment.assume if adaptive else naive}) for adaptive in knowledge]
