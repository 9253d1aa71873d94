"""The names and pins that owners give to runs; each owner of a shared run has separate labels."""

import math
import time
from collections.abc import Iterable
from dataclasses import replace

from leakage.runs.store import Label, Run, Store

LONGEST = 60  # letters of a name


def printable(name: str) -> str:
    """Return the printable letters of a name, at most LONGEST of them."""
    return " ".join("".join(letter for letter in name if letter.isprintable()).split())[:LONGEST].rstrip()


class Labels:
    """The names and pins of a store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def of(self, owner: str) -> dict[str, Label]:
        """Return the labels that this owner gave, by run."""
        return self.store.labels(owner)

    def rename(self, run: str, owner: str, name: str) -> None:
        """Set this owner's name for a run; with an empty name, pages show the run's title."""
        self.store.put_label(run, owner, replace(self.of(owner).get(run, Label()), name=printable(name)))

    def pin(self, run: str, owner: str) -> None:
        """Pin a run of this owner, after the runs that are pinned already; if the run is pinned, unpin it."""
        label = self.of(owner).get(run, Label())
        self.store.put_label(run, owner, replace(label, pinned=time.time() if label.pinned is None else None))

    def in_order(self, owner: str, runs: Iterable[Run]) -> list[Run]:
        """Sort runs: first the owner's pinned runs, in the order of pinning, then the other runs, in the given order."""
        since = {run: label.pinned for run, label in self.of(owner).items() if label.pinned is not None}
        return sorted(runs, key=lambda run: since.get(run.id, math.inf))
