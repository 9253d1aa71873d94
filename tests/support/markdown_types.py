"""What Streamlit draws as Markdown, by its documentation, and what our type annotations promise."""

import ast
import inspect
import re
from dataclasses import dataclass, field
from functools import cache

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

UNSAID = ("captions", "help")  # parameters that are Markdown wherever they are, said or not
PLAIN = {"Markdown", "int", "float", "bool", "None"}
MAPPINGS = {"dict", "Mapping"}
HOLDERS = {"list", "tuple", "Sequence", "Iterator", "Iterable", "Collection", "set", *MAPPINGS}


@cache
def commands() -> dict[str, tuple[list[str], set[str]]]:
    """Return for each Streamlit command that draws Markdown all parameters, in order, and those that draw it by its documentation."""
    found = {}
    for home in (DeltaGenerator, st, st.column_config):
        for name in dir(home):
            command = None if name.startswith("_") or name in ("query_params", "session_state") else getattr(home, name)
            text = inspect.getdoc(command) if callable(command) else None
            if text and "arkdown" in text:
                sections = re.split(r"^\*{0,2}(\w+) : ", text.partition("\nReturns\n")[0], flags=re.MULTILINE)
                drawn = {one for one, said in zip(sections[1::2], sections[2::2], strict=True) if "arkdown" in said.partition("\n\n\n")[0]}
                order = [one for one in inspect.signature(command).parameters if one != "self"]
                if drawn:
                    found[name] = order, drawn | ({*UNSAID} & {*order}) | ({"format_func"} & {*order} if "options" in drawn else set())
    return found


@dataclass
class Project:
    """All modules by their names, as syntax trees, and what their classes declare."""

    trees: dict[str, ast.Module]
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    fields: dict[str, list[ast.expr]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for tree in self.trees.values():
            for node in ast.walk(tree):
                self.parents.update(dict.fromkeys(ast.iter_child_nodes(node), node))
                if isinstance(node, ast.ClassDef):
                    for name, kind in declared(node):
                        self.fields.setdefault(name, []).append(kind)

    def find(self, module: str, name: str) -> ast.FunctionDef | ast.ClassDef | None:
        """Find a function or class of a module."""
        body = self.trees[module].body if module in self.trees else []
        return next((one for one in body if isinstance(one, ast.FunctionDef | ast.ClassDef) and one.name == name), None)


def declared(of: ast.FunctionDef | ast.ClassDef) -> list[tuple[str, ast.expr]]:
    """Return the annotated parameters of a function, or the fields of a class."""
    if isinstance(of, ast.FunctionDef):
        given = [*of.args.posonlyargs, *of.args.args, *of.args.kwonlyargs]
        return [(one.arg, one.annotation) for one in given if one.annotation]
    return [(one.target.id, one.annotation) for one in of.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)]


def is_typed(kind: ast.expr | None, *, values: bool = False) -> bool:
    """Return whether an annotation allows only Markdown and numbers; with `values` those of a mapping with any keys."""
    match kind:
        case ast.Constant(value=value):
            return value is None or value is ...
        case ast.Name(id=name):
            return name in PLAIN
        case ast.BinOp(left=left, right=right):
            return is_typed(left, values=values) and is_typed(right, values=values)
        case ast.Subscript(value=ast.Name(id="Literal")):
            return True
        case ast.Subscript(value=ast.Name(id=name), slice=inner) if name in HOLDERS:
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return all(is_typed(part) for part in (parts[1:] if values and name in MAPPINGS else parts))
    return False


def promises(kind: ast.expr | None) -> bool:
    """Return whether an annotation names Markdown."""
    return kind is not None and any(isinstance(one, ast.Name) and one.id == "Markdown" for one in ast.walk(kind))
