"""The widgets for what differs between the variants of a comparison: protections, attacks, a strength, training; from the catalog."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import streamlit as st

from leakage.data.checkpoints import CheckpointError
from leakage.results.comparison_plan import SEEDS, WORST
from leakage.results.defense_keys import known_keys, parse_key, parse_value, ready_made, short_names, strength_values
from leakage.results.differences import sentence_case
from leakage.results.variant import MOST, Variant, resolved
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Assumptions, Experiment, Part
from leakage.spec.plugin_menu import menu_entries
from leakage.spec.prepared import prepared
from leakage.spec.words import ATTACKERS, DIFFERENCE
from leakage.ui.common import address, forms
from leakage.ui.common.markdown import escape, ours
from leakage.ui.compare import client_axes
from leakage.ui.compare.deployed import render_deployed
from leakage.ui.lab import attacker

DIFFERS = {
    "protection": "Protection",
    "attack": "Attack",
    "strength": "Strength",
    "answer": "Countermeasure",
    "batch": "Batch size",
    "training": "How long trained",
    "steps": "Local steps",
    "rate": "Local rate",
    "rounds": "Rounds",
    "matrix": "Protection × attack",
}
NEWCOMER = "newcomer"  # session key: whether this visitor has not chosen an attack yet
ATTACKER_CHOICES = {WORST: "Worst case", "both": "Both", **ATTACKERS}
TRIED = ("protection", "strength", "batch", "training", *client_axes.KEYS)  # what can differ if the strongest attackers try every variant
STACKED = 4  # most protections of one phone
BATCHES = (1, 2, 4, 8)
SHARED = ("protected", "answered")  # widget keys of the protections of all variants; the second if countermeasures differ
LISTS: dict[str, tuple[str, ...]] = {  # what differs -> widget keys of its menus
    "protection": ("arms",),
    "attack": ("attacks",),
    "answer": ("answers",),
    "batch": ("sizes",),
    "training": ("states",),
    **{about: (key,) for about, key in client_axes.KEYS.items()},
    "matrix": ("arms", "attacks"),
}


def choose(base: Experiment, known: Catalog) -> list[Variant]:
    """Draw the choice of what differs and of its values, and return the variants of the experiment `base`."""
    differs = st.segmented_control(
        "What differs",
        list(DIFFERS),
        default="protection",
        required=True,
        format_func=DIFFERS.__getitem__,
        key="differs",
        label_visibility="collapsed",
    )
    offer: dict[str, Callable[[Experiment, Catalog], list[Variant]]] = {
        "protection": _protections,
        "attack": _attacks,
        "strength": _strengths,
        "answer": _answers,
        "batch": _batches,
        "training": _trainings,
        "matrix": _matrix,
        **{about: partial(client_axes.choose, about) for about in client_axes.KEYS},
    }
    return offer[differs](base, known)


def shared_protection(known: Catalog) -> tuple[Part, ...]:
    """Draw the choice of the protections that all variants share, and return them; return none if protections differ."""
    differs = st.session_state.get("differs", "protection")
    if "arms" in LISTS.get(differs, ()):
        return ()
    key = SHARED[differs == "answer"]
    menu = _menu(key, ready_made(known)[1:], known)
    if differs == "answer":
        first = next(iter(known_keys([prepared().compare.answered], known)), None)
        index = list(menu).index(first) if first else 0
        stack = st.selectbox("Protection", menu, index=index, format_func=menu.__getitem__, key=key, on_change=_forget_answers)
        return parse_key(stack, known)
    label, most = "Protections that every variant uses, in this order", STACKED - 1
    picked = st.multiselect(label, menu, format_func=menu.__getitem__, key=key, max_selections=most)
    return tuple(part for stack in picked for part in parse_key(stack, known))


def choose_attackers() -> str:
    """Draw the choice of attackers, and return its key in ATTACKER_CHOICES; return "both" without a choice if countermeasures differ."""
    differs = st.session_state.get("differs", "protection")
    if differs == "answer":
        return "both"
    offered = {name: title for name, title in ATTACKER_CHOICES.items() if name != WORST or differs in TRIED}
    if st.session_state.get("voices") not in offered:
        st.session_state["voices"] = next(iter(offered))
    return st.segmented_control(  # type: ignore[return-value]  # required
        "Attackers",
        list(offered),
        required=True,
        format_func=offered.__getitem__,
        key="voices",
        width="stretch",
        help=f"Worst case: the strongest known attackers try every variant, and what counts is the result that shows most of the pictures. "
        f"{DIFFERENCE} Both means: two runs for each variant by the attack chosen below (naive and adaptive), "
        "or one run if the phone does nothing that an attacker could imitate.",
    )


def set_apart() -> list[str]:
    """Return the names of the client's fields that differ between the variants: they have another widget, so the form leaves them out."""
    differs = st.session_state.get("differs", "")
    return [client_axes.FIELDS[differs]] if differs in client_axes.FIELDS else []


