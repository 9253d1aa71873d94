"""The admin commands of a server: show the state of its store, clean it, repair it, export it. No pictures of uploads leave it."""

import argparse
import datetime
import logging
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from leakage.results import exports
from leakage.runs.endings import how_it_stands
from leakage.runs.notes import RECORDINGS, SERVER, SLOTS
from leakage.runs.salvage import kept_aside, remove_kept, save_if_damaged
from leakage.runs.store import Run, Store
from leakage.runs.trained_models import MB, SHARE
from leakage.settings import Settings

HOUR, DAY = 3600.0, 24 * 3600.0
NOT_DAMAGED = "{} is not damaged, or not there yet."
SERVER_TIMEOUT = 60.0  # seconds after its last sign of life during which a server counts as running
FILES = ("experiment.json", "curves.csv", "final.png")
COLUMNS = ("id", "kind", "status", "asked", "seconds", "how")
log = logging.getLogger("leakage")


def options(admin: argparse.ArgumentParser) -> None:
    """Add the actions of `admin` and their options to the command line."""
    actions = admin.add_subparsers(dest="action", required=True)
    actions.add_parser("status", help="how full the store is, what waits and runs, whether a server is here")
    actions.add_parser("repair", help="look a store through, and save what can be read of a damaged one; no server may run meanwhile")
    clean = actions.add_parser("clean", help="remove what is old, and make room where it is tight")
    clean.add_argument("--uploads", type=float, metavar="DAYS", help="runs with uploads older than this; default LEAKAGE_UPLOAD_DAYS")
    clean.add_argument("--unseen", type=float, metavar="DAYS", help="runs of owners not seen for so long; default LEAKAGE_OWNER_DAYS")
    export = actions.add_parser("export", help="write finished attacks as files, but none with uploads: settings, curves, pictures")
    export.add_argument("--out", type=Path, required=True, help="the folder to create")


def perform(given: argparse.Namespace, config: Settings) -> None:
    """Perform the action that was given on the command line.

    Raises:
        FileExistsError: the folder of an export is not empty.
        BrokenHomeError: the store is damaged and cannot be saved now, or cannot be opened.
    """
    if given.action == "repair":
        salvaged = save_if_damaged(config, seconds=HOUR)
        log.info("%s", salvaged.words(config) if salvaged else NOT_DAMAGED.format(config.store))
        return
    store = Store(config.store, max_mb=config.store_mb)
    try:
        if given.action == "status":
            for line in status(store, config):
                log.info("%s", line)
        elif given.action == "clean":
            kept = remove_kept(config, before=time.time() - days_or_default(given.uploads, config.upload_days) * DAY)
            if kept:
                log.info("%d files of damaged stores removed.", kept)
            if config.programs.is_dir():
                log.info("%d compiled steps removed; an idle machine compiles them again.", len(list(config.programs.glob("*-*.pt2"))))
                shutil.rmtree(config.programs)
            for line in clean(store, days_or_default(given.uploads, config.upload_days), days_or_default(given.unseen, config.owner_days)):
                log.info("%s", line)
        else:
            log.info("%d attacks are in %s; runs.csv lists them.", export(store, given.out), given.out)
    finally:
        store.close()


def days_or_default(given: float | None, default: float) -> float:
    """Return the given number of days, or the default if none was given."""
    return default if given is None else given


def status(store: Store, config: Settings) -> Iterator[str]:
    """Yield the state of a store as lines of text: the server, space, runs, the queue and owners."""
    runs, now = store.everything(), time.time()
    states, recorded = [run.status for run in runs], len(store.note(RECORDINGS) or {})
    used = (1 - store.housekeeping.free()) * (1 - SHARE) * config.store_mb
    waiting = [now - run.created for run in runs if run.status == "queued"]
    seen = list(store.owners().values())
    silent = now - float(store.note(SERVER) or 0)
    yield f"home      {config.home}"
    yield f"server    {'here' if silent < SERVER_TIMEOUT else 'not here'}, {store.note(SLOTS) or config.slots} slots"
    free = shutil.disk_usage(config.home).free / 2**30
    yield f"store     {used:.0f} of {(1 - SHARE) * config.store_mb:.0f} MB; {free:.1f} GB free on the disk"
    if kept := kept_aside(config):
        yield f"kept      {', '.join(path.name for path in kept)}: damaged stores, kept for {config.upload_life}"
    count, size = store.models.total()
    yield f"models    {count} trained by runs take {size / MB:.1f} of {SHARE * config.store_mb:.1f} MB, which the store keeps for them"
    yield f"runs      {len(runs)}: " + ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))
    yield f"          {recorded} of them recorded, {sum(not run.shareable for run in runs)} with uploads, " + (
        f"{sum(run.thinned is not None for run in runs)} thinned to their answer"
    )
    yield f"queue     {len(waiting)} wait, the longest for {max(waiting, default=0.0):.0f} s"
    lately = [sum(now - at < span for at in seen) for span in (3600, DAY)]
    yield f"owners    {len(seen)}; {lately[0]} here within the hour, {lately[1]} within a day"


def clean(store: Store, uploads: float, unseen: float) -> Iterator[str]:
    """Remove old runs, make room, and yield sentences on what was removed.

    Args:
        store: the store.
        uploads: the age in days from which runs with uploads are removed.
        unseen: the days without a visit after which an owner's runs are removed.
    """
    before, now = len(store.everything()), time.time()
    store.sweep(uploads_before=now - uploads * DAY, unseen_before=now - unseen * DAY)
    yield f"{before - len(store.everything())} runs removed: uploads older than {uploads:g} days, owners not seen for {unseen:g}."
    yield f"{store.housekeeping.tidy()} old runs thinned to their answers or removed, to make room."
    store.models.remove_unheld()
    store.updates.remove_unheld()


def export(store: Store, out: Path) -> int:
    """Write experiment.json, curves.csv and final.png of each finished attack without uploads, and runs.csv; return the number of attacks.

    Raises:
        FileExistsError: `out` is not empty.
    """
    if out.exists() and any(out.iterdir()):
        raise FileExistsError(f"{out} has something in it already. Give --out a folder that is new or empty.")
    out.mkdir(parents=True, exist_ok=True)
    runs = [run for run in store.everything() if run.kind == "attack" and run.status in ("done", "cancelled") and run.shareable]
    for run in runs:
        folder = out / run.id
        folder.mkdir()
        for name in FILES:
            if download := exports.make(store, run.id, name):
                (folder / name).write_bytes(download.data)
    (out / "runs.csv").write_bytes(exports.table(COLUMNS, map(_row, runs)).data)
    return len(runs)


def _row(run: Run) -> tuple[object, ...]:
    asked = datetime.datetime.fromtimestamp(run.created, datetime.UTC).isoformat(timespec="seconds")
    seconds = round((run.finished or 0) - (run.started or run.finished or 0), 1)
    return run.id, run.kind, run.status, asked, seconds, how_it_stands(replace(run, message=""))
