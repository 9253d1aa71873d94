"""The file of an audit, audit.toml: which model, which pictures, which client, and how long."""

import importlib
import json
import os
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from leakage.api.plugins import plugin
from leakage.auditing.audit_arguments import PLAIN, AuditArguments

PLUGINS = ("protocol", "aggregation", "server")  # each is an id, or a table with id and fields
LISTS = ("defenses", "checks", "attacks")
NAMES = ("model", "data", "loss", "normalization", *PLUGINS, *LISTS, *PLAIN)
LARGEST = 2**26  # bytes: a record has the curves of all searches


def read_config(path: Path) -> dict[str, Any]:
    """Return the settings in an audit file: TOML, or the JSON file of an earlier audit, which repeats that audit.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is no such file; the message says what is wrong.
    """
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path} has over {LARGEST // 2**20} MB; expected is a file of settings.")
    text = path.read_text()
    try:
        settings = json.loads(text)["settings"] if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is no audit file ({error}). Expected is TOML, or the audit.json of an earlier audit.") from None
    if not isinstance(settings, dict):
        raise ValueError(f"{path} is no audit file: its settings are no table.")
    unknown = [name for name in settings if name not in NAMES]
    if unknown:
        raise ValueError(f"{path}: there is no setting {unknown[0]!r}. The settings are {', '.join(NAMES)}.")
    missing = [name for name in ("model", "data") if not isinstance(settings.get(name), str)]
    if missing:
        raise ValueError(f'{path}: {missing[0]} is missing, or no text. Name it as model = "package.module:function", data = "a folder".')
    return settings


def arguments_of(settings: Mapping[str, Any], folder: Path, **more: Any) -> AuditArguments:
    """Return the arguments of an audit. The functions that the settings name are imported and called: they are the owner's code.

    Args:
        settings: as `read_config` returns them.
        folder: the folder from which the path of a folder of pictures begins, and in which modules are looked for.
        more: further arguments of the audit.

    Raises:
        TypeError, ValueError: a setting has a value that is not allowed, or a function cannot be found.
    """
    given = {name: settings[name] for name in (*PLAIN, "normalization") if name in settings}
    given |= {name: _plugin(name, settings[name]) for name in PLUGINS if name in settings}
    given |= {name: [_plugin(name, each) for each in _listed(name, settings[name])] for name in LISTS if name in settings}
    if "image_shape" in given:
        given["image_shape"] = tuple(given["image_shape"])
    if "loss" in settings:
        given["loss"] = import_function(settings["loss"], folder)
    data = settings["data"]
    found = import_function(data, folder)() if ":" in data and not (folder / data).exists() else folder / data
    return AuditArguments(import_function(settings["model"], folder)(), found, **given, **more)


def named_settings(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings that name something outside the file: model, data, loss."""
    return {name: settings[name] for name in ("model", "data", "loss") if name in settings}


def _plugin(kind: str, given: Any) -> Any:
    """Return a plug-in from its id, or from a table of its id and fields. Raises TypeError, ValueError."""
    if isinstance(given, str):
        return plugin(given)
    if isinstance(given, dict) and isinstance(given.get("id"), str):
        return plugin(given["id"], **{name: value for name, value in given.items() if name != "id"})
    raise ValueError(f'{kind} must be the id of a plug-in, or a table as {{ id = "fedavg", epochs = 2 }}; got {given!r}.')


def _listed(name: str, given: Any) -> list[Any]:
    if not isinstance(given, list):
        raise ValueError(f"{name} must be a list; got {given!r}. Write [{given!r}].")
    return given


def import_function(name: str, folder: Path) -> Callable[..., Any]:
    """Import `package.module:function`, from the folder of the audit file or from what is installed. Raises ValueError."""
    module, _, function = name.partition(":") if isinstance(name, str) else ("", "", "")
    if not module or not function:
        raise ValueError(f"{name!r} names no function. Expected is package.module:function, for example model.py's make as model:make.")
    place = os.fspath(folder.resolve())
    if place not in sys.path:
        sys.path.insert(0, place)
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"{name} cannot be imported ({error}). Expected is package.module:function, in this folder or installed."
        ) from None
    if not callable(found):
        raise ValueError(f"{name} is no function; expected is one that returns what the audit needs when it is called.")
    return found  # type: ignore[no-any-return]