def prepare() -> None:
    """Set the widgets to the comparison in assets/prepared.json, except its attack, which `choose_attack` sets when it draws that menu."""
    forms.load(prepared().compare.experiment.model_copy(update={"attack": forms.DEFAULT.attack}))
    st.session_state[NEWCOMER] = True
    st.session_state.pop(address.OPENING, None)


def choose_attack(known: Catalog, model: Part) -> tuple[Part, Assumptions]:
    """Draw the choice of the attack, unless the strongest try every variant, and of what the attacker is granted; return both."""
    if not tries_the_strongest():
        if st.session_state.pop(NEWCOMER, False):
            attack = prepared().compare.experiment.attack
            st.session_state["attack"] = attack.id
            forms.put_fields(attack)
        return attacker.choose_attack(known, model)
    st.caption("Every variant is attacked by the strongest known attackers that fit it, one after the other.")
    return forms.DEFAULT.attack, attacker.choose_granted(model)


def tries_the_strongest() -> bool:
    """Return whether the strongest attackers try every variant, which is the default."""
    state = st.session_state
    return state.get("differs", "protection") in TRIED and state.get("voices", WORST) == WORST


def _menu(key: str, options: list[str], known: Catalog) -> dict[str, str]:
    """Return a menu of protections, key to short name: `options`, and what a link or the visitor has chosen in the widget `key`."""
    chosen = st.session_state.get(key, [])
    added_keys = known_keys([chosen] if isinstance(chosen, str) else chosen, known)
    return short_names([*options, *(key for key in added_keys if key not in options)], known)


def _protections(base: Experiment, known: Catalog) -> list[Variant]:
    menu = _menu("arms", ready_made(known), known)
    first = known_keys(prepared().compare.protections, known)
    picked = st.multiselect("Protections", menu, default=first, format_func=menu.__getitem__, key="arms", max_selections=MOST)
    with st.popover("Several protections in one variant", icon=":material/layers:", type="tertiary"):
        order = st.multiselect(
            "Protections of this variant, in this order", list(menu)[1:], format_func=menu.__getitem__, key="stack", max_selections=STACKED
        )
        st.button("Add this variant", on_click=_add, args=("+".join(order), picked), disabled=len(order) < 2 or len(picked) >= MOST)
    render_deployed(known)
    return [Variant(menu[key], {"defenses": parse_key(key, known)}) for key in picked]


def _add(key: str, picked: list[str]) -> None:
    st.session_state["arms"], st.session_state["stack"] = list(dict.fromkeys([*picked, key])), []


def _attacks(base: Experiment, known: Catalog) -> list[Variant]:
    names = {entry.id: entry.title for entry in known.attacks}
    first = list(dict.fromkeys([base.attack.id, *(id for id in prepared().compare.attacks if id in names)]))
    picked = st.multiselect("Attacks", names, default=first, format_func=names.__getitem__, key="attacks", max_selections=MOST)
    st.caption("The attack that is chosen below keeps its fine settings. All other attacks run with their usual settings.")
    return [Variant(names[id], {"attack": base.attack if id == base.attack.id else Part(id=id)}) for id in picked]


def _matrix(base: Experiment, known: Catalog) -> list[Variant]:
    protections, attacks = _protections(base, known), _attacks(base, known)
    pairs = [(protection, attack) for protection in protections for attack in attacks]
    return [Variant(f"{protection.title}, {attack.title}", protection.change | attack.change) for protection, attack in pairs]


def _answers(base: Experiment, known: Catalog) -> list[Variant]:
    names = {"": "Default", **{name: sentence_case(known.strategy_title(name)) for name in strategies(base.defenses, known)}}
    if not set(st.session_state.get("answers", ())) <= set(names):  # these countermeasures were against another protection
        del st.session_state["answers"]
    st.caption("What an attacker that knows the protection below can do about the protection.")
    if len(names) == 1:
        st.caption(
            "An adaptive attacker has a single countermeasure against this protection. The page compares this "
            "countermeasure with a naive attacker."
        )
    picked = st.multiselect(
        "Countermeasures (adaptive strategies)",
        names,
        default=list(names),
        format_func=names.__getitem__,
        key="answers",
        max_selections=MOST,
    )
    return [Variant(names[name], {"assume": base.assume.model_copy(update={"strategy": name})}) for name in picked]


