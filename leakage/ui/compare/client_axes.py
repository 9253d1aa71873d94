"""How the phone trains and how often it is heard, as what differs: local steps, local rate, rounds; from the fields of the catalog."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import streamlit as st

from leakage.results.defense_keys import parse_value, strength_values
from leakage.results.variant import MOST, Variant
from leakage.spec.catalog import LOCAL_RATE, LOCAL_STEPS, Catalog, Field
from leakage.spec.experiment import MAX_ROUNDS, Experiment, Part
from leakage.spec.prepared import prepared
from leakage.spec.threat_model import counted
from leakage.ui.common.markdown import escape, ours

ROUNDS = Field("rounds", "int", 1, "How often this phone was heard. The last round is attacked.", low=1, high=MAX_ROUNDS)
FIELDS = {"steps": LOCAL_STEPS, "rate": LOCAL_RATE, "rounds": ROUNDS.name}  # what differs -> the field that is set apart for it
KEYS = {"steps": "steps", "rate": "rates", "rounds": "watched"}  # what differs -> the key of its values, as words
FACTORS = {"steps": (0.2, 1, 2, 4), "rate": (1, 10, 100, 1000), "rounds": (1, 2, 5, 10)}  # of what is offered first, times the default
LABELS = {"steps": "How often the phone goes through its pictures", "rate": "How far one local step goes", "rounds": "Rounds watched"}
NOTES = {
    "steps": "Where a step takes all pictures of the phone, that is the number of its local steps.",
    "rate": "The local learning rate.",
    "rounds": "In every variant the last of them is attacked.",
}


def choose(about: str, base: Experiment, known: Catalog) -> list[Variant]:
    """The variants of one of these; what is no number that it can be is said and left out."""
    protocol = base.protocol if about == "rounds" else with_local_steps(base, known)
    field = _field(about, protocol, known)
    usual = [f"{value:g}" for value in strength_values(field, FACTORS[about], ())]
    key = KEYS[about]
    options = list(dict.fromkeys([*usual, *st.session_state.get(key, ())]))
    words = st.multiselect(
        f"{LABELS[about]}, {field.low:g} to {field.high:g}",
        options,
        default=usual,
        key=key,
        max_selections=MOST,
        accept_new_options=True,
        help=ours(field.help),
    )
    note = "" if protocol == base.protocol else f" With {known.protocols.get(protocol.id).title}: the one below has no local steps."
    st.caption(escape(NOTES[about] + note))
    values = [value for word in words if (value := _value(word, field)) is not None]
    return [_variant(about, value, protocol) for value in sorted(dict.fromkeys(values))]


def with_local_steps(base: Experiment, known: Catalog) -> Part:
    """The protocol of all variants: as it is chosen where its phones train by themselves, else the one that is prepared."""
    if known.protocols.get(base.protocol.id).trains_locally:
        return base.protocol
    return prepared().what_ifs.local.change.protocol or base.protocol


def _field(about: str, protocol: Part, known: Catalog) -> Field:
    if about == "rounds":
        return ROUNDS
    return next(field for field in known.protocols.get(protocol.id).fields if field.name == FIELDS[about])


def _value(word: str, field: Field) -> float | None:
    """A word as a value in the field's range; else the reason is said."""
    try:
        value = parse_value(field.type, word.strip())
    except ValueError:
        st.warning(f"{escape(word)} is no {'whole ' if field.type == 'int' else ''}number and is left out.")
        return None
    assert field.low is not None
    assert field.high is not None
    if not field.low <= float(value) <= field.high:  # not a number is refused too
        st.warning(f"{escape(word)} is left out: allowed is {field.low:g} to {field.high:g}.")
        return None
    return float(value)


def _variant(about: str, value: float, protocol: Part) -> Variant:
    if about == "rounds":
        return Variant(counted(int(value), "round"), {"rounds": int(value), "attacked_round": int(value)})
    changed = Part(id=protocol.id, fields={**protocol.fields, FIELDS[about]: int(value) if about == "steps" else value})
    return Variant(counted(int(value), "local step") if about == "steps" else f"local rate {value:g}", {"protocol": changed})


def values_of(about: str, experiments: Sequence[Experiment], known: Catalog) -> list[Any]:
    """The words of the values that differ in experiments which were run; none where these widgets cannot say them."""
    if about == "rounds":
        last = all(one.attacked_round == one.rounds for one in experiments)
        return list(dict.fromkeys(str(one.rounds) for one in experiments)) if last else []
    if len({one.protocol.id for one in experiments}) > 1:
        return []
    with suppress(ValueError):  # the protocol is gone since
        entry = known.protocols.get(experiments[0].protocol.id)
        if entry.trains_locally:
            return list(dict.fromkeys(f"{entry.resolve(one.protocol.fields)[FIELDS[about]]:g}" for one in experiments))
    return []
