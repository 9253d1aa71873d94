"""The script that attacks a visitor's own picture inside the page: loaded when it is asked for, by the program's pages and by a folder's.

It holds the page's part, the text of the worker, the style, and the pictures of the line-up: one file, since a page that is opened from a
disk can load scripts alone.
"""

import base64
import hashlib
import json
from functools import cache

from leakage.frontend.bundle import bundle
from leakage.frontend.scripts import FOLDER, scripts

PAGE, WORKER, STYLE = "own/own_picture.js", "attack/attack_worker.js", "own/own.css"
LINEUP = FOLDER / "own" / "lineup.webp"  # written by scripts/make_lineup.py
ROUTE = "/api/own"


@cache
def worker_script() -> str:
    """Return the text of the worker: phone, attacker and referee."""
    return bundle(scripts(), WORKER, short=True)


@cache
def own_script() -> str:
    """Return the whole script. It defines the global variable gleOwn: {worker, style, lineup, OwnPicture}."""
    lineup = "data:image/webp;base64," + base64.b64encode(LINEUP.read_bytes()).decode()
    parts = {"worker": worker_script(), "style": (FOLDER / STYLE).read_text(encoding="utf-8"), "lineup": lineup}
    return f"globalThis.gleOwn = {json.dumps(parts)};\n{bundle(scripts(), PAGE)}"


@cache
def own_script_name() -> str:
    """Return the file name of the script, with a hash of its content, so that browsers may cache it."""
    return f"own.{hashlib.sha256(own_script().encode()).hexdigest()[:12]}.js"


def own_script_address(base: str) -> str:
    """Return the address of the script in the program, without the host; `base` is the prefix of all routes, or empty."""
    return f"{base}{ROUTE}/{own_script_name()}"
