"""Text for Streamlit's Markdown: `escape` for everything from outside, and the type `Markdown` for text that is Markdown already.

A test checks every text that a page lets Streamlit draw as Markdown: it must be a literal, a number, or of the type `Markdown`.
"""

import re
from typing import NewType
from urllib.parse import quote

from leakage.ui.common.base_path import base

Markdown = NewType("Markdown", str)  # the test checks every place that makes one

JOINER = "\u2060"  # has no width; breaks what a backslash cannot, because the browser searches the finished text for it again
AGAIN = re.compile(
    r"(?<=http:)(?=//)|(?<=https:)(?=//)|(?<=www)(?=\.)|(?=@[\w-]+\.)"  # addresses become links
    r"|(?<=:)(?=[\w+-]+:|[^\W\d][\w+-]*\Z|material/)"  # emoji and icons
    r"|(?<!\S)(?=(?:<->|->|<-|--|>=|<=|~=)(?!\S))",  # arrows and dashes
    re.IGNORECASE,
)
SPECIAL = re.compile(r"[\\`*~\[\]<$|]|(?<![^\W_])_|_(?![^\W_])|:(?=[^\W\d]|\Z)|&(?=[#\w])")
START = re.compile(r"\A(?:([#>+=-])|(\d+)([.)])(?=\s|\Z))")  # a heading, a quotation, a list, a line


def escape(text: object) -> Markdown:
    r"""Return the text so that it is shown literally: without links, pictures, formulas, icons, colours or HTML, in one line, stripped.

    >>> print(escape("[Sign in](https://evil.example)").replace(JOINER, ""))
    \[Sign in\](https://evil.example)
    >>> print(escape("local_steps = 4, 3.5 dB (naive); my_*scan*.png"))
    local_steps = 4, 3.5 dB (naive); my\_\*scan\*.png
    """
    line = AGAIN.sub(JOINER, " ".join(str(text).split()))
    return Markdown(START.sub(r"\2\\\1\3", SPECIAL.sub(r"\\\g<0>", line)))


def ours(text: str) -> Markdown:
    """Return a text of this program as Markdown, without escaping it; a test lists the texts that may be passed, such as `hint`."""
    return Markdown(text)


def link(text: Markdown, address: str) -> Markdown:
    """Return a link to one of our own pages.

    Raises:
        ValueError: If the address leads to another site.
    """
    if not address.startswith(f"{base()}/") or address.startswith("//"):
        raise ValueError(f"A link must lead to one of our own pages and begin with {base()}/. This link leads to {address}.")
    return Markdown(f"[{text}]({quote(address, safe='/?&=#%,:@+-._~')})")
