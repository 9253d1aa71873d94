"""Variants that differ in how the phone trains or how often it sends: local steps, local rate, rounds; from the catalog's fields."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import streamlit as st

from leakage.results.defense_keys import parse_value, strength_values
from leakage.results.variant import MOST, Variant
from leakage.spec.catalog import LOCAL_RATE, LOCAL_STEPS, Catalog, Field
from leakage.spec.experiment import MAX_ROUNDS, Experiment, Part
from leakage.spec.prepared import prepared
from leakage.spec.words import counted
from leakage.ui.common.markdown import escape, ours

ROUNDS = Field(
    "rounds",
    "int",
    1,
    "How many rounds of training of this phone the attacker watched. The attack works on the last of these rounds.",
    low=1,
    high=MAX_ROUNDS,
)
FIELDS = {"steps": LOCAL_STEPS, "rate": LOCAL_RATE, "rounds": ROUNDS.name}  # what differs -> the field that differs
KEYS = {"steps": "steps", "rate": "rates", "rounds": "watched"}  # what differs -> widget key of its values, as texts
FACTORS = {"steps": (0.2, 1, 2, 4), "rate": (1, 10, 100, 1000), "rounds": (1, 2, 5, 10)}  # first values offered, times the default
LABELS = {
    "steps": "How often the phone goes through its pictures",
    "rate": "Size of one training step on the phone",
    "rounds": "Rounds watched",
}
NOTES = {
    "steps": "If a training step takes the phone's pictures together, this is also the number of its training steps before it sends.",
    "rate": "How far one training step on the phone moves the model (local learning rate).",
    "rounds": "In every variant the attack works on the last round of training.",
}


def choose(about: str, base: Experiment, known: Catalog) -> list[Variant]:
    """Draw the choice of values, and return a variant for each.

    A warning names each value that is not a number in the field's range; it is left out.

    Args:
        about: what differs: "steps", "rate" or "rounds".
        base: the experiment that all variants share.
        known: the plug-ins.
    """
    protocol = base.protocol if about == "rounds" else with_local_steps(base, known)
    field = _field(about, protocol, known)
    defaults = [f"{value:g}" for value in strength_values(field, FACTORS[about], ())]
    key = KEYS[about]
    options = list(dict.fromkeys([*defaults, *st.session_state.get(key, ())]))
    texts = st.multiselect(
        f"{LABELS[about]}, {field.low:g} to {field.high:g}",
        options,
        default=defaults,
        key=key,
        max_selections=MOST,
        accept_new_options=True,
        help=ours(field.help),
    )
    note = (
        ""
        if protocol == base.protocol
        else f" These variants differ in the training on the phone, so the phones use the method {known.protocols.get(protocol.id).title}: "
        "with the method chosen below there are no training steps on the phone."
    )
    st.caption(escape(NOTES[about] + note))
    values = [value for text in texts if (value := _value(text, field)) is not None]
    return [_variant(about, value, protocol) for value in sorted(dict.fromkeys(values))]


def with_local_steps(base: Experiment, known: Catalog) -> Part:
    """Return the protocol of all variants: the chosen protocol if its clients take local steps, else the prepared one."""
    if known.protocols.get(base.protocol.id).trains_locally:
        return base.protocol
    return prepared().what_ifs.local.change.protocol or base.protocol


def _field(about: str, protocol: Part, known: Catalog) -> Field:
    if about == "rounds":
        return ROUNDS
    return next(field for field in known.protocols.get(protocol.id).fields if field.name == FIELDS[about])


def _value(text: str, field: Field) -> float | None:
    """Return a text as a value in the field's range; else warn on the page and return None."""
    try:
        value = parse_value(field.type, text.strip())
    except ValueError:
        st.warning(f"{escape(text)} is no {'whole ' if field.type == 'int' else ''}number and is left out.")
        return None
    assert field.low is not None
    assert field.high is not None
    if not field.low <= float(value) <= field.high:  # not a number is refused too
        st.warning(f"{escape(text)} is left out: allowed is {field.low:g} to {field.high:g}.")
        return None
    return float(value)


def _variant(about: str, value: float, protocol: Part) -> Variant:
    if about == "rounds":
        return Variant(counted(int(value), "round"), {"rounds": int(value), "attacked_round": int(value)})
    changed = Part(id=protocol.id, fields={**protocol.fields, FIELDS[about]: int(value) if about == "steps" else value})
    return Variant(counted(int(value), "local step") if about == "steps" else f"local rate {value:g}", {"protocol": changed})


def values_of(about: str, experiments: Sequence[Experiment], known: Catalog) -> list[Any]:
    """Return the values that differ in finished experiments, as texts; an empty list if these widgets cannot express them."""
    if about == "rounds":
        last_attacked = all(experiment.attacked_round == experiment.rounds for experiment in experiments)
        return list(dict.fromkeys(str(experiment.rounds) for experiment in experiments)) if last_attacked else []
    if len({experiment.protocol.id for experiment in experiments}) > 1:
        return []
    with suppress(ValueError):  # the protocol is gone since
        entry = known.protocols.get(experiments[0].protocol.id)
        if entry.trains_locally:
            return list(dict.fromkeys(f"{entry.resolve(experiment.protocol.fields)[FIELDS[about]]:g}" for experiment in experiments))
    return []
