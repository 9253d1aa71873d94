"""The page of a phone in a room: one HTML, one script and one style sheet, so that a class can load them at the same moment."""

import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Any

from leakage.frontend.bundle import bundle
from leakage.frontend.markup import json_markup, render
from leakage.frontend.scripts import FOLDER, scripts

ENTRY = "room/phone.js"
STYLES = ("reader/reader.css", "room/room.css")
TYPES = {"js": "text/javascript", "css": "text/css"}


@cache
def join_files() -> dict[str, tuple[bytes, str]]:
    """Return the script and the style sheet by file name, each with its type; a hash of the content is part of the name."""
    contents = {"js": bundle(scripts(), ENTRY), "css": "".join((FOLDER / name).read_text(encoding="utf-8") for name in STYLES)}
    return {
        f"phone.{hashlib.sha256(text.encode()).hexdigest()[:12]}.{kind}": (text.encode(), TYPES[kind]) for kind, text in contents.items()
    }


def join_page(about: Mapping[str, Any], folder: str) -> str:
    """Return the page as a complete HTML document.

    Args:
        about: The data that the page's script starts with: the type About in `room/phone.js`.
        folder: The address of the folder with the files of `join_files`.
    """
    script, style = (f"{folder}/{name}" for name in join_files())
    return render("ui/components/room/phone.html.jinja", about=json_markup(about), script=script, style=style)
