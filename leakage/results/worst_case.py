"""The worst case: the strongest known attackers of a scenario, in the order in which they are run, and the result of the best."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import product
from typing import NamedTuple

from leakage.results.best_of_each import best_of_each
from leakage.results.comparison import Row, scenario
from leakage.results.nearest import IMITATE, NAIVE, Nearest, nearest
from leakage.results.precomputed import UNMEASURED, Reach, reach
from leakage.spec.catalog import AttackEntry, Catalog
from leakage.spec.cautions import warnings
from leakage.spec.experiment import Experiment, Part, SpecError
from leakage.spec.threat_model import coincide
from leakage.spec.words import VERDICTS


class Priority(NamedTuple):
    """The priority of an attacker in the queue of runs, as a key to sort by: the attacker with the largest key runs first."""

    reads_server: bool
    """Whether the attack reads what a cheating server has built into the model."""
    unmeasured_closed_form: bool
    """Whether the attack is a closed form without precomputed results: it takes seconds, so it runs first."""
    made_for_batches: bool
    """Whether the attack is such a closed form, and only for several pictures: it separates what other closed forms mix."""
    reached: Reach
    """How far the attacker came in the nearest precomputed rows."""


def strongest_attacks(asked: Experiment, known: Catalog, *, measured: bool = False) -> list[Experiment]:
    """Return the scenario with every attack that fits it, for every attacker (naive and adaptive), the strongest first.

    The order is that of the nearest precomputed rows (`nearest`, `precomputed.reach`). Attacks without precomputed results stand at the
    ends: closed forms first, since they take seconds, and of these first the ones made for batches; optimization attacks last. Of equally
    strong attackers with the same attack, the naive attacker comes last. Where a cheating server has built something into the model, the
    attacks that read it come first, whether or not they are among the strongest attacks on an honest server.

    Args:
        asked: the scenario.
        known: the plug-ins.
        measured: whether every attack of the nearest rows is included, with the fields with which it was measured, and not only the attacks
            that declare themselves among the strongest (`Attack.strongest`).
    """
    rows = nearest(asked, known)
    attacks = {entry.id: Part(id=entry.id, fields=entry.strongest) for entry in known.attacks if entry.strongest is not None}
    if measured:
        attacks |= {reached.attack.id: reached.attack for reached in rows.attackers.values() if known.attacks.find(reached.attack.id)}
    reading = _reading(asked, known)
    attacks |= {name: Part(id=name, fields=known.attacks.get(name).strongest or {}) for name in reading}
    entries = [entry for entry in known.attacks if entry.id in attacks and fits(entry, asked, known)]

    def strength(pair: tuple[AttackEntry, str]) -> Priority:
        entry, strategy = pair
        closed_form = not any(field.name == "steps" for field in entry.fields)
        first = closed_form and entry.id not in {attack for attack, _ in rows.attackers}
        for_batches = 1 not in entry.fits.get("pictures", (1,))
        reached = _reached(rows, entry.id, strategy)
        return Priority(
            reads_server=entry.id in reading, unmeasured_closed_form=first, made_for_batches=first and for_batches, reached=reached
        )

    pairs = sorted(product(entries, attackers(asked, known)), key=strength, reverse=True)
    experiments = [_attacked(asked, attacks[entry.id], strategy).resolve(known) for entry, strategy in pairs]
    return [each for each in experiments if not warnings(each, known)]  # a setting without effect would repeat another experiment


def attacks_by_servers(asked: Experiment, known: Catalog) -> list[Experiment]:
    """Return the scenario with every server that changes the model and can be used here, attacked by what reads that server.

    A server can be used if it needs no more rounds than the scenario has, if it fits the model and the pictures, and if it has to expect
    no class among the pictures. A server that no attack reads stands last, attacked by the strongest attack.

    Args:
        asked: the scenario, with an honest server.
        known: the plug-ins.
    """
    usable = list[Experiment]()
    for server in sorted((entry for entry in known.servers if not entry.classes), key=lambda entry: not entry.reading):
        with suppress(SpecError):
            cheated = asked.model_copy(update={"server": Part(id=server.id)}).resolve(known)
            attack = Part(id=server.reading[0]) if server.reading else strongest_attacks(cheated, known, measured=True)[0].attack
            usable += [_attacked(cheated, attack, name).resolve(known) for name in attackers(asked, known)]
    return [each for each in usable if not warnings(each, known)]


def are_strongest_attacks(experiments: Sequence[Experiment], known: Catalog) -> bool:
    """Return whether these experiments are `strongest_attacks` of one or more scenarios, and nothing else.

    At least one scenario must be attacked in several ways: by several attacks, or with several strategies against its protections. A
    single attack by a naive and by an adaptive attacker is not enough, as any comparison may have both attackers.
    """
    groups: dict[tuple[str, int], list[Experiment]] = {}
    for experiment in experiments:
        groups.setdefault((scenario(experiment).digest(), experiment.seed), []).append(experiment)
    try:
        strongest = [[*strongest_attacks(group[0], known), *strongest_attacks(group[0], known, measured=True)] for group in groups.values()]
    except ValueError:  # a plug-in no longer exists
        return False
    expected = [{experiment.digest() for experiment in group} for group in strongest]
    given = [{experiment.digest() for experiment in group} for group in groups.values()]
    several = any(len({(each.attack.id, each.assume.strategy) for each in group}) > 1 for group in groups.values())
    return several and all(digests <= others for digests, others in zip(given, expected, strict=True))


def attackers(asked: Experiment, known: Catalog) -> list[str]:
    """Return the attackers of a scenario by name: IMITATE (the default adaptive strategy), the other adaptive strategies, and NAIVE.

    NAIVE is left out where the naive attacker would do the same as IMITATE with an honest server. If the server changes the model, the
    attack that reads these changes is the strongest, and both attackers read them in the same way.
    """
    entries = [known.defenses.get(part.id) for part in asked.defenses]
    knowing = [IMITATE, *dict.fromkeys(name for entry in entries for name in list(entry.strategies)[1:])]
    honest = asked.model_copy(update={"defenses": (), "server": None})
    return knowing if coincide(honest, known) and all(entry.default_strategy.idle for entry in entries) else [*knowing, NAIVE]


def averaging(known: Catalog) -> set[str]:
    """Return the names of the strategies that average several rounds."""
    return {name for entry in known.defenses for name in entry.strategies_with(averaging=True)}


def fits(entry: AttackEntry, asked: Experiment, known: Catalog) -> bool:
    """Return whether an attack accepts an experiment's number of pictures, precision, model and server.

    An attack that reads what the server has built in accepts any model: it reads what the server has made of it.
    """
    server = known.servers.get(asked.server.id).changes if asked.server else "honest"
    facts = {"pictures": len(asked.pictures), "precision": asked.precision, "model": asked.model.id, "server": server}
    built_in = entry.id in _reading(asked, known)
    return all(facts[about] in allowed or (built_in and about == "model") for about, allowed in entry.fits.items())


def _reading(asked: Experiment, known: Catalog) -> tuple[str, ...]:
    """Return the ids of the attacks that read what the server of an experiment has built into the model."""
    return known.servers.get(asked.server.id).reading if asked.server else ()


def _attacked(asked: Experiment, attack: Part, name: str) -> Experiment:
    strategy = "" if name in (NAIVE, IMITATE) else name
    assume = asked.assume.model_copy(update={"adaptive": name != NAIVE, "strategy": strategy})
    return asked.model_copy(update={"attack": attack, "assume": assume})


def _reached(rows: Nearest, attack: str, name: str) -> Reach:
    """Return how much an attacker showed in these precomputed rows, as a key to sort by; UNMEASURED if it was not measured.

    Args:
        rows: the precomputed rows.
        attack: the id of the attack.
        name: the attacker: NAIVE, IMITATE or the name of an adaptive strategy.
    """
    cell = rows.reached(attack, name)
    return reach(cell) if cell else UNMEASURED


# ---------------------------------------------------------------- what they came to


def worst_runs(rows: Sequence[Row]) -> dict[str, Row]:
    """Return for every scenario, by its title, the run that shows most: by the verdict, and among equal verdicts by the PSNR."""
    return best_of_each(((row.arm, row) for row in rows), reach_of)


class RunReach(NamedTuple):
    """How much a run shows, as a key to sort by: the largest shows most."""

    verdict: int
    """One more than the number of verdicts that are weaker than that of the run; 0 if the run has none."""
    psnr: float
    """In dB, or minus infinity if it is unknown: it decides among runs of the same verdict."""


def reach_of(row: Row) -> RunReach:
    """Return how much a run shows, as a key to sort by."""
    weaker = len(VERDICTS) - VERDICTS.index(row.verdict) if row.verdict in VERDICTS else 0
    return RunReach(verdict=weaker, psnr=row.psnr if row.psnr is not None else float("-inf"))


def attacker_words(row: Row) -> str:
    """Describe an attacker in words that follow "an attacker that"; empty if the naive and the adaptive attacker do the same."""
    if row.attacker == "naive":
        return "does not know the protection"
    if row.attacker == "adaptive":
        return f"knows the protection{f' ({row.answer})' if row.answer else ''}"
    return ""


def attacked_in_several_ways(rows: Iterable[Row]) -> bool:
    """Return whether a scenario was attacked by several attacks, or in more than two ways, so that its best run is shown for it."""
    ways: dict[str, set[tuple[str, str, str]]] = {}
    for row in rows:
        ways.setdefault(row.arm, set()).add((row.attack, row.attacker, row.answer))
    return any(len(used) > 2 or len({attack for attack, _, _ in used}) > 1 for used in ways.values())
