"""The worst case: the strongest known attackers of a scenario, in the order in which they are tried, and what the best came to."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

from leakage.results.comparison import Row, scenario
from leakage.results.nearest import IMITATE, NAIVE, Nearest, nearest
from leakage.results.precomputed import UNMEASURED, Reach, reach
from leakage.spec.catalog import AttackEntry, Catalog
from leakage.spec.cautions import warnings
from leakage.spec.experiment import Experiment, Part
from leakage.spec.threat_model import coincide
from leakage.spec.words import VERDICTS


class TryOrder(NamedTuple):
    """How early an attacker is tried, as a key to sort by: the largest comes first.

    unmeasured_closed_form  whether the attack is a closed form that no precomputed result is about: it takes seconds, so it goes first
    reached                 how far the attacker came in the nearest precomputed rows
    """

    unmeasured_closed_form: bool
    reached: Reach


def tries(asked: Experiment, known: Catalog, *, measured: bool = False) -> list[Experiment]:
    """The same scenario against every attack that fits it, by everybody who knows its protections or does not: the strongest first.

    In order of what the precomputed results say of the nearest rows (`nearest`, `precomputed.reach`). What was not measured comes last:
    closed forms before searches, who knows the protection before who does not.

    Args:
        asked: the scenario.
        known: the plug-ins.
        measured: whether every attack of the nearest rows is tried, with the fields by which it was measured, beside those that name
            themselves among the strongest (`Attack.strongest`).
    """
    rows = nearest(asked, known)
    attacks = {entry.id: Part(id=entry.id, fields=entry.strongest) for entry in known.attacks if entry.strongest is not None}
    if measured:
        attacks |= {one.attack.id: one.attack for one in rows.attackers.values() if known.attacks.find(one.attack.id)}
    entries = [entry for entry in known.attacks if entry.id in attacks and fits(entry, asked)]

    def strength(pair: tuple[AttackEntry, str]) -> TryOrder:
        entry, who = pair
        closed_form = not any(field.name == "steps" for field in entry.fields)
        unmeasured = entry.id not in {attack for attack, _ in rows.attackers}
        return TryOrder(unmeasured_closed_form=closed_form and unmeasured, reached=_reached(rows, entry.id, who))

    pairs = sorted(product(entries, attackers(asked, known)), key=strength, reverse=True)
    made = [_attacked(asked, attacks[entry.id], who).resolve(known) for entry, who in pairs]
    return [one for one in made if not warnings(one, known)]  # what does nothing here would be another one twice


def are_tries(experiments: Sequence[Experiment], known: Catalog) -> bool:
    """Whether these are scenarios of which at least one was attacked by several of `tries`, and none in another way."""
    groups: dict[tuple[str, int], list[Experiment]] = {}
    for one in experiments:
        groups.setdefault((scenario(one).digest(), one.seed), []).append(one)
    try:
        expected = [{one.digest() for one in [*tries(own[0], known), *tries(own[0], known, measured=True)]} for own in groups.values()]
    except ValueError:  # a plug-in is gone since
        return False
    own = [{one.digest() for one in group} for group in groups.values()]
    return max(map(len, own)) > 1 and all(mine <= known_ones for mine, known_ones in zip(own, expected, strict=True))


def attackers(asked: Experiment, known: Catalog) -> list[str]:
    """Who can attack it: those who know its protections, by what they do about them, and last the naive one, where that is another."""
    own = [known.defenses.get(part.id) for part in asked.defenses]
    knowing = [IMITATE, *dict.fromkeys(name for entry in own for name in list(entry.strategies)[1:])]
    bare = asked.model_copy(update={"defenses": ()})
    return knowing if coincide(bare, known) and all(entry.default_strategy.idle for entry in own) else [*knowing, NAIVE]


def averaging(known: Catalog) -> set[str]:
    """The strategies, by name, that put together what arrived in several rounds."""
    return {name for entry in known.defenses for name in entry.named(averaging=True)}


def fits(entry: AttackEntry, asked: Experiment) -> bool:
    """Whether an attack is for experiments like this one."""
    facts = {"pictures": len(asked.pictures), "precision": asked.precision, "model": asked.model.id}
    return all(facts[about] in allowed for about, allowed in entry.fits.items())


def _attacked(asked: Experiment, attack: Part, who: str) -> Experiment:
    strategy = "" if who in (NAIVE, IMITATE) else who
    assume = asked.assume.model_copy(update={"adaptive": who != NAIVE, "strategy": strategy})
    return asked.model_copy(update={"attack": attack, "assume": assume})


def _reached(rows: Nearest, attack: str, who: str) -> Reach:
    """How far an attacker came: the first of a protection's strategies is `imitate` here."""
    cell = rows.reached(attack, who)
    return reach(cell) if cell else UNMEASURED


# ---------------------------------------------------------------- what they came to


def worst(rows: Sequence[Row]) -> dict[str, Row]:
    """Of each arm the run that shows most: by its verdict, then by PSNR."""
    found: dict[str, Row] = {}
    for row in rows:
        if row.arm not in found or reach_of(row) > reach_of(found[row.arm]):
            found[row.arm] = row
    return found


class RunReach(NamedTuple):
    """How much a run shows, as a key to sort by: the largest shows most.

    verdict  one more for each verdict that is weaker than that of the run; 0 where the run has none
    psnr     in dB, minus infinity where it is unknown: among runs of the same verdict
    """

    verdict: int
    psnr: float


def reach_of(row: Row) -> RunReach:
    """Return how much a run shows."""
    weaker = len(VERDICTS) - VERDICTS.index(row.verdict) if row.verdict in VERDICTS else 0
    return RunReach(verdict=weaker, psnr=row.psnr if row.psnr is not None else float("-inf"))


def attacker_words(row: Row) -> str:
    """What the attacker of a run knows and does, after "somebody who"; nothing where all do the same."""
    if row.attacker == "naive":
        return "does not know the protection"
    if row.attacker == "adaptive":
        return f"knows the protection{f' ({row.answer})' if row.answer else ''}"
    return ""


def several(rows: Iterable[Row]) -> bool:
    """Whether an arm was attacked in more ways than by one attack, naively and not: then the best of them speaks for it."""
    ways: dict[str, set[tuple[str, str, str]]] = {}
    for row in rows:
        ways.setdefault(row.arm, set()).add((row.attack, row.attacker, row.answer))
    return any(len(own) > 2 or len({attack for attack, _, _ in own}) > 1 for own in ways.values())
