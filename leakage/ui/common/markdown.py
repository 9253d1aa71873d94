"""Text as Streamlit's Markdown: `escape` for all that comes from outside, and a type for what is Markdown already.

A test walks every page for what Streamlit draws as Markdown: it must be written there, a number, or of the type `Markdown`.
"""

import re
from typing import NewType
from urllib.parse import quote

from leakage.ui.common.base_path import base

Markdown = NewType("Markdown", str)  # the test looks at what it is made of, wherever it is made

JOINER = "\u2060"  # takes no room; where a backslash is not enough, because the browser looks for these once more in the finished text
AGAIN = re.compile(
    r"(?<=http:)(?=//)|(?<=https:)(?=//)|(?<=www)(?=\.)|(?=@[\w-]+\.)"  # addresses become links
    r"|(?<=:)(?=[\w+-]+:|[^\W\d][\w+-]*\Z|material/)"  # emoji and icons
    r"|(?<!\S)(?=(?:<->|->|<-|--|>=|<=|~=)(?!\S))",  # arrows and dashes
    re.IGNORECASE,
)
SPECIAL = re.compile(r"[\\`*~\[\]<$|]|(?<![^\W_])_|_(?![^\W_])|:(?=[^\W\d]|\Z)|&(?=[#\w])")
START = re.compile(r"\A(?:([#>+=-])|(\d+)([.)])(?=\s|\Z))")  # a heading, a quotation, a list, a line


def escape(text: object) -> Markdown:
    r"""Any text so that it reads as it is: no link, picture, formula, icon, colour or HTML; in one line, without space around it.

    >>> print(escape("[Sign in](https://evil.example)").replace(JOINER, ""))
    \[Sign in\](https://evil.example)
    >>> print(escape("local_steps = 4, 3.5 dB (naive); my_*scan*.png"))
    local_steps = 4, 3.5 dB (naive); my\_\*scan\*.png
    """
    line = AGAIN.sub(JOINER, " ".join(str(text).split()))
    return Markdown(START.sub(r"\2\\\1\3", SPECIAL.sub(r"\\\g<0>", line)))


def ours(text: str) -> Markdown:
    """What we, or the author of a plug-in, wrote as Markdown into a field such as `hint`; the test lists these fields."""
    return Markdown(text)


def link(words: Markdown, address: str) -> Markdown:
    """A link to one of our own pages.

    Raises:
        ValueError: If the address leads anywhere else.
    """
    if not address.startswith(f"{base()}/") or address.startswith("//"):
        raise ValueError(f"A link leads to one of our own pages, so that it begins with {base()}/, got {address}.")
    return Markdown(f"[{words}]({quote(address, safe='/?&=#%,:@+-._~')})")
