"""A walk over a page's source: what Streamlit gets as Markdown, and whether text from outside is in it.

Safe is what is written there; constants in capitals of our modules, and what hangs on them; numbers, by `len` and the like or by a format
such as `:,`; what is annotated `Markdown` or as a number; and what is put together of these. What is annotated `Markdown` is held to it.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal, TypeAlias

from markdown_types import Project, commands, declared, is_typed, promises

OURS = {"about", "grammar", "help", "hint", "plain", "short", "source", "story", "title"}  # fields that hold what programmers wrote
NUMERIC = re.compile(r"[+]?,?\d*(\.\d+)?[defg%]|,")  # `format` refuses a text with any of these
NUMBERS = {"len", "int", "float", "round", "sum", "abs", "bool"}
KEEPING = {"sorted", "list", "tuple", "set", "reversed", "min", "max", "next", "iter", "zip", "enumerate", "range"}  # what they are given
METHODS = {"join", "format", "items", "values", "keys", "get", "fromkeys"}  # the same
How: TypeAlias = Literal["text", "values", "function"]  # all of it is drawn, or the values of a mapping, or what a function makes
SCOPES = (ast.FunctionDef, ast.Lambda, ast.Module)
COMPREHENSIONS = (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)


def holds(target: ast.expr, name: str) -> bool:
    """Return whether a name is among the targets of an assignment."""
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(target))


def own(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes of a function or module without those of its inner functions."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, SCOPES):
            yield from own(node)


def is_declared_safe(kind: ast.expr | None, how: How) -> bool:
    """Return whether an annotation allows only Markdown and numbers."""
    return is_typed(kind, values=how == "values")


class Walk:
    """One module."""

    def __init__(self, name: str, project: Project) -> None:
        self.name, self.project, self.tree = name, project, project.trees[name]
        self.looking: set[tuple[str, How]] = set()
        self.modules: dict[str, str] = {}  # how a module of ours is called here -> its name
        self.names: dict[str, tuple[str, str]] = {}  # how something of a module is called here -> the module, and its name there
        for node in ast.walk(self.tree):
            for one in node.names if isinstance(node, ast.ImportFrom) and node.module else ():
                whole = f"{node.module}.{one.name}"
                if whole in project.trees:
                    self.modules[one.asname or one.name] = whole
                else:
                    self.names[one.asname or one.name] = node.module, one.name

    def unsafe(self) -> Iterator[str]:
        """Yield what may come from outside and is drawn as Markdown, and what this walk cannot see."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                yield from (self.say(part) for part, how in self.drawn(node) if not self.is_safe(part, how))
            elif isinstance(node, ast.FunctionDef) and promises(node.returns):
                how: How = "text" if is_typed(node.returns) else "values"
                yield from (self.say(part) for part in self.answers(node) if not self.is_safe(part, how))
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "st" and node.attr in commands():
                parent = self.project.parents[node]
                if not (isinstance(parent, ast.Call) and parent.func is node):
                    yield f"{self.say(node)} is not called where it is named"
            elif isinstance(node, ast.ImportFrom) and node.module == "streamlit" and any(one.name in commands() for one in node.names):
                yield f"{self.say(node)} hides a command"

    def say(self, node: ast.AST) -> str:
        return f"{self.name}:{getattr(node, 'lineno', 0)}: {ast.unparse(node)}"

    def answers(self, function: ast.FunctionDef) -> list[ast.expr]:
        """Return the expressions that a function returns or yields."""
        kinds = (ast.Return, ast.Yield, ast.YieldFrom)
        return [one.value for one in ast.walk(function) if isinstance(one, kinds) and one.value and self.scope(one) is function]

    # ------------------------------------------------------------ what is drawn

    def drawn(self, call: ast.Call) -> Iterator[tuple[ast.expr, How]]:
        """Yield the arguments of a call that have to be Markdown."""
        match call.func:
            case ast.Name(id="Markdown"):
                yield call.args[0], "text"
            case ast.Name(id="cast") if promises(call.args[0]):
                yield call.args[1], "text"
            case ast.Name(id="ours"):
                if not (isinstance(call.args[0], ast.Attribute) and call.args[0].attr in OURS):
                    yield call.args[0], "text"
            case ast.Attribute(attr=name, value=owner) if name in commands() and not self.is_module(owner):
                yield from self.arguments(call, *commands()[name])
        if found := self.find(call.func):
            kinds = dict(declared(found))
            order = [one.arg for one in [*found.args.posonlyargs, *found.args.args]] if isinstance(found, ast.FunctionDef) else list(kinds)
            for name, kind in kinds.items():
                if promises(kind):
                    yield from ((part, "text" if is_typed(kind) else "values") for part, _ in self.arguments(call, order, {name}))

    def arguments(self, call: ast.Call, order: Sequence[str], names: set[str]) -> Iterator[tuple[ast.expr, How]]:
        """Yield the arguments of these names, and what may contain one of them."""
        made = next((one.value for one in call.keywords if one.arg == "format_func"), None)
        given = [(order[min(place, len(order) - 1)], part) for place, part in enumerate(call.args)]
        for name, part in [*given, *((one.arg, one.value) for one in call.keywords)]:
            if name is None or (name in names and not (name == "options" and made)):
                yield part, "function" if part is made else "text"

    def is_module(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self.modules

    def find(self, name: ast.expr) -> ast.FunctionDef | ast.ClassDef | None:
        """Find the function or class of ours that is called so here."""
        match name:
            case ast.Name(id=id):
                module, there = self.names.get(id, (self.name, id))
                return self.project.find(module, there)
            case ast.Attribute(value=ast.Name(id=module), attr=there) if module in self.modules:
                return self.project.find(self.modules[module], there)
        return None

    # ------------------------------------------------------------ what is safe

    def is_safe(self, node: ast.expr | None, how: How = "text") -> bool:
        """Return whether nothing in an expression comes from outside."""
        if node is None or self.is_constant(node):
            return True
        if how == "function":
            return self.makes_safe(node)
        match node:
            case ast.Constant() | ast.Compare():
                return True
            case ast.JoinedStr(values=parts):
                return all(self.is_number(part) or self.is_safe(part.value) for part in parts if isinstance(part, ast.FormattedValue))
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.BoolOp(values=parts):
                return all(self.is_safe(part, how) for part in parts)
            case ast.Dict(keys=keys, values=values):
                merged = all(self.is_safe(value, how if key is None else "text") for key, value in zip(keys, values, strict=True))
                return merged and (how == "values" or all(self.is_safe(key) for key in keys if key))
            case ast.DictComp(key=key, value=value):
                return self.is_safe(value) and (how == "values" or self.is_safe(key))
            case ast.IfExp(body=left, orelse=right) | ast.BinOp(left=left, right=right):
                return self.is_safe(left, how) and self.is_safe(right, how)
            case ast.GeneratorExp(elt=part) | ast.ListComp(elt=part) | ast.SetComp(elt=part):
                return self.is_safe(part)
            case ast.Starred(value=part) | ast.NamedExpr(value=part) | ast.UnaryOp(operand=part):
                return self.is_safe(part, how)
            case ast.Subscript(value=part):
                return self.is_safe(part, "values")
            case ast.Attribute(attr=name):
                kinds = self.project.fields.get(name, [])
                return bool(kinds) and all(is_typed(kind, values=how == "values") and promises(kind) for kind in kinds)
            case ast.Call():
                return self.gives_safe(node, how)
            case ast.Name(id=name):
                return self.is_bound_safely(name, node, how)
        return False

    def is_number(self, part: ast.FormattedValue) -> bool:
        match part.format_spec:
            case ast.JoinedStr(values=[ast.Constant(value=str(written))]):
                return bool(NUMERIC.fullmatch(written))
        return False

    def is_constant(self, node: ast.expr) -> bool:
        """Return whether an expression belongs to a name in capitals: `WORDS`, `module.WORDS`, `WORDS[name].title`."""
        match node:
            case ast.Name(id=name):
                return name.isupper()
            case ast.Attribute(value=owner, attr=name):
                return (name.isupper() and self.is_module(owner)) or self.is_constant(owner)
            case ast.Subscript(value=owner):
                return self.is_constant(owner)
        return False

    def makes_safe(self, node: ast.expr) -> bool:
        """Return whether a function makes Markdown of any argument."""
        match node:
            case ast.Lambda(body=body):
                return self.is_safe(body)
            case ast.Attribute(value=owner, attr="__getitem__"):
                return self.is_safe(owner, "values")
        found = self.find(node)
        return isinstance(found, ast.FunctionDef) and is_typed(found.returns)

    def gives_safe(self, call: ast.Call, how: How) -> bool:
        """Return whether a call returns Markdown or a number."""
        given = [*call.args, *(one.value for one in call.keywords)]
        match call.func:
            case ast.Name(id="Markdown") | ast.Attribute(value=ast.Name(id="st"), attr="Page"):
                return True  # what it is made of is looked at where it is made
            case ast.Name(id=name) if name in NUMBERS:
                return True
            case ast.Name(id=name) if name in KEEPING:
                return all(self.is_safe(part, how) for part in given)
            case ast.Attribute(attr="values" | "get", value=owner) if self.is_safe(owner, "values"):
                return all(self.is_safe(part) for part in call.args[1:])
            case ast.Attribute(attr=name, value=owner) if name in METHODS:
                return self.is_safe(owner) and all(self.is_safe(part) for part in given)
        found = self.find(call.func)
        return isinstance(found, ast.FunctionDef) and is_typed(found.returns, values=how == "values")

    # ------------------------------------------------------------ what a name stands for

    def scope(self, node: ast.AST) -> ast.AST:
        """Return the function around a node, or the module."""
        node = self.project.parents[node]
        return node if isinstance(node, SCOPES) else self.scope(node)

    def is_bound_safely(self, name: str, where: ast.AST, how: How) -> bool:
        """Return whether all assignments of a name are safe."""
        scope: ast.AST = where
        while not isinstance(scope, ast.Module):
            scope = self.project.parents[scope]
            found = list(self.bindings(name, scope)) if isinstance(scope, (*SCOPES, *COMPREHENSIONS)) else []
            if found:
                mark = (f"{id(scope)} {name}", how)
                if mark in self.looking:  # it is put together of itself and something else
                    return True
                self.looking.add(mark)
                try:
                    return all(check(how) for check in found)
                finally:
                    self.looking.discard(mark)
        return False

    def bindings(self, name: str, scope: ast.AST) -> Iterator[Callable[[How], bool]]:
        """Yield for every assignment of a name in a scope a function that says whether it is safe."""
        if isinstance(scope, COMPREHENSIONS):
            yield from (self.element(one.target, one.iter, name) for one in scope.generators if holds(one.target, name))
            return
        if isinstance(scope, ast.FunctionDef | ast.Lambda):
            given = scope.args
            for one in [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]:
                if one.arg == name:
                    yield partial(is_declared_safe, one.annotation)
        for node in own(scope):
            match node:
                case ast.For(target=target, iter=of) if holds(target, name):
                    yield self.element(target, of, name)
                case ast.Assign(targets=[target], value=value) if holds(target, name):
                    yield self.part(target, value, name)
                case ast.AnnAssign(target=ast.Name(id=id), value=value, annotation=kind) if id == name:
                    yield partial(is_declared_safe, kind) if promises(kind) else partial(self.is_safe, value)
                case ast.AugAssign(target=ast.Name(id=id), value=value) | ast.NamedExpr(target=ast.Name(id=id), value=value) if id == name:
                    yield partial(self.is_safe, value)
                case ast.With(items=items) if any(one.optional_vars and holds(one.optional_vars, name) for one in items):
                    yield lambda how: False
                case ast.ExceptHandler(name=id) if id == name:
                    yield lambda how: False

    def part(self, target: ast.expr, value: ast.expr, name: str) -> Callable[[How], bool]:
        """That of a name in `a, b = value`."""
        match target, value:
            case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
                return next(self.part(one, part, name) for one, part in zip(names, values, strict=True) if holds(one, name))
        return partial(self.is_safe, value)

    def element(self, target: ast.expr, of: ast.expr, name: str) -> Callable[[How], bool]:
        """That of a name in `for a, b in of`."""
        match target, of:
            case ast.Tuple(elts=[_, second]), ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
                return self.element(second, inner, name) if holds(second, name) else lambda how: True
            case ast.Tuple(elts=names), ast.Call(func=ast.Name(id="zip"), args=inners) if len(names) == len(inners):
                return next(self.element(one, inner, name) for one, inner in zip(names, inners, strict=True) if holds(one, name))
            case ast.Tuple(elts=[_, second]), ast.Call(func=ast.Attribute(attr="items", value=owner), args=[]):
                return lambda how: self.is_safe(owner, "values" if holds(second, name) else "text")
        return lambda how: self.is_safe(of)
