"""Variants that differ in their server: cheating servers beside an honest one, with checks too; other variants with an honest server."""

from collections.abc import Sequence

import streamlit as st

from leakage.results.defense_keys import known_keys, parse_key
from leakage.results.server_variants import cheating, each_with_honest, honest, offered, server_key, server_words
from leakage.results.variant import MOST, Variant, resolved
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import MAX_CHECKS, Experiment, Part
from leakage.spec.lab_settings import CHECKS, NONE
from leakage.spec.plugin_menu import menu_entries
from leakage.spec.words import SERVERS
from leakage.ui.common import forms
from leakage.ui.lab.check_choice import choose_checks

SERVER = "server"  # what differs
KEY = "servers"  # widget key of the cheating servers, as texts of `server_key`
HONEST_TOO = "honest"  # widget key of the switch that adds a variant with an honest server to each variant
CHECKED = "checks"  # what differs if each server is looked at by the same checks of the phone
FILLED = "filled-checks"  # session key: whether this axis has put all checks into the menu, which were not the visitor's choice
ALONE = (SERVER, CHECKED, "strength")  # what differs without that switch: servers differ already, or a curve is drawn of all runs
NOTE = (
    "One more variant has a server that keeps to the protocol (honest but curious). It is attacked by the attack that you choose below. "
    "Each other variant is attacked by the attack that reads what its server has built into the model. For a server without such an "
    "attack, your choice is used too."
)


def set_base(known: Catalog) -> None:
    """Set the widgets to an honest server, and to an attack that fits it, if servers differ. Call it before they are drawn.

    Where servers are crossed with checks, the menu of checks begins with all checks, and the phone sends its update all the same.
    """
    state = st.session_state
    if state.get("differs") == CHECKED:
        _fill_checks(known)
    elif state.pop(FILLED, False):
        state[CHECKS] = []
    if state.get("differs") not in (SERVER, CHECKED):
        return
    state["server"] = NONE
    chosen = Part(id=state.get("attack", forms.DEFAULTS["attack"]))
    attack = honest(chosen, known)["attack"]
    if attack != chosen:
        state["attack"] = attack.id
        forms.put_fields(attack)


def choose(base: Experiment, known: Catalog) -> list[Variant]:
    """Draw the choice of servers that change the model; return a variant for each, after the variant with an honest server."""
    keys = list(dict.fromkeys([*offered(known), *known_keys(st.session_state.get(KEY, []), known, "server")]))
    servers = {key: parse_key(key, known, "server")[0] for key in keys if key != NONE}
    names = {key: server_words(server, known) for key, server in servers.items()}
    variants = {key: Variant(names[key], cheating(server, base.attack, known)) for key, server in servers.items()}
    fitting = [key for key, variant in variants.items() if not servers[key].fields and not isinstance(resolved(base, variant, known), str)]
    picked = st.multiselect(
        "Servers that change the model",
        names,
        default=fitting[: MOST - 1],
        format_func=names.__getitem__,
        key=KEY,
        max_selections=MOST - 1,
    )
    with st.popover("A server with other settings", icon=":material/tune:", type="tertiary"):
        _other_settings(picked, known)
    st.caption(NOTE)
    return [Variant("Honest server", honest(base.attack, known)), *(variants[key] for key in picked)]


def choose_checked(base: Experiment, known: Catalog) -> list[Variant]:
    """Draw the choice of servers and of checks; return a variant for each server, in which the phone uses all chosen checks."""
    servers = choose(base, known)
    checks, refuse = choose_checks(known)
    return [Variant(variant.title, {**variant.change, "checks": checks, "refuse": refuse}) for variant in servers]


def _fill_checks(known: Catalog) -> None:
    """Put all checks into an empty menu of checks and switch the refusal off, once after servers and checks were chosen to differ."""
    state = st.session_state
    if FILLED in state:
        return
    state[FILLED] = not state.get(CHECKS)
    if state[FILLED]:
        state[CHECKS] = [entry.id for entry in menu_entries(known, "check")][:MAX_CHECKS]
        state["refuse"] = False


def _other_settings(picked: list[str], known: Catalog) -> None:
    """Draw the fields of a server, and a button that adds the server with these fields to the picked ones."""
    entries = {entry.id: entry for entry in menu_entries(known, "server")}
    id = st.selectbox("Server", entries, format_func=lambda name: entries[name].title, key="own-server")
    if id is None:
        return
    part = Part(id=id, fields={field.name: forms.widget(entries[id], field) for field in entries[id].fields})
    key = server_key(part, known)
    st.button("Add this variant", on_click=_add, args=(key, picked), disabled=key in picked or len(picked) >= MOST - 1, key="add-server")


def _add(key: str, picked: list[str]) -> None:
    st.session_state[KEY] = [*picked, key]


def with_honest(variants: list[Variant], base: Experiment, known: Catalog, *, differs: str, attacks_differ: bool) -> list[Variant]:
    """Draw the switch that adds the same variant with an honest server to each variant, where the server cheats; return all variants.

    Args:
        variants: the variants.
        base: the experiment that they change.
        known: the plug-ins.
        differs: what differs between the variants.
        attacks_differ: whether they differ in their attack.
    """
    if base.server is None or differs in ALONE:
        return variants
    on = st.toggle(
        "Each variant also with an honest server",
        True,
        key=HONEST_TOO,
        persist_state=forms.KEPT,
        help=f"The same pictures, the same random start (seed), and a server of another kind: {SERVERS['honest']}. If the attack chosen "
        "below needs a server that changes the model, another attack tries the variants with an honest server.",
    )
    return each_with_honest(variants, base, known, attacks_differ=attacks_differ) if on else variants


def keys_of(experiments: Sequence[Experiment], known: Catalog) -> list[str]:
    """Return the cheating servers of experiments as texts of `server_key`, each once."""
    return list(dict.fromkeys(server_key(each.server, known) for each in experiments if each.server))
