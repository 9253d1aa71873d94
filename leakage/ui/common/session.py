"""The visitor: the owner of this browser's runs, known by a cookie because session state ends with a reload; and deleting them."""

import secrets

import streamlit as st

from leakage.runs.owners import COOKIE, owner_of
from leakage.runs.service import service
from leakage.ui.common.explain import promise

PAGE, KEPT = "page", "kept"  # in session state: the page the visitor is on, and the keys that only this page keeps there
SHOWN, BEFORE = "shown", "before"  # in session state: the runs that the Lab shows, and the runs that it showed when the visitor left it
COMING = "coming"  # in session state: whether the visitor was on another page until now


def owner() -> str:
    """Return the id of the owner of this browser's runs: from its cookie, or, if it has none, an id for this session alone."""
    cookie = st.context.cookies.get(COOKIE)
    return owner_of(cookie) if cookie else str(st.session_state.setdefault("owner", secrets.token_urlsafe(16)))


def enter(page: str) -> None:
    """Record the visit and the page, before the page is drawn; after a change of page, delete what only the last page kept."""
    service().see(owner())
    state = st.session_state
    state[COMING] = state.get(PAGE, page) != page
    if state[COMING]:
        for key in state.pop(KEPT, ()):
            state.pop(key, None)
    state[PAGE] = page


def draw_foot() -> None:
    """Draw the foot of a page: what happens to pictures, and the button of `delete_all`."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(promise(), width="content")
        delete_all()


def delete_all() -> None:
    """Draw the button that deletes all runs and uploads of this browser, behind a confirmation."""
    with st.popover("Delete all mine", icon=":material/delete_sweep:", type="tertiary"):
        st.markdown(
            "All runs of this browser, their pictures and your uploads are deleted at once. A run that another visitor has too stays "
            "with that visitor."
        )
        st.button("Delete them", on_click=_forget, type="primary")


def _forget() -> None:
    service().delete_all(owner())
    st.session_state["uploads"], st.session_state["upload_titles"], st.session_state["upload_codes"] = {}, {}, {}
    st.session_state["uploaders"] = st.session_state.get("uploaders", 0) + 1  # a new uploader, which holds no files
    for name in ("run", "runs"):
        st.query_params.pop(name, None)
    for name in (SHOWN, BEFORE):
        st.session_state.pop(name, None)
