"""Which runs of a comparison play at the top of the page: the runs of one attacker, of one attack, or the best run of each variant."""

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
    """Draw the choice of what to watch, and return the runs to play with their experiments.

    Of a strength sweep with several seeds only the runs of the first seed play.
    """
    if find_sweep(experiments) and (seeds := len({experiment.seed for experiment in experiments})) > 1:
        st.caption(f"The animation shows the first of {seeds} random starts (seeds). The table and the curve have all random starts.")
    pairs = [
        (run, experiment)
        for run, experiment in zip(runs, experiments, strict=True)
        if experiment.seed == experiments[0].seed or not find_sweep(experiments)
    ]
    playing = _by_attack(pairs, known) if are_strongest_attacks(experiments, known) else _by_attacker(pairs, known)
    return playing[:MOST]


def _by_attack(pairs: Playing, known: Catalog) -> Playing:
    """Return for each variant its run that leaks most so far, or its first run by the attack that the visitor chooses."""
    attacks = list(dict.fromkeys(experiment.attack.id for _, experiment in pairs))
    names = {BEST: "The best attack on each variant", **{id: entry.short for id in attacks if (entry := known.attacks.find(id))}}
    if st.session_state.get("watch-try") not in names:  # it was of another comparison
        st.session_state["watch-try"] = BEST
    chosen = st.segmented_control("Watch", list(names), required=True, format_func=lambda id: escape(names[id]), key="watch-try")
    if chosen == BEST:
        best = {row.run for row in worst_runs(rows(service(), [run for run, _ in pairs], known)).values()}
        return [(run, experiment) for run, experiment in pairs if run.id in best]
    first: dict[str, tuple[Run, Experiment]] = {}
    for run, experiment in pairs:
        if experiment.attack.id == chosen:
            first.setdefault(scenario(experiment).digest(), (run, experiment))
    return list(first.values())


def _by_attacker(pairs: Playing, known: Catalog) -> Playing:
    """Return the runs of the chosen attacker; if the variants cross protections with attacks, of the chosen attack only."""
    attack = _against(pairs, known)
    offered = [name for name in WATCH if name in {attacker(experiment, known) for _, experiment in pairs if experiment.attack.id in attack}]
    chosen: str | None = offered[0] if offered else "both"
    if len(offered) > 1:
        chosen = st.segmented_control("Watch", offered, default=offered[0], required=True, format_func=WATCH.__getitem__, key="watch")
    return [
        (run, experiment) for run, experiment in pairs if attacker(experiment, known) in (chosen, "both") and experiment.attack.id in attack
    ]


def _against(pairs: Playing, known: Catalog) -> list[str]:
    """Return the ids of the attacks to watch: all, or the chosen attack if protections differ as well."""
    attacks = list(dict.fromkeys(experiment.attack.id for _, experiment in pairs))
    if not crossed([experiment for _, experiment in pairs], known):
        return attacks
    if st.session_state.get("watch-attack") not in attacks:  # it was of another comparison
        st.session_state["watch-attack"] = attacks[0]
    names = {entry.id: entry.short for entry in known.attacks}
    titles = {id: names.get(id, id) for id in attacks}  # an attack may be gone since
    chosen = st.segmented_control("Against", attacks, required=True, format_func=lambda id: escape(titles[id]), key="watch-attack")
    return [id for id in attacks if id == chosen]
