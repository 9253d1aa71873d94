"""Kills with -9, at random moments, of a worker, the dispatcher or the web server, while old and new runs go on.

At the end no run may be lost (each that was submitted is there, and has ended), doubled (it began once, and ended once) or stuck, and
SQLite must find nothing wrong. The benchmark starts a killed web server again, as a service manager would; all else comes by itself.

    .venv/bin/python benchmarks/load/kills.py --kills 100 --seed 0
"""

import argparse
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _site import VICTIMS, Site, until
from _table import Fields, save, say, table

from leakage.runs.store import OPEN, Store
from leakage.spec.experiment import Experiment, Part, SpecError
from leakage.workers.dispatcher import LOST, SILENCE

PAUSE = (0.2, 3.0)  # seconds between two kills
AT_WORK = 0.8  # how often it is waited until a run goes on; else workers may still be starting
OPEN_RUNS = 6  # so many wait or run at any moment, at least
OWNERS = ("ann", "ben", "cas")
PATIENCE = 2 * SILENCE + 120  # seconds in which all must have ended, after the last kill
STEPS = (20, 400)
NOISE = Part(id="gaussian_noise")


class Crowd:
    """Visitors that submit single runs, and comparisons with variants in one loop."""

    def __init__(self, site: Site, rng: random.Random) -> None:
        self.site, self.rng, self.submitted, self.refused = site, rng, list[str](), 0

    def ask(self) -> None:
        """Submit until enough are open; while the plug-ins are being listed nothing can be."""
        open_runs = len(self.site.store.queue()) + len(self.site.store.running())
        while open_runs < OPEN_RUNS:
            fields: Fields = {"steps": self.rng.randint(*STEPS)}
            plain = Experiment(attack=Part(id="inverting_gradients", fields=fields), seed=len(self.submitted), max_seconds=60)
            arms = [plain, plain.model_copy(update={"defenses": (NOISE,)})] if self.rng.random() < 0.3 else [plain]
            try:
                ids = self.site.service.submit_all(arms, self.rng.choice(OWNERS), anew=True)
            except SpecError:
                self.refused += 1
                return
            self.submitted += ids
            open_runs += len(ids)


def struck(crowd: Crowd, kill: Callable[[], bool]) -> bool:
    """Whether it was killed. Where all runs have ended meanwhile no worker plays, so new ones come."""
    crowd.ask()
    return kill()


def wrong(site: Site, submitted: list[str]) -> dict[str, list[str]]:
    """Return the runs that are lost, doubled or stuck. A run that began again, as it may once, has begun twice."""
    found: dict[str, list[str]] = {"lost": [], "doubled": [], "stuck": []}
    for run in submitted:
        row = site.store.get(run)
        told = list(site.store.events([run], 0))
        states = [event["status"] for event in told if event["kind"] == "state"]
        ends = [state for state in states if state not in OPEN]
        if row is None or (row.status not in OPEN and len(ends) == 0):
            found["lost"].append(run)
        elif row.status in OPEN:
            found["stuck"].append(run)
        anew = sum(event["kind"] == "restart" for event in told)
        if anew > 1 or states.count("running") > 1 + anew or len(ends) > 1 or sum(event["kind"] == "end" for event in told) > 1:
            found["doubled"].append(run)
    return found


def damaged(store: Store) -> list[str]:
    """Return what SQLite's check finds wrong."""
    with closing(sqlite3.connect(store.path)) as db:
        return [line for (line,) in db.execute("PRAGMA integrity_check") if line != "ok"]


def after_kills(site: Site, kill: Mapping[str, Callable[[], bool]], kills: int, seed: int) -> dict[str, Any]:
    """Kill so many of these victims while runs go on; return what is found afterwards, and end the site.

    Args:
        site: the dashboard with the processes to kill.
        kill: kills one of each kind; whether there was one.
        kills: how many.
        seed: of the kills, their times, and the submitted runs.

    Returns:
        Numbers and lists of runs, by their names.

    Raises:
        RuntimeError: where nothing comes back.
    """
    rng, killed = random.Random(seed), dict.fromkeys(kill, 0)
    crowd, began = Crowd(site, rng), time.monotonic()
    try:
        if not until(site.service.catalog, 120):
            raise RuntimeError(f"The plug-ins were not listed within 120 s; see {site.config.home}/dispatch.log.")
        while sum(killed.values()) < kills:
            crowd.ask()
            if rng.random() < AT_WORK:
                until(site.store.running, 90)
            time.sleep(rng.uniform(*PAUSE))
            who = rng.choice(list(kill))
            if not until(partial(struck, crowd, kill[who]), 90):
                raise RuntimeError(f"There was no {who} for 90 s: what was killed has not come back.")
            killed[who] += 1
            say(f"{sum(killed.values())}: {who}, {len(crowd.submitted)} submitted, {len(site.store.running())} running")
        last = time.monotonic()
        until(lambda: not site.store.queue() and not site.store.running(), PATIENCE)
        rows = [row for run in crowd.submitted if (row := site.store.get(run))]
        told = site.store.events(crowd.submitted, 0)
        return {
            "kills": killed,
            "seed": seed,
            "submitted": len(crowd.submitted),
            "ended": {status: sum(row.status == status for row in rows) for status in {row.status for row in rows}},
            "worker_lost": sum(row.message == LOST for row in rows),
            "began_anew": sum(event["kind"] == "restart" for event in told),
            **wrong(site, crowd.submitted),
            "damaged": damaged(site.store),
            "seconds": round(last - began, 1),
            "seconds_to_the_last_end": round(time.monotonic() - last, 1),
        }
    finally:
        site.end()


def report(name: str, about: str, kills: int, trial: Callable[[int, int], dict[str, Any]]) -> None:
    """Hold the trial that the command line asks for, `kills` unless it says another number; print what was found, and write it down."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=kills)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    found = trial(asked.kills, asked.seed)
    told = {name: len(value) if isinstance(value, list) else value for name, value in found.items()}
    table(
        ["what", "found"],
        [[name, ", ".join(f"{n} {v}" for n, v in value.items()) if isinstance(value, dict) else value] for name, value in told.items()],
    )
    save(name, {"about": about.splitlines()[0], **found})
    if any(found[name] for name in ("lost", "doubled", "stuck", "damaged")):
        sys.exit("A run was lost, doubled or stuck, or the file is damaged.")


def trial(kills: int, seed: int) -> dict[str, Any]:
    """Make so many kills on this machine."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        site = Site(Path(folder))
        return after_kills(site, {who: partial(site.kill, who) for who in VICTIMS}, kills, seed)


if __name__ == "__main__":
    report("kills", __doc__ or "", 100, trial)