def _forget_answers() -> None:
    """Forget the chosen countermeasures, so that all countermeasures to the new protection are offered."""
    st.session_state.pop("answers", None)


def strategies(defenses: Sequence[Part], known: Catalog) -> list[str]:
    """Return the names of the adaptive strategies against these protections, without the default strategy."""
    return list(dict.fromkeys(name for part in defenses for name in list(known.defenses.get(part.id).strategies)[1:]))


def _strengths(base: Experiment, known: Catalog) -> list[Variant]:
    sweeps = {
        f"{entry.id}.{field.name}": (entry, field)
        for entry in menu_entries(known, "defense")
        for field in entry.fields
        if field.type in ("int", "float")
    }
    swept = st.selectbox(
        "Strength of",
        list(sweeps),
        format_func=lambda name: f"{sweeps[name][0].short}: {sweeps[name][1].name.replace('_', ' ')}",
        index=list(sweeps).index(prepared().compare.swept) if prepared().compare.swept in sweeps else 0,
        key="swept",
    )
    entry, field = sweeps[swept]
    defaults = ", ".join(f"{value:g}" for value in strength_values(field, (0.01, 0.1, 1, 10), (5, 2, 1, 0.1)))
    text = st.text_input(f"Strengths to try, {field.low:g} to {field.high:g}", defaults, key=f"values.{swept}", help=ours(field.help))
    st.segmented_control(
        "Random starts (seeds)",
        SEEDS,
        default=3,
        required=True,
        key="seeds",
        help="With 3 or 5, every strength is tried with that many random starts (seeds), and the curve shows their mean. With 1 the "
        "chart has only points, and another random start may move a point by decibels. The band shows where the mean over all random "
        "starts probably lies (with 95 % confidence, if the values scatter in a bell curve).",
    )
    variants = []
    for number in re.findall(r"[^,;\s]+", text)[:MOST]:
        try:
            value = parse_value(field.type, number)
        except ValueError:
            st.warning(f"{escape(number)} is no number and is left out.")
            continue
        variants.append(Variant(f"{field.name} {number}", {"defenses": (*base.defenses, Part(id=entry.id, fields={field.name: value}))}))
    return variants


def _batches(base: Experiment, known: Catalog) -> list[Variant]:
    sizes = st.multiselect("Pictures in one update", BATCHES, default=BATCHES, key="sizes")
    return [
        Variant(f"{size} picture{'s' if size > 1 else ''}", {"pictures": base.pictures[:size]})
        for size in sorted(sizes)
        if size <= len(base.pictures)
    ]


def room_for_batches() -> None:
    """Raise the number of pictures to the largest batch, and restore it afterwards. Call it before the pictures are chosen."""
    state = st.session_state
    if state.get("differs") == "batch":
        state.setdefault("own-batch", state.get("batch", 1))
        state["batch"] = max(state.get("sizes") or BATCHES)
    elif "own-batch" in state:
        state["batch"] = state.pop("own-batch")


def _trainings(base: Experiment, known: Catalog) -> list[Variant]:
    names = forms.trainings(base.model)
    if len(names) == 1:
        st.info("No trained version of this model is on this machine. Choose another model, or train it on the page Training.")
    if "states" in st.session_state:  # they may belong to another model
        st.session_state["states"] = [name for name in st.session_state["states"] if name in names]
    variants = {name: Variant(title.split(":")[0], {"checkpoint": name}) for name, title in names.items()}
    first = [name for name, variant in variants.items() if not isinstance(resolved(base, variant, known), str)][:MOST]
    picked = st.multiselect(
        "How long trained",
        names,
        default=first,
        format_func=names.__getitem__,
        key="states",
        max_selections=MOST,
        on_change=_fit,
        args=(known,),
    )
    return [variants[name] for name in picked]


def _fit(known: Catalog) -> None:
    """Set the widgets of the model and the pictures to those with which the first chosen checkpoint (trained model) was trained."""
    for name in filter(None, st.session_state["states"][:2]):
        with suppress(CheckpointError):
            forms.fit(name, known)
            return
