"""Streamlit's own page, told where its server is: else it asks below its own path first, and a browser's console shows two errors."""

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
    """What Streamlit answers for every page, with our script before all others; nothing where Streamlit is not installed."""
    streamlit = find_spec("streamlit")
    if streamlit is None or streamlit.origin is None:
        return b""
    return (Path(streamlit.origin).parent / "static" / "index.html").read_bytes().replace(b"<script", SCRIPT + b"<script", 1)


def script_hashes() -> list[str]:
    """The hashes of the scripts in that page, so that no other script in a page is run."""
    return [f"'sha256-{b64encode(sha256(script).digest()).decode()}'" for script in SCRIPTS.findall(streamlit_page())]


def page_routes(base: str = "") -> list[Route]:
    """That page at the address of each file in pages/, below a prefix such as `/gle`."""
    page = streamlit_page()

    async def answer(_request: Request) -> HTMLResponse:
        return HTMLResponse(page, headers={"Cache-Control": "no-cache"})

    return [Route(f"{base}/{file.stem}", answer) for file in sorted((ROOT / "pages").glob("*.py"))]
