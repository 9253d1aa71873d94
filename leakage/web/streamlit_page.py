"""Streamlit's page with a script that sets the server's address.

Without this script the page first sends requests below its own path, and the browser's console shows two errors.
"""

import re
from base64 import b64encode
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from leakage.settings import ROOT

SCRIPT = b"<script>window.__streamlit = { BACKEND_BASE_URL: new URL('.', location.href).href }</script>"
SCRIPTS = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


def streamlit_page() -> bytes:
    """Return Streamlit's index.html, with a first script that sets the server's address; empty if Streamlit is not installed."""
    streamlit = find_spec("streamlit")
    if streamlit is None or streamlit.origin is None:
        return b""
    return (Path(streamlit.origin).parent / "static" / "index.html").read_bytes().replace(b"<script", SCRIPT + b"<script", 1)


def script_hashes() -> list[str]:
    """Return the hashes of the inline scripts in Streamlit's page, for a content security policy that permits no other inline script."""
    return [f"'sha256-{b64encode(sha256(script).digest()).decode()}'" for script in SCRIPTS.findall(streamlit_page())]


def page_routes(base: str = "") -> list[Route]:
    """Return a route to Streamlit's page for each file in pages/, below a prefix such as `/gle`."""
    page = streamlit_page()

    async def answer(_request: Request) -> HTMLResponse:
        return HTMLResponse(page, headers={"Cache-Control": "no-cache"})

    return [Route(f"{base}/{file.stem}", answer) for file in sorted((ROOT / "pages").glob("*.py"))]
