"""HTML and SVG from Jinja2 templates, which lie beside the modules that use them. Every value is escaped; a missing one is an error."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream

PACKAGE = Path(__file__).resolve().parent.parent
LAYOUT = re.compile(r"\A {2,}|(?<![^>])\s*\n\s*|\s*\n\s*(?![^<])")  # indentation, and line breaks beside a tag, a value or a statement


class OneLine(Extension):
    """Leaves out line breaks and indentation between tags: between two inline elements a browser would show them as a space."""

    def filter_stream(self, stream: TokenStream) -> Iterable[Token]:
        for token in stream:
            yield Token(token.lineno, token.type, LAYOUT.sub("", token.value)) if token.type == "data" else token


def render(template: str, **values: Any) -> str:
    """A template with its values filled in.

    Args:
        template: The path of the template inside the package, such as `ui/lab/threat_model_table.html.jinja`.
        **values: What its names stand for; text that is markup itself must be a `markupsafe.Markup`.

    Returns:
        HTML or SVG, without the template's own line breaks.

    Raises:
        jinja2.UndefinedError: If the template uses a name that has no value.
    """
    return _environment().get_template(template).render(values)


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
