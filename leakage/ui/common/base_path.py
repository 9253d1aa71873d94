"""Where the server answers: below `server.baseUrlPath`, which nothing but Streamlit's own pages knows by itself."""

import streamlit as st


def base() -> str:
    """The prefix of all our routes and links: empty, or such as `/gle`."""
    path = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{path}" if path else ""
