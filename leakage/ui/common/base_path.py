"""The path below which the server answers (`server.baseUrlPath`); Streamlit adds it to its own pages only, not to our links."""

from urllib.parse import urlsplit

import streamlit as st


def base() -> str:
    """Return the prefix of all our routes and links: empty, or a path such as `/gle`."""
    path = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{path}" if path else ""


def address_of(path: str) -> str | None:
    """Return the full address of one of our pages (`path`, such as /learn), with the browser's scheme and host; None without a browser."""
    shown = urlsplit(st.context.url or "")
    return f"{shown.scheme}://{shown.netloc}{base()}{path}" if shown.scheme in ("http", "https") and shown.netloc else None
