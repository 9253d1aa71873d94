"""The page Learn as HTML, for the routes of the program and for the folder that `make site` writes."""

import html
import json
from collections.abc import Mapping
from typing import Any

from leakage.results.scripts import FOLDER

PAGE = FOLDER / "reader"
ENTRY = "reader/reader.js"


def stylesheet() -> str:
    """What the page looks like."""
    return (PAGE / "reader.css").read_text(encoding="utf-8")


def reader_page(about: Mapping[str, Any], *, head: str, script: str, home: str, pages: Mapping[str, str]) -> str:
    """The page with nothing in it but what it starts from.

    Args:
        about: What `reader.js` begins with; see `About` in `reader/source.js`.
        head: Markup that brings the style, and whatever is to be fetched early.
        script: The tag that starts the reader.
        home: Where the name of the program leads to.
        pages: The links beside it: their words, and where they lead to.

    Returns:
        A whole document.
    """
    filled = {
        "__HEAD__": head,
        "__HOME__": html.escape(home),
        "__PAGES__": "\n".join(f'<a href="{html.escape(address)}">{html.escape(words)}</a>' for words, address in pages.items()),
        "__SCRIPT__": script,
        "__ABOUT__": json.dumps(about, ensure_ascii=False).replace("<", "\\u003c"),
    }
    text = (PAGE / "reader.html").read_text(encoding="utf-8")
    for mark, value in filled.items():
        text = text.replace(mark, value)
    return text
