"""The page Learn as HTML: for the web server with JavaScript modules, or for a folder of static files with one classic script."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from leakage.frontend.markup import json_markup, render
from leakage.frontend.scripts import FOLDER

ENTRY = "reader/reader.js"
STYLES = ("reader.css", "hall.css")
ROOM = ("../room/class.css",)  # of the program alone: a folder of files has no rooms
DOOR = ("door.css",)  # of the front page, which only the folder has: in the program the Lab begins with it


def stylesheet(*, door: bool = False) -> str:
    """Return the CSS of the page Learn; with `door` that of lessons in a folder of files: they have a front page, and no rooms."""
    return "".join((FOLDER / "reader" / name).read_text(encoding="utf-8") for name in STYLES + (DOOR if door else ROOM))


def reader_page(about: Mapping[str, Any], scripts: Sequence[str], *, home: str, pages: Mapping[str, str], style_file: str = "") -> str:
    """Return the page Learn, which shows the lessons, as a complete HTML document.

    Args:
        about: The data that the page's script starts with: the type About in `reader/source.js`.
        scripts: The addresses of all JavaScript modules, first the module to start. With `style_file`: of one script, no module.
        home: The address to which the name of the program, at the top of the page, links.
        pages: The addresses of the links beside that name, by their text.
        style_file: The address of the style sheet. Empty: the page contains its style.
    """
    module = not style_file
    values: dict[str, Any] = {"about": json_markup(about), "style": Markup(stylesheet() if module else ""), "style_file": style_file}
    values |= {"script": scripts[0], "module": module, "preloads": scripts if module else (), "home": home, "pages": pages}
    return render("ui/components/reader/reader.html.jinja", **values)
