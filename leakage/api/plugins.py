"""Attacks, defenses, protocols, servers and checks by id, with their default fields or with fields of the caller."""

from typing import Any

from leakage.engine.core import Attack, Check, Defense, Plugin, Protocol, Server
from leakage.engine.loading import ids, load
from leakage.engine.plugin import described
from leakage.spec.aliases import fields_today, plugin_today

BASES = {"attack": Attack, "defense": Defense, "protocol": Protocol, "server": Server, "check": Check}


def plugin(name: str, **fields: float | bool | str) -> Any:
    """Return a plug-in with fields that you set, for `attack`, `defenses`, `protocol`, `aggregation`, `server` or `checks`.

    Args:
        name: its id, as docs/plugins.md lists it.
        fields: its fields by name; the others keep their defaults. docs/plugins.md says what each may be.

    Returns:
        The plug-in, a frozen value that prints its fields. Its id decides its class: Attack, Defense, Protocol, Server or Check.

    Raises:
        TypeError, ValueError: for a name or a field that does not exist, listing those that do, and for a value that is not allowed.

    Example:
        >>> import torch, leakage
        >>> model, y = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 5)), torch.tensor([2])
        >>> search, local = leakage.plugin("inverting_gradients", steps=20), leakage.plugin("fedavg", epochs=2, rate=0.01)
        >>> leakage.attack(model, torch.rand(1, 3, 4, 4), y, attack=search, protocol=local).reconstruction.shape  # (B, C, H, W)
        torch.Size([1, 3, 4, 4])
    """
    name = plugin_today(name)
    kinds = [kind for kind in BASES if name in ids(kind)]
    if not kinds and name in ids("model"):
        made = load("model", name)
        how = f"from {made.__module__} import {made.__name__}; {made.__name__}().build((1, 28, 28), 10)"
        raise ValueError(f"{name!r} is a model. leakage.attack takes a model as a torch module, which you build: {how}")
    if not kinds:
        known = "; ".join(f"{kind}: {', '.join(ids(kind))}" for kind in BASES)
        raise ValueError(f"There is no plug-in {name!r}. There are {known}.")
    cls, fields = load(kinds[0], name), fields_today(name, fields)
    names = [field.name for field in described(cls)]
    strange = [field for field in fields if field not in names]
    if strange:
        raise TypeError(f"{name} has no field {strange[0]!r}. Its fields are {', '.join(names) or 'none'}.")
    return cls(**fields)


def chosen(kind: str, given: object) -> Any:
    """Return the plug-in with this id, or the plug-in itself. Raises TypeError, or ValueError with a list of the ids."""
    if isinstance(given, BASES[kind]):
        return given
    if not isinstance(given, str):
        what = given.__name__ if isinstance(given, type) else type(given).__name__
        hint = f" Call it: {what}()." if isinstance(given, type) and issubclass(given, Plugin) else ""
        raise TypeError(f"{kind} must be an id or a value of a {kind}; got {what}.{hint}")
    if plugin_today(given) not in ids(kind):
        raise ValueError(f"There is no {kind} {given!r}; expected is one of {', '.join(ids(kind))}.")
    return load(kind, given)()
