"""The page Learn as HTML: of the program, with modules and its style in it, or of a folder, with one script and one style sheet."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from leakage.frontend.markup import render
from leakage.frontend.scripts import FOLDER

ENTRY = "reader/reader.js"
STYLES = ("reader.css", "hall.css")
DOOR = ("door.css",)  # only the folder begins with the front door: in the program it stands above the Lab


def stylesheet(*, door: bool = False) -> str:
    """What the page looks like; with the front door where it has one."""
    return "".join((FOLDER / "reader" / name).read_text(encoding="utf-8") for name in STYLES + (DOOR if door else ()))


def program_page(about: Mapping[str, Any], modules: Sequence[str], *, home: str, pages: Mapping[str, str]) -> str:
    """The page as the program serves it.

    Args:
        about: What `reader.js` begins with; see `About` in `reader/source.js`.
        modules: The addresses of all modules, the one that starts first.
        home: Where the name of the program leads to.
        pages: The links beside it: their words, and where they lead to.

    Returns:
        A whole document.
    """
    return _page(about, style=stylesheet(), style_file="", preloads=modules, script=modules[0], module=True, home=home, pages=pages)


def folder_page(about: Mapping[str, Any], script: str, style_file: str, *, home: str, pages: Mapping[str, str]) -> str:
    """The same with a classic script and a style sheet, which lie beside it."""
    return _page(about, style="", style_file=style_file, preloads=(), script=script, module=False, home=home, pages=pages)


def _page(about: Mapping[str, Any], *, style: str, **values: Any) -> str:
    content = json.dumps(about, ensure_ascii=False).replace("<", "\\u003c")
    return render("ui/components/reader/reader.html.jinja", about=Markup(content), style=Markup(style), **values)
