"""A store of 64 MB under 500 runs of a batch of 8, one after the other: whether each finds room, and which data stays."""

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from crowds import row

from leakage.data.images import sheet
from leakage.learn.restored import restore_all
from leakage.runs.connections import StoreError
from leakage.runs.events import FrameEvent
from leakage.runs.notes import RECORDINGS
from leakage.runs.store import Store

MAX_MB, FRAMES = 64, 240


def measure(runs: int) -> dict[str, Any]:
    """Run so many runs, one after the other, beside one that goes on all the time; count those without room."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store.db", max_mb=MAX_MB)
        restore_all(store)
        recorded, pictures = list(store.note(RECORDINGS)), contact_sheets()
        store.add(replace(row("running"), status="queued", finished=None), {})
        store.claim("0:1")
        began, refused, harmed = time.monotonic(), 0, 0
        for number in range(runs):
            try:
                play(store, f"run-{number}", pictures)
                store.add_frame("running", FrameEvent(step=number + 1, seconds=1.0, loss=1.0), next(pictures))
            except StoreError:
                refused += 1
            store.housekeeping.tidy()  # as the dispatcher does every few seconds
        names = [f"run-{number}" for number in range(runs)]
        gone = [name for name in names if store.get(name) is None]
        harmed = sum(store.get(name) is None or not any(event.get("picture") for event in store.events([name], 0)) for name in recorded)
        went_on = store.get("running")
        found = {
            "runs": runs,
            "refused": refused,
            "whole": sum((one := store.get(name)) is not None and one.thinned is None for name in names),
            "thinned": sum((one := store.get(name)) is not None and one.thinned is not None for name in names),
            "gone": len(gone),
            "gone_without_a_word": sum(store.removed(name) is None for name in gone),
            "recorded_harmed": harmed,
            "running_harmed": went_on is None or went_on.status != "running",
            "file_mb": (Path(folder) / "store.db").stat().st_size / 2**20,
            "ms_for_a_run": 1000 * (time.monotonic() - began) / runs,
        }
        store.close()
        return found


def play(store: Store, name: str, pictures: Iterator[bytes]) -> None:
    """Write a run as a worker writes it."""
    store.add(replace(row(name), status="queued", finished=None), {})
    store.claim_also([name], 1, "1:1")
    for step in range(1, FRAMES + 1):
        seq = store.add_frame(name, FrameEvent(step=step, seconds=step / 10, loss=1.0 / step), next(pictures))
    store.finish(name, "done")
    assert seq


def contact_sheets() -> Iterator[bytes]:
    """Yield over and over a few sheets of eight pictures of 32 x 32 that are as large as sheets of noise, which hardly compresses."""
    generator = np.random.default_rng(0)
    made = [sheet(generator.integers(0, 256, (8, 32, 32, 3), dtype=np.uint8)) for _ in range(8)]
    while True:
        yield from made
