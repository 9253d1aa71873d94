"""Where the server answers: below `server.baseUrlPath`, which nothing but Streamlit's own pages knows by itself."""

from urllib.parse import urlsplit

import streamlit as st


def base() -> str:
    """The prefix of all our routes and links: empty, or such as `/gle`."""
    path = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{path}" if path else ""


def address_of(path: str) -> str | None:
    """The address of one of our own pages, such as /learn, with the scheme and host that the browser sees; None where no browser looks."""
    seen = urlsplit(st.context.url or "")
    return f"{seen.scheme}://{seen.netloc}{base()}{path}" if seen.scheme in ("http", "https") and seen.netloc else None
