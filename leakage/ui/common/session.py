"""Who is looking: a random owner in an HttpOnly cookie, because session state dies on reload; and what is theirs to delete."""

import secrets

import streamlit as st
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leakage.runs.service import service

COOKIE = "gle_owner"
PAGE, KEPT = "page", "kept"  # in session state: where the visitor is, and the names of what this page alone keeps there
SHOWN, BEFORE = "shown", "before"  # in session state: the runs that the Lab shows, and those that it showed when it was left
COMING = "coming"  # in session state: whether the visitor was on another page until now
YEAR = 365 * 24 * 3600


class OwnerCookie:
    """Gives every browser without one a random owner."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        new = scope["type"] == "http" and f"{COOKIE}=".encode() not in dict(scope["headers"]).get(b"cookie", b"")

        async def marked(message: Message) -> None:
            if new and message["type"] == "http.response.start":
                cookie = f"{COOKIE}={secrets.token_urlsafe(16)}; Path=/; Max-Age={YEAR}; HttpOnly; SameSite=Lax"
                message["headers"] = [*message["headers"], (b"set-cookie", cookie.encode())]
            await send(message)

        page = new and scope["path"].rsplit("/", 1)[-1] in (
            "",
            "ask",
            "compare",
            "architecture",
            "training",
            "runs",
        )  # the page itself, not its dozens of scripts
        await self.app(scope, receive, marked if page else send)


MIDDLEWARE = [Middleware(OwnerCookie)]


def owner() -> str:
    """The owner of this browser's runs."""
    cookie = st.context.cookies.get(COOKIE)
    return f"browser {cookie}" if cookie else str(st.session_state.setdefault("owner", secrets.token_urlsafe(16)))


def enter(page: str) -> None:
    """Before a page is drawn: what another one has kept for itself, beyond its widgets, is gone like these."""
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
