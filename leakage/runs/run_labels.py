"""What owners call their runs, and which they have pinned: theirs alone, also where others hold the same run."""

import math
import time
from collections.abc import Iterable
from dataclasses import replace

from leakage.runs.store import Label, Run, Store

LONGEST = 60  # letters of a name


def printable(name: str) -> str:
    """The name as it may be kept and shown: what can be printed of it, and LONGEST letters at most."""
    return " ".join("".join(letter for letter in name if letter.isprintable()).split())[:LONGEST].rstrip()


class Labels:
    """The names and pins of a store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def of(self, owner: str) -> dict[str, Label]:
        """Those that this owner gave, by run."""
        return self.store.labels(owner)

    def rename(self, run: str, owner: str, name: str) -> None:
        """Call a run of this owner otherwise; by nothing: by its title."""
        self.store.put_label(run, owner, replace(self.of(owner).get(run, Label()), name=printable(name)))

    def pin(self, run: str, owner: str) -> None:
        """Pin a run of this owner behind those that are pinned; one that is pinned is so no more."""
        label = self.of(owner).get(run, Label())
        self.store.put_label(run, owner, replace(label, pinned=time.time() if label.pinned is None else None))

    def in_order(self, owner: str, runs: Iterable[Run]) -> list[Run]:
        """The pinned ones first, as they were pinned one after the other; the others as they come."""
        since = {run: label.pinned for run, label in self.of(owner).items() if label.pinned is not None}
        return sorted(runs, key=lambda run: since.get(run.id, math.inf))
