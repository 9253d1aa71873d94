"""The page Your runs: show, name, pin, share and delete the runs of this browser; or show any visitor the list in the address."""

import time
from itertools import zip_longest
from urllib.parse import urlencode

import streamlit as st

from leakage.frontend.markup import render
from leakage.results.comparison import MAX_RUNS
from leakage.runs.events import AttackEnd
from leakage.runs.run_labels import LONGEST, printable
from leakage.runs.service import service
from leakage.runs.store import Label, Run
from leakage.spec.catalog import Catalog
from leakage.ui.common import delete_by_code, explain, gone
from leakage.ui.common.base_path import address_of, base
from leakage.ui.common.markdown import Markdown, escape, link
from leakage.ui.common.session import delete_all, owner
from leakage.ui.training.run_rows import row_of


def show_row(run: Run, label: Label, known: Catalog) -> None:
    """Draw a run with its name, title, time and end, and the buttons to pin, rename and delete it."""
    with st.container(border=True, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        show_summary(run, label.name, known)
        with st.container(horizontal=True, vertical_alignment="center", width="content", gap="small"):
            pinned, given = label.pinned is not None, (run.id, owner())
            st.button(
                "Pinned" if pinned else "Pin",
                key=f"pin-{run.id}",
                icon=":material/keep:" if pinned else ":material/keep_off:",
                type="tertiary",
                help="Pinned runs stand first in this list and can be shared as a lesson. Pictures that you uploaded are deleted after "
                f"{escape(service().config.upload_life)} even if their run is pinned.",
                on_click=service().labels.pin,
                args=given,
            )
            with st.popover("Rename", icon=":material/edit:", type="tertiary", key=f"renaming-{run.id}"):  # else open for the next run too
                st.text_input("Name", label.name, LONGEST, key=f"name-{run.id}", on_change=rename, args=given, help="Empty: the title.")
            with st.popover("Delete", icon=":material/delete:", type="tertiary", key=f"deleting-{run.id}"):
                st.markdown("The run and its pictures are deleted at once, for good.")
                st.button("Delete it", key=f"delete-{run.id}", type="primary", on_click=service().delete, args=given)


def rename(run: str, holder: str) -> None:
    """Store the name that the visitor typed for a run; `holder` is the id of the visitor, to whom the name belongs."""
    service().labels.rename(run, holder, st.session_state[f"name-{run}"])


def show_summary(run: Run, name: str, known: Catalog) -> None:
    """Draw the picture of a run, its name or title as a link, its time, and how it ended."""
    status, title, address = row_of(run, known)
    when = time.strftime("%d %b %H:%M", time.localtime(run.created))
    with st.container(horizontal=True, vertical_alignment="center", width="content"):
        if run.kind == "attack" and (end := run.outcome(AttackEnd)) and end.answer is not None:  # else there is no picture
            st.html(render("ui/common/mini.html.jinja", address=f"{base()}/api/runs/{run.id}/final.png"), width="content")
        lines = [link(Markdown(f"**{escape(name or title)}**"), address), *([escape(title)] if name else [])]
        st.markdown("  \n".join([*lines, escape(f"{when} · {status}")]), width="content")


def share(runs: list[Run], labels: dict[str, Label]) -> None:
    """Draw a link that other visitors can open to see the pinned runs as a list; it contains the names of these runs."""
    query = urlencode([("list", ",".join(run.id for run in runs)), *(("called", labels[run.id].name) for run in runs)], safe=",")
    with st.popover("Make a lesson of the pinned runs", icon=":material/format_list_numbered:", type="tertiary"):
        st.markdown("Everybody with this link sees these runs in this order, with their names and pictures, for as long as you keep them.")
        st.code(f"{address_of('/runs') or f'{base()}/runs'}?{query}", language=None, wrap_lines=True)
        st.link_button("Open it", f"{base()}/runs?{query}", icon=":material/open_in_new:")


def show_list(ids: list[str], names: list[str], known: Catalog) -> None:
    """Draw the runs of a link that another visitor made, in the order of their ids, with the names that the link gives them."""
    st.markdown("#### A list of runs")
    named = zip_longest(ids[:MAX_RUNS], names[:MAX_RUNS], fillvalue="")
    listed = [(run, printable(name)) for id, name in named if (run := service().look(id))]
    for number, (run, name) in enumerate(listed, 1):
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{number}**", width="content")
            show_summary(run, name, known)
    if len(listed) < len(ids):
        st.caption(f"A run of this list is not here: {gone.why(ids)}.")


def page() -> None:
    """Draw the whole page, from top to bottom."""
    known = service().catalog()
    if known is None:
        st.caption("Getting ready. Come back in a few seconds.")
    elif ids := [id for id in st.query_params.get("list", "").split(",") if id]:
        show_list(ids, st.query_params.get_all("called"), known)
    else:
        st.markdown("#### The runs of this browser")
        delete_by_code.show()
        show_runs(known)


def show_runs(known: Catalog) -> None:
    """Draw the runs of this browser, the pinned runs first."""
    mine, labels = service().mine(owner()), service().labels.of(owner())
    if not mine:
        st.info("No runs yet. Choose pictures in the lab and press Run.")
        return
    with st.container(horizontal=True):
        if pinned := [run for run in mine if run.id in labels and labels[run.id].pinned is not None]:
            share(pinned, labels)
        delete_all()
    for run in mine:
        show_row(run, labels.get(run.id, Label()), known)
    st.caption(explain.promise())


page()
