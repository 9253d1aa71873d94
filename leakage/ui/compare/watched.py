"""Which runs of a comparison play on the stage: those of one attacker, of one attack, or the best of every variant."""

from collections.abc import Sequence

import streamlit as st

from leakage.results.comparison import crossed, rows, scenario
from leakage.results.differences import attacker
from leakage.results.strength_sweep import find_sweep
from leakage.results.variant import MOST
from leakage.results.worst_case import are_strongest_attacks, worst_runs
from leakage.runs.service import service
from leakage.runs.store import Run
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment
from leakage.spec.words import ATTACKERS
from leakage.ui.common.markdown import escape

WATCH = {name: f"{words} attacker" for name, words in ATTACKERS.items()}
BEST = "best"
Playing = list[tuple[Run, Experiment]]


def choose(runs: Sequence[Run], experiments: Sequence[Experiment], known: Catalog) -> Playing:
    """The runs that play, with their experiments: of several seeds those of the first."""
    if find_sweep(experiments) and (seeds := len({one.seed for one in experiments})) > 1:
        st.caption(f"Here plays the first of {seeds} seeds; the table and the curve have all of them.")
    both = [
        (run, one) for run, one in zip(runs, experiments, strict=True) if one.seed == experiments[0].seed or not find_sweep(experiments)
    ]
    playing = _tries(both, known) if are_strongest_attacks(experiments, known) else _heard(both, known)
    return playing[:MOST]


def _tries(both: Playing, known: Catalog) -> Playing:
    """Of every arm the run that shows most so far, or the first one by one attack."""
    attacks = list(dict.fromkeys(one.attack.id for _, one in both))
    names = {BEST: "The best of each", **{id: entry.short for id in attacks if (entry := known.attacks.find(id))}}
    if st.session_state.get("watch-try") not in names:  # it was of another comparison
        st.session_state["watch-try"] = BEST
    chosen = st.segmented_control("Watch", list(names), required=True, format_func=lambda id: escape(names[id]), key="watch-try")
    if chosen == BEST:
        best = {row.run for row in worst_runs(rows(service(), [run for run, _ in both], known)).values()}
        return [(run, one) for run, one in both if run.id in best]
    first: dict[str, tuple[Run, Experiment]] = {}
    for run, one in both:
        if one.attack.id == chosen:
            first.setdefault(scenario(one).digest(), (run, one))
    return list(first.values())


def _heard(both: Playing, known: Catalog) -> Playing:
    """Those of one attacker, and where protections are crossed with attacks, of one attack."""
    attack = _against(both, known)
    heard = [name for name in WATCH if name in {attacker(one, known) for _, one in both if one.attack.id in attack}]
    chosen: str | None = heard[0] if heard else "both"
    if len(heard) > 1:
        chosen = st.segmented_control("Watch", heard, default=heard[0], required=True, format_func=WATCH.__getitem__, key="watch")
    return [(run, one) for run, one in both if attacker(one, known) in (chosen, "both") and one.attack.id in attack]


def _against(both: Playing, known: Catalog) -> list[str]:
    """The attacks that are watched, by id: all, or where protections differ too, one of them."""
    attacks = list(dict.fromkeys(one.attack.id for _, one in both))
    if not crossed([one for _, one in both], known):
        return attacks
    if st.session_state.get("watch-attack") not in attacks:  # it was of another comparison
        st.session_state["watch-attack"] = attacks[0]
    names = {entry.id: entry.short for entry in known.attacks}
    words = {id: names.get(id, id) for id in attacks}  # an attack may be gone since
    chosen = st.segmented_control("Against", attacks, required=True, format_func=lambda id: escape(words[id]), key="watch-attack")
    return [id for id in attacks if id == chosen]
