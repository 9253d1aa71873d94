"""The plug-ins of a kind in the order in which a menu lists them."""

from leakage.spec import words
from leakage.spec.catalog import Catalog, Entry


def menu_entries(known: Catalog, kind: str) -> list[Entry]:
    """List the plug-ins of a kind, sorted by group and title. Aggregations are left out: they have another menu."""
    groups, aggregations = words.GROUPS[kind], known.aggregations

    def index(entry: Entry) -> tuple[int, str]:
        return next((number for number, group in enumerate(groups) if entry.title.startswith(group)), len(groups)), entry.title

    return sorted((entry for entry in known.of(kind) if entry not in aggregations), key=index)
