"""The text of a script as tokens: what is code, what is a comment, and the script without what only a reader needs."""

import re
from collections.abc import Iterator
from typing import Literal

# The tokens of a script. A slash after a value is a division; otherwise it begins a regular expression.
TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)|(?P<string>'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")|(?P<word>[\w$]+)|(?P<sign>.)""", re.DOTALL
)
PATTERN = re.compile(r"/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*")
STRING = re.compile(r"'[^'\\\n]*'")
TEMPLATE = re.compile(r"(?:\\.|\$(?!\{)|[^`\\$])*(?:`|\$\{)", re.DOTALL)
NO_VALUE = {"return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "do", "else", "await", "yield", "instanceof"}
OPEN = {"", ";", "{", "(", "[", ",", "=", "?", ":", "&", "|"}  # after these tokens no statement ends
SEPARATED = re.compile(r"[\w$]{2}|\+\+|--|//")  # the ends of two tokens that mean something else without a space between


def compact(text: str) -> str:
    r"""Return the script without comments, indentation and spaces that separate nothing; its lines end where they ended.

    Strings whose sum, and nothing else, is assigned become one string.

    >>> compact("a = 1; // one\n\n  /* two */ b = ' // ' + typeof a; ")
    "a=1;\nb=' // '+typeof a;"
    >>> compact("a = 'b' +\n  'c'; d = e + 'f' + 'g';")
    "a='bc';d=e+'f'+'g';"
    """
    parts, gap = list[str](), ""
    for piece, kind in pieces(text):
        if kind == "blank":
            gap = "\n" if gap == "\n" or "\n" in piece or piece.startswith("//") else " "
            continue
        if parts and (gap == "\n" or (gap and SEPARATED.fullmatch(parts[-1][-1] + piece[0]))):
            parts.append(gap)
        if piece == ";":
            _join_strings(parts)
        parts.append(piece)
        gap = ""
    return "".join(parts)


def _join_strings(parts: list[str]) -> None:
    """Make one string of the strings at the end of a statement so far, if their sum, and nothing else, is assigned."""
    texts, at = list[str](), len(parts)
    while at and STRING.fullmatch(parts[at - 1]):
        texts.insert(0, parts[at - 1][1:-1])
        at = _before_lines(parts, at - 1)
        if not at or parts[at - 1] != "+":
            break
        at = _before_lines(parts, at - 1)
    if len(texts) > 1 and parts[at - 1] == "=":
        parts[at:] = [f"'{''.join(texts)}'"]


def _before_lines(parts: list[str], at: int) -> int:
    while at and parts[at - 1] == "\n":
        at -= 1
    return at


def join_lines(text: str) -> str:
    r"""Return a compact script without the ends of lines at which no statement ends.

    >>> join_lines("a={\nb:1\n}\nc()\nd();\ne();")
    'a={b:1}\nc()\nd();e();'
    """
    parts, before = list[str](), ""
    for piece, _ in pieces(text):
        if parts and parts[-1] == "\n" and (before in OPEN or piece == "}"):
            parts.pop()
        parts.append(piece)
        before = piece if piece != "\n" else before
    return "".join(parts)


def code_of(text: str) -> str:
    """Return the script with a blank for every character of comments, strings, templates and regular expressions.

    >>> code_of("a = 'b' / 2; // c")
    'a =     / 2;     '
    """
    return "".join(piece if kind == "code" else re.sub(r"[^\n]", " ", piece) for piece, kind in pieces(text))


def pieces(text: str) -> Iterator[tuple[str, Literal["code", "blank", "value"]]]:
    """Split a script into pieces, and yield each with its kind: code, blank (space, comment), or value."""
    position, value, template = 0, False, False
    braces: list[int] = []  # for every open template: the number of open braces in its ${}
    while position < len(text):
        match = TEMPLATE.match(text, position) if template else None if value else PATTERN.match(text, position)
        if match:
            value = not match[0].endswith("${")
            if template and not value:
                braces.append(0)
            template = False
            yield match[0], "value"
        else:
            match = TOKEN.match(text, position)
            assert match
            if match["sign"] == "`":
                template = True
            elif match["sign"] == "}" and braces and not braces[-1]:
                braces.pop()
                template = True
            elif match["sign"] in ("{", "}") and braces:
                braces[-1] += 1 if match["sign"] == "{" else -1
            if not match["blank"]:
                value = bool(match["string"]) or (match["word"] or "") not in {*NO_VALUE, ""} or match["sign"] in (")", "]", "}")
            yield match[0], "blank" if match["blank"] else "value" if match["string"] or template else "code"
        position = match.end()
