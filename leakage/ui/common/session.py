"""Who is looking: the owner behind a cookie, because session state dies on reload; and what is theirs to delete."""

import secrets

import streamlit as st

from leakage.runs.owners import COOKIE, owner_of
from leakage.runs.service import service

PAGE, KEPT = "page", "kept"  # in session state: where the visitor is, and the names of what this page alone keeps there
SHOWN, BEFORE = "shown", "before"  # in session state: the runs that the Lab shows, and those that it showed when it was left
COMING = "coming"  # in session state: whether the visitor was on another page until now


def owner() -> str:
    """The owner of this browser's runs."""
    cookie = st.context.cookies.get(COOKIE)
    return owner_of(cookie) if cookie else str(st.session_state.setdefault("owner", secrets.token_urlsafe(16)))


def enter(page: str) -> None:
    """Before a page is drawn: the visitor is here; what another page has kept for itself, beyond its widgets, is gone like these."""
    service().see(owner())
    state = st.session_state
    state[COMING] = state.get(PAGE, page) != page
    if state[COMING]:
        for key in state.pop(KEPT, ()):
            state.pop(key, None)
    state[PAGE] = page


def delete_all() -> None:
    """One button that forgets everything this browser has run, after a second look."""
    with st.popover("Delete all mine", icon=":material/delete_sweep:", type="tertiary"):
        st.markdown(
            "All runs of this browser, their pictures and your uploads go at once. A run that somebody else also asked for stays theirs."
        )
        st.button("Delete them", on_click=_forget, type="primary")


def _forget() -> None:
    service().delete_all(owner())
    st.session_state["uploads"], st.session_state["upload_titles"], st.session_state["upload_codes"] = {}, {}, {}
    st.session_state["uploaders"] = st.session_state.get("uploaders", 0) + 1  # a new uploader, without the old one's files
    for name in ("run", "runs"):
        st.query_params.pop(name, None)
    for name in (SHOWN, BEFORE):
        st.session_state.pop(name, None)
