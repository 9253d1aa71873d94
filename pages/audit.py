"""The page Audit: attack an update that your own client has recorded, without knowing its pictures."""

from typing import Any

import streamlit as st

from leakage.runs.service import service
from leakage.spec.audit_task import AuditTask
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import SpecError
from leakage.spec.json_reading import parse_as
from leakage.spec.update_card import UpdateCard
from leakage.ui.audit import audit_view, card_form
from leakage.ui.audit.recorded_files import RecordedFiles, choose_files, take_up
from leakage.ui.common import forms
from leakage.ui.common.markdown import escape
from leakage.ui.common.session import draw_foot, owner

FILLED = "audit.filled"  # in session state: the files whose card was filled in
MINUTES = (1, 5, 10, 30)
SEVERAL = "card.json names {} protections. The attackers imitate all of them, unless you choose one here."
INTRODUCTION = """\
You bring what a client of your own sent to its server. This page attacks it as a curious server would, and shows what comes out.

1. **Choose files.** The weights before the client's training, and what it sent: the weights after it, their difference, or a gradient.
2. **Choose the network** that the client trained.
3. **Say what you know** of the client. Leave the rest unknown.
4. **Press Run.** First you see what the update says by itself, then the pictures that attacks reconstruct from it.
"""


def settings_of(known: Catalog) -> AuditTask | None:
    """Draw the cards for files, network, client and effort, and return the audit; None where it cannot run."""
    before = take_up(st.query_params.get("run"))
    with forms.card(1, "The update that your client sent"):
        files = choose_files()
        life = escape(service().config.upload_life)
        st.caption(
            "The files stay on the machine that runs this page, in the folder of this program. They are deleted with their audit, after "
            f"{life} at the latest."
        )
    if files and st.session_state.get(FILLED) != files.stamp:
        st.session_state[FILLED] = files.stamp
        card_form.fill_in(before.card if before else files.card, known)
        if before:
            st.session_state["audit.minutes"], st.session_state["audit.seed"] = int(before.minutes), before.seed
    with forms.card(2, "The network that it trained"):
        model = forms.choose(known, "model", "Model")
        given = card_form.choose_pictures()
    with forms.card(3, "What you know of the client"):
        problem = ""
        try:
            given |= card_form.ask_about_client(known)
        except ValueError as error:
            problem = str(error)
            st.error(escape(problem))
        if files and len(files.card.protections) > 1:
            st.caption(SEVERAL.format(len(files.card.protections)))
    with forms.card(4, "How long the attacks may take"):
        minutes = st.segmented_control(
            "Minutes", MINUTES, default=5, required=True, key="audit.minutes", format_func=lambda count: f"{count:d} min"
        )
        seed = st.number_input("Random start (seed)", 0, 2**31 - 1, 1, key="audit.seed")
    if not files or not model or problem:
        return None
    return make_task(files, {"model": model, "minutes": minutes, "seed": seed}, given)


def make_task(files: RecordedFiles, values: dict[str, Any], given: dict[str, Any]) -> AuditTask | None:
    """Return the audit of these files; None, with the reason on the page, if its settings are not allowed."""
    try:
        named: dict[str, Any] = {"protocol": files.card.protocol} if files.card.protocol.value else {}  # the form does not ask for it
        if len(files.card.protections) > 1 and not given["protections"]:  # the form has room for one
            named["protections"] = files.card.protections
        card = parse_as({**given, **named, "framework": files.card.framework, "network": values["model"]}, UpdateCard, "a card")
        return parse_as({**values, "files": files.name, "card": card}, AuditTask, "an audit").resolve(service().ready())
    except SpecError as error:
        st.error(escape(error))
    return None


def begin(task: AuditTask) -> None:
    """Queue an audit and open it on the page; show why if it is refused."""
    try:
        st.query_params["run"] = service().audit(task, owner())
    except SpecError as error:
        st.error(escape(error))
        return
    st.rerun()  # the files now belong to a run: above, they cannot be changed any more


def page() -> None:
    """Draw the whole page, from top to bottom."""
    st.markdown("#### What does an update of your own client give away?")
    known = service().catalog()
    if known is None:
        st.caption("Getting ready. Come back in a few seconds.")
        return
    left, right = st.columns([0.36, 0.64], gap="medium")
    with left:
        task = settings_of(known)
        with st.container(key="run-bar"):
            pressed = st.button(
                "Run", type="primary", icon=":material/play_arrow:", width="stretch", key="run-button", disabled=task is None
            )
        if pressed and task:
            begin(task)
    with right, st.container(key="audit-result"):
        if run := st.query_params.get("run"):
            audit_view.show(run, task)
        else:
            st.markdown(INTRODUCTION)
    draw_foot()


page()
