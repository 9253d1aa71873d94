"""Plug-ins by their ids: a folder for each kind, a file for each plug-in, one class in each file."""

import importlib
import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

from leakage.spec.aliases import plugin_today
from leakage.spec.declarations import Declarations, explanations
from leakage.spec.fields import KINDS, CatalogError

PACKAGE = Path(__file__).parent.parent
REQUIRED = [name for name in inspect.get_annotations(Declarations) if not hasattr(Declarations, name)]


def ids(kind: str) -> list[str]:
    """Return the ids of a kind's plug-ins: the names of the files in its folder that begin with no underscore."""
    return [file.stem for file in sorted((PACKAGE / KINDS[kind]).glob("*.py")) if not file.stem.startswith("_")]


def load(kind: str, name: str) -> Any:
    """Import a plug-in and return its class.

    Args:
        kind: its kind: attack, defense, protocol or model.
        name: its id, or an earlier id of it.

    Raises:
        CatalogError: if its file does not define exactly one class of that kind, or if this class is incomplete.
    """
    name = plugin_today(name)
    module = importlib.import_module(f"leakage.{KINDS[kind]}.{name}")
    base = getattr(importlib.import_module("leakage.engine.core"), kind.capitalize())
    classes = [c for c in vars(module).values() if inspect.isclass(c) and issubclass(c, base) and c.__module__ == module.__name__]
    file = f"leakage/{KINDS[kind]}/{name}.py"
    if len(classes) != 1:
        raise CatalogError(f"{file} must define exactly one {base.__name__}; found {len(classes)}.")
    if lack := lack_of(classes[0]):
        raise CatalogError(f"{file} is incomplete: {lack}")
    return classes[0]


def lack_of(plugin: type) -> str:
    """Return in a sentence what the class of a plug-in lacks, and how to add it; "" if nothing is missing."""
    if "__dataclass_params__" not in vars(plugin):
        return f"the class {plugin.__name__} is no dataclass. Write @dataclass(frozen=True, kw_only=True) above it."
    for entry in fields(plugin):
        if "help" not in entry.metadata:
            example = f'{entry.name}: int = param(10, 1, 100, "What it is.")'
            return f"the field {entry.name} has no help text. Declare it with param, choice, flag or text, such as {example}"
    for name in REQUIRED:
        if not isinstance(getattr(plugin, name, None), str):
            meaning = explanations(Declarations)[name]
            return f'the class {plugin.__name__} has no {name}. Add a line {name} = "..." to it. Its meaning: {meaning}'
    return ""
