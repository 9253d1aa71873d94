"""The page Learn as HTML: for the web server with JavaScript modules, or for a folder of static files with one classic script."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from leakage.frontend.markup import render
from leakage.frontend.scripts import FOLDER

ENTRY = "reader/reader.js"
STYLES = ("reader.css", "hall.css")
DOOR = ("door.css",)  # of the front page, which only the folder has: in the program the Lab begins with it


def stylesheet(*, door: bool = False) -> str:
    """Return the CSS of the page; with `door` also the CSS of the front page."""
    return "".join((FOLDER / "reader" / name).read_text(encoding="utf-8") for name in STYLES + (DOOR if door else ()))


def program_page(about: Mapping[str, Any], modules: Sequence[str], *, home: str, pages: Mapping[str, str]) -> str:
    """Return the page as the web server serves it, a complete HTML document.

    Args:
        about: The data that the page's script starts with: the type About in `reader/source.js`.
        modules: The addresses of all modules; the first is the one to start.
        home: The address to which the name of the program links.
        pages: The addresses of the links beside it, by their text.
    """
    return _page(about, style=stylesheet(), style_file="", preloads=modules, script=modules[0], module=True, home=home, pages=pages)


def folder_page(about: Mapping[str, Any], script: str, style_file: str, *, home: str, pages: Mapping[str, str]) -> str:
    """Return the page as the file of a folder, with a classic script and a style sheet in the same folder; see `program_page`."""
    return _page(about, style="", style_file=style_file, preloads=(), script=script, module=False, home=home, pages=pages)


def _page(about: Mapping[str, Any], *, style: str, **values: Any) -> str:
    content = json.dumps(about, ensure_ascii=False).replace("<", "\\u003c")
    return render("ui/components/reader/reader.html.jinja", about=Markup(content), style=Markup(style), **values)
