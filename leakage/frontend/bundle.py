"""Several JavaScript modules as one classic script, which a browser also runs from a folder: there it refuses modules.

Every module becomes a function that returns its exports; it is called once, after the functions of the modules that it imports. The bundler
knows only this syntax of modules: `import { a, b as c } from './x.js';` and `export` before a function, a class or a `const` with a name,
each at the beginning of a line. Anything else is refused.
"""

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from posixpath import dirname, join, normpath
from typing import Literal, NamedTuple

from leakage.frontend.scripts import Scripts

IMPORT = re.compile(r"import \{([^}]*)\} from '(\.{1,2}/[^']+)';")
EXPORT = re.compile(r"export (?=(?:async )?function\*? (\w+)\(|class (\w+)\b|const (\w+) =)")
SEPARATED = re.compile(r"[\w$]{2}|\+\+|--|//")  # the ends of two tokens that mean something else without a space between
IMPORTED = re.compile(r"(\w+)(?: as (\w+))?")
WORD = re.compile(r"(?<![.\w$])(?:import|export|await)\b(?!\s*:)|[{}]")

# The tokens of a script. A slash after a value is a division; otherwise it begins a regular expression.
TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)|(?P<string>'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")|(?P<word>[\w$]+)|(?P<sign>.)""", re.DOTALL
)
PATTERN = re.compile(r"/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*")
TEMPLATE = re.compile(r"(?:\\.|\$(?!\{)|[^`\\$])*(?:`|\$\{)", re.DOTALL)
NO_VALUE = {"return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "do", "else", "await", "yield", "instanceof"}


class _Module(NamedTuple):
    """A parsed module; `body` is its text without imports and the word export."""

    imports: dict[str, list[tuple[str, str]]]
    """Module -> the imported names, each as a pair: the name in that module, the name in this module."""
    exports: list[str]
    body: str


def bundle(scripts: Scripts, entry: str) -> str:
    """Bundle the module `entry` and all that it imports into one script. Raises ValueError with file and line of unknown syntax."""
    modules = {name: _taken_apart(name, scripts.files[name].decode()) for name in scripts.closure(entry)}
    try:
        order = [*TopologicalSorter({name: module.imports for name, module in modules.items()}).static_order()]
    except CycleError as error:
        raise ValueError(f"{' imports '.join(error.args[1])}: modules that import each other cannot be bundled.") from None
    number = {name: index for index, name in enumerate(order)}
    parts = []
    for name in order:
        for other, pairs in modules[name].imports.items():
            if missing := [there for there, _ in pairs if there not in modules[other].exports]:
                raise ValueError(f"{name}: {other} exports no {', '.join(missing)}.")
        imports = [
            f"const {{ {', '.join(there if there == here else f'{there}: {here}' for there, here in pairs)} }} = $${number[other]};\n"
            for other, pairs in modules[name].imports.items()
        ]
        answer = f"return {{ {', '.join(modules[name].exports)} }};" if modules[name].exports else "return {};"
        parts.append(f"// {name}\nconst $${number[name]} = (() => {{\n{''.join(imports)}{modules[name].body.strip()}\n{answer}\n}})();\n")
    return compact("(() => {\n'use strict';\n" + "\n".join(parts) + "})();\n")


def _taken_apart(name: str, text: str) -> _Module:
    code, imports, exports, cuts = code_of(text), dict[str, list[tuple[str, str]]](), list[str](), list[tuple[int, int]]()
    depth, end = 0, 0
    for word in WORD.finditer(code):
        at = word.start()
        if at < end:  # the braces of an import
            continue
        if word[0] in "{}":
            depth += 1 if word[0] == "{" else -1
            continue
        first = not depth and (not at or text[at - 1] == "\n")
        statement = first and word[0] == "import" and IMPORT.match(text, at)
        exported = first and word[0] == "export" and EXPORT.match(text, at)
        if statement:
            pairs = [IMPORTED.fullmatch(part.strip()) for part in statement[1].split(",") if part.strip()]
            if not all(pairs):
                raise ValueError(_refusal(name, text, at))
            other = normpath(join(dirname(name), statement[2]))
            imports.setdefault(other, []).extend((pair[1], pair[2] or pair[1]) for pair in pairs if pair)
            end = statement.end()
            cuts.append((at, end))
        elif exported:
            exports.append(exported[1] or exported[2] or exported[3])
            cuts.append((at, exported.end()))
        elif word[0] != "await" or not depth:
            raise ValueError(_refusal(name, text, at))
    starts, ends = [0, *(stop for _, stop in cuts)], [*(start for start, _ in cuts), len(text)]
    return _Module(imports, exports, "".join(text[start:stop] for start, stop in zip(starts, ends, strict=True)))


def _refusal(name: str, text: str, at: int) -> str:
    line = text.count("\n", 0, at)
    return f"{name}, line {line + 1}: the bundler does not understand {text.splitlines()[line].strip()!r}; see leakage/frontend/bundle.py."


def compact(text: str) -> str:
    r"""Return the script without comments, indentation and spaces that separate nothing; its lines end where they ended.

    >>> compact("a = 1; // one\n\n  /* two */ b = ' // ' + typeof a; ")
    "a=1;\nb=' // '+typeof a;"
    """
    parts, gap = list[str](), ""
    for piece, kind in _pieces(text):
        if kind == "blank":
            gap = "\n" if gap == "\n" or "\n" in piece or piece.startswith("//") else " "
            continue
        if gap == "\n" or (gap and parts and SEPARATED.fullmatch(parts[-1][-1] + piece[0])):
            parts.append(gap)
        parts.append(piece)
        gap = ""
    return "".join(parts)


def code_of(text: str) -> str:
    """Return the script with a blank for every character of comments, strings, templates and regular expressions.

    >>> code_of("a = 'b' / 2; // c")
    'a =     / 2;     '
    """
    return "".join(piece if kind == "code" else re.sub(r"[^\n]", " ", piece) for piece, kind in _pieces(text))


def _pieces(text: str) -> Iterator[tuple[str, Literal["code", "blank", "value"]]]:
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
