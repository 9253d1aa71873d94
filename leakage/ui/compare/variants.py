"""The widgets for what differs between the variants of a comparison: the choice itself, attacks, pictures, training; from the catalog."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import streamlit as st

from leakage.data.checkpoints import CheckpointError
from leakage.results.comparison_plan import WORST
from leakage.results.defense_keys import known_keys, parse_key, ready_made
from leakage.results.variant import MOST, Variant, resolved
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Assumptions, Experiment, Part
from leakage.spec.prepared import prepared
from leakage.spec.words import ATTACKERS, DIFFERENCE
from leakage.ui.common import address, forms
from leakage.ui.compare import client_axes, protection_axes, server_axis
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
    "server": "Server",
    "checks": "Server × check",
    "matrix": "Protection × attack",
}
NEWCOMER = "newcomer"  # session key: whether this visitor has not chosen an attack yet
ATTACKER_CHOICES = {WORST: "Worst case", "both": "Both", **ATTACKERS}
TRIED = ("protection", "strength", "batch", "training", *client_axes.KEYS)  # what can differ if the strongest attackers try every variant
BATCHES = (1, 2, 4, 8)
SHARED = ("protected", "answered")  # widget keys of the protections of all variants; the second if countermeasures differ
LISTS: dict[str, tuple[str, ...]] = {  # what differs -> widget keys of its menus
    "protection": ("arms",),
    "attack": ("attacks",),
    "answer": ("answers",),
    "batch": ("sizes",),
    "training": ("states",),
    **{about: (key,) for about, key in client_axes.KEYS.items()},
    server_axis.SERVER: (server_axis.KEY,),
    server_axis.CHECKED: (server_axis.KEY,),
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
        "protection": protection_axes.protections,
        "attack": _attacks,
        "strength": protection_axes.strengths,
        "answer": protection_axes.answers,
        "batch": _batches,
        "training": _trainings,
        server_axis.SERVER: server_axis.choose,
        server_axis.CHECKED: server_axis.choose_checked,
        "matrix": _matrix,
        **{about: partial(client_axes.choose, about) for about in client_axes.KEYS},
    }
    variants = offer[differs](base, known)
    return server_axis.with_honest(variants, base, known, differs=differs, attacks_differ="attacks" in LISTS.get(differs, ()))


def shared_protection(known: Catalog) -> tuple[Part, ...]:
    """Draw the choice of the protections that all variants share, and return them; return none if protections differ."""
    differs = st.session_state.get("differs", "protection")
    if "arms" in LISTS.get(differs, ()):
        return ()
    key = SHARED[differs == "answer"]
    menu = protection_axes.menu_of(key, ready_made(known)[1:], known)
    if differs == "answer":
        first = next(iter(known_keys([prepared().compare.answered], known)), None)
        index = list(menu).index(first) if first else 0
        stack = st.selectbox(
            "Protection", menu, index=index, format_func=menu.__getitem__, key=key, on_change=protection_axes.forget_answers
        )
        return parse_key(stack, known)
    label, most = "Protections that every variant uses, in this order", protection_axes.STACKED - 1
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
    fields = {about: [field] for about, field in client_axes.FIELDS.items()}
    fields |= {server_axis.SERVER: ["server"], server_axis.CHECKED: ["server", "checks"]}
    return fields.get(differs, [])


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


def _attacks(base: Experiment, known: Catalog) -> list[Variant]:
    names = {entry.id: entry.title for entry in known.attacks}
    first = list(dict.fromkeys([base.attack.id, *(id for id in prepared().compare.attacks if id in names)]))
    picked = st.multiselect("Attacks", names, default=first, format_func=names.__getitem__, key="attacks", max_selections=MOST)
    st.caption("The attack that is chosen below keeps its fine settings. All other attacks run with their usual settings.")
    return [Variant(names[id], {"attack": base.attack if id == base.attack.id else Part(id=id)}) for id in picked]


def _matrix(base: Experiment, known: Catalog) -> list[Variant]:
    protections, attacks = protection_axes.protections(base, known), _attacks(base, known)
    pairs = [(protection, attack) for protection in protections for attack in attacks]
    return [Variant(f"{protection.title}, {attack.title}", protection.change | attack.change) for protection, attack in pairs]


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
