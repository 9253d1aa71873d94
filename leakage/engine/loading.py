"""Plug-ins by their ids: a folder for each kind, a file for each plug-in, one class in each file."""

import importlib
import inspect
from pathlib import Path
from typing import Any

from leakage.spec.aliases import plugin_today
from leakage.spec.fields import KINDS, CatalogError

PACKAGE = Path(__file__).parent.parent


def ids(kind: str) -> list[str]:
    """Return the ids of a kind's plug-ins: the names of the files in its folder that begin with no underscore."""
    return [file.stem for file in sorted((PACKAGE / KINDS[kind]).glob("*.py")) if not file.stem.startswith("_")]


def load(kind: str, name: str) -> Any:
    """Import a plug-in and return its class.

    Args:
        kind: its kind: attack, defense, protocol or model.
        name: its id, or an earlier id of it.

    Raises:
        CatalogError: if its file does not define exactly one class of that kind.
    """
    name = plugin_today(name)
    module = importlib.import_module(f"leakage.{KINDS[kind]}.{name}")
    base = getattr(importlib.import_module("leakage.engine.core"), kind.capitalize())
    classes = [c for c in vars(module).values() if inspect.isclass(c) and issubclass(c, base) and c.__module__ == module.__name__]
    if len(classes) != 1:
        raise CatalogError(f"leakage/{KINDS[kind]}/{name}.py must define exactly one {base.__name__}; found {len(classes)}.")
    return classes[0]
