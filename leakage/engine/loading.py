"""Plug-ins by their ids: one file of a kind's folder, one class."""

import importlib
import inspect
from pathlib import Path
from typing import Any

from leakage.spec.fields import KINDS, CatalogError

PACKAGE = Path(__file__).parent.parent


def ids(kind: str) -> list[str]:
    """The plug-ins of a kind: every file of its folder whose name begins with no underscore."""
    return [file.stem for file in sorted((PACKAGE / KINDS[kind]).glob("*.py")) if not file.stem.startswith("_")]


def load(kind: str, name: str) -> Any:
    """The class of one plug-in (imports it). Raises CatalogError when its file does not hold exactly one."""
    module = importlib.import_module(f"leakage.{KINDS[kind]}.{name}")
    base = getattr(importlib.import_module("leakage.engine.core"), kind.capitalize())
    found = [c for c in vars(module).values() if inspect.isclass(c) and issubclass(c, base) and c.__module__ == module.__name__]
    if len(found) != 1:
        raise CatalogError(f"leakage/{KINDS[kind]}/{name}.py must define exactly one {base.__name__}; found {len(found)}.")
    return found[0]
