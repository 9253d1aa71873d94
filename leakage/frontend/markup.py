"""HTML and SVG from Jinja2 templates, which lie beside the modules that use them. Values are escaped; a missing value is an error."""

import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream
from markupsafe import Markup

PACKAGE = Path(__file__).resolve().parent.parent
LAYOUT = re.compile(r"\A {2,}|(?<![^>])\s*\n\s*|\s*\n\s*(?![^<])")  # indentation, and line breaks beside a tag, a value or a statement


class OneLine(Extension):
    """A Jinja2 extension that removes line breaks and indentation between tags, which a browser would show as spaces."""

    def filter_stream(self, stream: TokenStream) -> Iterable[Token]:
        for token in stream:
            yield Token(token.lineno, token.type, LAYOUT.sub("", token.value)) if token.type == "data" else token


def render(template: str, **values: Any) -> str:
    """Return a template with its values filled in.

    Args:
        template: the path of the template inside the package, such as `ui/lab/threat_model_table.html.jinja`.
        **values: the value of each name in the template; text that is already markup must be a `markupsafe.Markup`.

    Returns:
        HTML or SVG, without the line breaks of the template.

    Raises:
        jinja2.UndefinedError: the template uses a name that has no value.
    """
    return _environment().get_template(template).render(values)


def json_markup(value: Any) -> Markup:
    """Return a value as JSON that a page may contain in a script element: no text in it can end that element."""
    return Markup(json.dumps(value, ensure_ascii=False).replace("<", "\\u003c"))


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[OneLine],
    )
