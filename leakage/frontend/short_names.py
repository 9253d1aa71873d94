"""Short names for the variables of a script's parts.

In each part a word gets one short name wherever it names a variable; words that parts share have the same name in all. Names of properties
stay: the browser and the other side of a message know them. A word that a part uses without declaring it keeps its name everywhere, as it
means a global variable.
"""

from collections.abc import Iterator
from itertools import count, product
from typing import Literal, NamedTuple

from leakage.frontend.script_text import pieces

_RESERVED = (
    "async await break case catch class const continue default delete do else export extends false finally for function get if import in "
    "instanceof let new null of return set static super switch this throw true try typeof undefined void while yield"
)
_GLOBAL = "arguments close document event find history length location name origin parent performance print self status stop top"
KEYWORDS, GLOBALS = {*_RESERVED.split()}, {*_GLOBAL.split()}
LETTERS = "etnsoiarclumdhpfgbvywkxzjqETNSOIARCLUMDHPFGBVYWKXZJQ"  # the frequent ones first, which compress better
MARK = "$$"  # before braces in which a module exports or imports: their names are variables
BEFORE_BLOCK = {"", ")", ">", "else", "try", "finally", "do", "{", "}", ";"}
BEFORE_BINDING = {"(", ",", "{", "[", ":", "."}

Kind = Literal["block", "object", "class", "other"]


class _Group(NamedTuple):
    """What lies between two brackets."""

    kind: Kind
    binds: bool
    """Whether its words are parameters, or targets of a declaration."""


class _Word(NamedTuple):
    """A word that names a variable; `key` where it also names a property, as in `{ word }`."""

    place: int
    key: bool
    declared: bool
    shared: bool
    """Whether it stands where a module exports or imports."""


def shorten(parts: list[str]) -> list[str]:
    """Return the parts with short names.

    >>> shorten(["const sum = (first, other) => first.size + other; return $${ sum };", "const $${ sum } = x; f({ sum });"])
    ['const ee = (e, t) => e.size + t; return { ee };', 'const { ee } = x; f({ sum: ee });']
    """
    texts = [[text for text, _ in pieces(part)] for part in parts]
    found = [list(_words(part)) for part in parts]
    kept = {*GLOBALS, *KEYWORDS}
    for text, words in zip(texts, found, strict=True):
        kept |= {text[word.place] for word in words} - {text[word.place] for word in words if word.declared}
    shared = {text[word.place] for text, words in zip(texts, found, strict=True) for word in words if word.shared}
    common = _shortest([text[word.place] for text, words in zip(texts, found, strict=True) for word in words], shared - kept, kept, 2)
    for text, words in zip(texts, found, strict=True):
        used = [text[word.place] for word in words]
        short = common | _shortest(used, {*used} - kept - shared, kept | {*common.values()}, 1)
        for word in words:
            name = text[word.place]
            text[word.place] = f"{name}: {short[name]}" if word.key and short.get(name, name) != name else short.get(name, name)
    return ["".join(piece for piece in text if piece != MARK) for text in texts]


def _shortest(used: list[str], wanted: set[str], taken: set[str], least: int) -> dict[str, str]:
    """Return a name that is not taken for each wanted word: the more often it is used, the shorter."""
    names = (name for length in count(least) for name in map("".join, product(LETTERS, repeat=length)) if name not in taken)
    frequent = sorted(dict.fromkeys(used), key=used.count, reverse=True)
    return {word: next(names) for word in frequent if word in wanted}


def _words(part: str) -> Iterator[_Word]:
    """Find the words that name variables, with the number of their piece."""
    tokens = [(place, text, kind) for place, (text, kind) in enumerate(pieces(part)) if kind != "blank"]
    texts = ["", "", *(text if kind == "code" or text.endswith("${") or text == "}" else "'" for _, text, kind in tokens), "", ""]
    closing = _closing(texts)
    groups = [_Group("block", binds=False)]
    marked = False
    for at, (place, word, kind) in enumerate(tokens, start=2):
        text, before, after = texts[at], texts[at - 1], texts[at + 1]
        if text in ("(", "[", "{") or text.endswith("${"):
            groups.append(_group(texts, at, closing, groups))
            marked = before == MARK  # such braces hold no others
        elif text in (")", "]", "}"):
            groups.pop()
            marked = False
        elif kind == "code" and (word[0].isalpha() or word[0] == "_") and word not in KEYWORDS:
            group = groups[-1]
            if before == "." and texts[at - 2] != ".":
                continue  # a property
            first = group.kind == "object" and before in ("{", ",")
            if (first and after in (":", "(") and not marked) or (group.kind == "class" and after in ("(", "=")):
                continue  # the name of a property or of a method
            if group.kind == "object" and before in ("async", "get", "*") and after == "(":
                continue
            named = before in ("const", "let", "class", "function") or (before == "*" and texts[at - 2] == "function")
            declared = named or (group.binds and before in BEFORE_BINDING)
            yield _Word(place, first and after in (",", "}", "=") and not marked, declared, marked)


def _group(texts: list[str], at: int, closing: dict[int, int], groups: list[_Group]) -> _Group:
    """Tell what the bracket at a place opens."""
    before, behind = texts[at - 1], texts[closing[at] + 1 : closing[at] + 3]
    inside = groups[-1].binds and before in BEFORE_BINDING
    if texts[at] == "(":
        method = groups[-1].kind in ("class", "object") and texts[closing[at] + 1] == "{"
        return _Group(
            "other", binds=behind == ["=", ">"] or before in ("function", "catch") or texts[at - 2] in ("function", "*") or method
        )
    if texts[at] != "{":
        return _Group("other", binds=before in ("const", "let") or inside)
    if texts[at - 2] in ("class", "extends"):
        return _Group("class", binds=False)
    if (before in BEFORE_BLOCK and not inside) or (before == ":" and _in_case(texts, at)):
        return _Group("block", binds=False)
    return _Group("object", binds=before in ("const", "let") or (before == MARK and behind[0] == "=") or inside)


def _in_case(texts: list[str], at: int) -> bool:
    """Tell whether a colon before a place belongs to a case of a switch."""
    while texts[at - 1] not in (";", "{", "}", ""):
        at -= 1
    return texts[at] in ("case", "default")


def _closing(texts: list[str]) -> dict[int, int]:
    """Return the place of the closing bracket for that of each opening one."""
    closing, opened = dict[int, int](), list[int]()
    for at, text in enumerate(texts):
        if text in ("(", "[", "{") or text.endswith("${"):
            opened.append(at)
        elif text in (")", "]", "}"):
            closing[opened.pop()] = at
    return closing
