"""Several JavaScript modules as one classic script, which a browser also runs from a folder: there it refuses modules.

Every module becomes a function that returns its exports; it is called once, after the functions of the modules that it imports. The bundler
knows only this syntax of modules: `import { a, b as c } from './x.js';` and `export` before a function, a class or a `const` with a name,
each at the beginning of a line. Anything else is refused.
"""

import re
from graphlib import CycleError, TopologicalSorter
from posixpath import dirname, join, normpath
from typing import NamedTuple

from leakage.frontend.script_text import code_of, compact, join_lines
from leakage.frontend.scripts import Scripts
from leakage.frontend.short_names import MARK, shorten

IMPORT = re.compile(r"import \{([^}]*)\} from '(\.{1,2}/[^']+)';")
EXPORT = re.compile(r"export (?=(?:async )?function\*? (\w+)\(|class (\w+)\b|const (\w+) =)")
IMPORTED = re.compile(r"(\w+)(?: as (\w+))?")
WORD = re.compile(r"(?<![.\w$])(?:import|export|await)\b(?!\s*:)|[{}]")


class _Module(NamedTuple):
    """A parsed module; `body` is its text without imports and the word export."""

    imports: dict[str, list[tuple[str, str]]]
    """Module -> the imported names, each as a pair: the name in that module, the name in this module."""
    exports: list[str]
    body: str


def bundle(scripts: Scripts, entry: str, *, short: bool = False) -> str:
    """Bundle the module `entry` and all that it imports into one script, with short names of variables and few lines if `short`.

    Raises ValueError with file and line of unknown syntax.
    """
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
            f"{MARK}{{ {', '.join(there if there == here else f'{there}: {here}' for there, here in pairs)} }} = ${number[other]}"
            for other, pairs in modules[name].imports.items()
        ]
        imported = f"const {', '.join(imports)};\n" if imports else ""
        answer = f"return {MARK}{{ {', '.join(modules[name].exports)} }};" if modules[name].exports else "return {};"
        parts.append(f"// {name}\nconst ${number[name]} = (() => {{\n{imported}{modules[name].body.strip()}\n{answer}\n}})();\n")
    parts = shorten(parts) if short else [part.replace(f"{MARK}{{", "{") for part in parts]
    text = compact("(() => {\n'use strict';\n" + "\n".join(parts) + "})();\n")
    return join_lines(text) if short else text


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
