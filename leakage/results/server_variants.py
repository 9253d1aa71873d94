"""The variants of a comparison by their server: cheating servers, each with the attack that reads it, beside an honest server."""

from collections.abc import Sequence
from typing import Any

from leakage.results.comparison import scenario
from leakage.results.defense_keys import key_of
from leakage.results.differences import part_words, sentence_case
from leakage.results.variant import Variant
from leakage.spec.catalog import AttackEntry, Catalog
from leakage.spec.experiment import Experiment, Part
from leakage.spec.lab_settings import NONE
from leakage.spec.plugin_menu import menu_entries
from leakage.spec.prepared import prepared


def server_key(server: Part | None, known: Catalog) -> str:
    """Return a server as a short text for menus and addresses, such as "imprint:bins=64"; "none" for an honest server."""
    return key_of((server,), known, "server") if server else NONE


def offered(known: Catalog) -> list[str]:
    """List the servers that menus offer, as texts of `server_key`: each with its default fields, then with its presets."""
    return list(
        dict.fromkeys(
            server_key(Part(id=entry.id, fields=fields), known)
            for entry in menu_entries(known, "server")
            for fields in ({}, *entry.presets.values())
        )
    )


def server_words(server: Part, known: Catalog) -> str:
    """Return the short title of a server with the fields in which it differs from its defaults, such as "Imprint, bins 64"."""
    return sentence_case(part_words("server", server, [Part(id=server.id)], known, short=True))


def cheating(server: Part, attack: Part, known: Catalog) -> dict[str, Any]:
    """Return the change of an experiment for a cheating server: the server, and the attack that reads what it has built in.

    Args:
        server: the server.
        attack: the attack of the experiment; it stays if it is that attack, or if no attack reads this server.
        known: the plug-ins.
    """
    reading = known.servers.get(server.id).reading
    return {"server": server, "attack": Part(id=reading[0]) if reading and reading[0] != attack.id else attack}


def honest(attack: Part, known: Catalog) -> dict[str, Any]:
    """Return the change of an experiment for an honest server: no server, and an attack that needs none.

    Args:
        attack: the attack of the experiment; it stays unless it needs a server that changes the model.
        known: the plug-ins.
    """
    entry = known.attacks.find(attack.id)
    return {"server": None, "attack": prepared().compare.experiment.attack if entry and needs_cheating(entry) else attack}


def needs_cheating(entry: AttackEntry) -> bool:
    """Return whether an attack reads only what a server has built into the model."""
    return "honest" not in entry.fits.get("server", ("honest",))


def each_with_honest(variants: Sequence[Variant], base: Experiment, known: Catalog, *, attacks_differ: bool) -> list[Variant]:
    """Return the variants of an experiment with a cheating server, each followed by the same variant with an honest server.

    Args:
        variants: the variants.
        base: the experiment that they change.
        known: the plug-ins.
        attacks_differ: whether the variants differ in their attack; an attack that needs a cheating server then has no honest variant.
    """
    pairs = []
    for variant in variants:
        pairs.append(variant)
        attack = variant.change.get("attack", base.attack)
        changed = honest(attack, known)
        if not attacks_differ or changed["attack"] == attack:
            pairs.append(Variant(f"{variant.title}, honest server", variant.change | changed))
    return pairs


def differ_in_server(experiments: Sequence[Experiment], known: Catalog) -> bool:
    """Return whether nothing but the server differs between experiments, with the attack that reads it.

    There must be several servers, and each cheating server must be attacked as `cheating` says. Attackers and seeds may differ.
    """
    if len({server_key(each.server, known) for each in experiments}) < 2:
        return False
    alike = {scenario(each).model_copy(update={"server": None}).digest() for each in experiments}
    read = all(each.attack == cheating(each.server, each.attack, known)["attack"] for each in experiments if each.server)
    return len(alike) == 1 and read
