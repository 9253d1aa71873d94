"""The museum of papers as HTML: for the web server with JavaScript modules, or for a folder of static files with one classic script."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from leakage.frontend.markup import json_markup, render
from leakage.frontend.scripts import FOLDER
from leakage.learn.paper_data import museum_page
from leakage.learn.paper_rows import museum
from leakage.spec.catalog import Catalog
from leakage.web.reader_page import stylesheet

ENTRY = "papers/papers.js"


def papers_style() -> str:
    """Return the CSS of the page: that of the page Learn, and its own."""
    return stylesheet() + (FOLDER / "papers" / "papers.css").read_text(encoding="utf-8")


class PageLinks(NamedTuple):
    """Where the links of the page lead."""

    home: str
    """The address behind the name of the program."""
    pages: Mapping[str, str]
    """The addresses of the links beside that name, by their text."""
    lab: str
    """The address of the Lab, or of the page that says how to get it."""


def papers_page(known: Catalog | None, scripts: Sequence[str], about: Mapping[str, Any], links: PageLinks, *, style_file: str = "") -> str:
    """Return the museum of papers as a complete HTML document.

    Args:
        known: The installed plug-ins; None while they are not known: then no row links to the Lab.
        scripts: The addresses of all JavaScript modules, first the module to start. With `style_file`: of one script, no module.
        about: The data that the page's script starts with: the type About in `reader/source.js`.
        links: Where the links of the page lead.
        style_file: The address of the style sheet, for a folder without the program. Empty: the page contains its style.

    Raises:
        SpecError: papers.json is not valid.
    """
    values: dict[str, Any] = {"museum": museum_page(museum(), known), "about": json_markup(about), "links": links, "style_file": style_file}
    values |= {"style": Markup(papers_style() if not style_file else ""), "script": scripts[0], "preloads": () if style_file else scripts}
    return render("web/papers.html.jinja", **values)
