"""The measurements of docs/decisions/: each section measures on this machine what decided one of them.

.venv/bin/python benchmarks/decisions.py [SECTION ...]        all sections: some minutes on two cores; nothing is downloaded
"""

import argparse
import gc
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]
RESULTS = ROOT / "benchmarks" / "results" / "decisions.json"
Row = dict[str, Any]


def child(script: str, *arguments: object, **environment: str) -> Any:
    """Run a script in a new Python process; return the JSON of its last line."""
    given = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return json.loads(subprocess.run(command, env=given, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


# ---------------------------------------------------------------- 0001: the store is the queue

CLAIM = """
import json, sys, time
from pathlib import Path
from leakage.runs.store import Store
store, took, done, began = Store(Path(sys.argv[1])), [], 0, time.perf_counter()
while True:
    start = time.perf_counter()
    run = store.claim(sys.argv[2] + ":1")
    took.append(time.perf_counter() - start)
    if run is None:
        break
    store.finish(run.id, "done")
    done += 1
print(json.dumps({"done": done, "seconds": time.perf_counter() - began, "worst": max(took)}))
"""
FRAMES = """
import json, sys, time
from pathlib import Path
from leakage.runs.events import FrameEvent
from leakage.runs.store import Store
store, took = Store(Path(sys.argv[1])), []
for step in range(200):
    start = time.perf_counter()
    store.add_frame(sys.argv[2], FrameEvent(step=step, seconds=0.1, loss=0.5), bytes(4000))
    took.append(time.perf_counter() - start)
print(json.dumps({"median_ms": 1e3 * sorted(took)[100], "worst_ms": 1e3 * max(took)}))
"""


def queue() -> list[Row]:
    """Measure the runs claimed and closed per second by one process and by four at once, and the time to store a frame of 4 kB."""
    from leakage.runs.store import Run, Store

    def fill(path: Path, count: int) -> None:
        first = Run(
            id="",
            owner="me",
            grp=None,
            kind="attack",
            digest="",
            version="1",
            experiment="{}",
            shareable=True,
            estimate=None,
            created=0.0,
        )
        store = Store(path)
        store.ask([(replace(first, id=f"r{n}", digest=f"r{n}", created=float(n)), {}) for n in range(count)], anew=True)
        store.close()

    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for processes in (1, 4):
            path = Path(folder) / f"{processes}.db"
            fill(path, 1000)
            command = [sys.executable, "-c", CLAIM, str(path)]
            given = {**os.environ, "PYTHONPATH": str(ROOT)}
            started = [subprocess.Popen([*command, str(n)], env=given, stdout=subprocess.PIPE, text=True) for n in range(processes)]
            told = [json.loads(process.communicate()[0]) for process in started]
            assert sum(one["done"] for one in told) == 1000
            rows.append(
                {
                    "processes": processes,
                    "claimed and closed per second": 1000 / max(one["seconds"] for one in told),
                    "longest claim, ms": 1e3 * max(one["worst"] for one in told),
                }
            )
        path = Path(folder) / "frames.db"
        fill(path, 1)
        frames = child(FRAMES, path, "r0")
        rows.append({"processes": 1, "a frame kept, ms (median)": frames["median_ms"], "longest, ms": frames["worst_ms"]})
    return rows


# ---------------------------------------------------------------- 0002, 0003: the web process

WEB = """
import gc, importlib, json, sys, time
from pathlib import Path
root, more, began = Path(sys.argv[1]), sys.argv[2:], time.perf_counter()
folders = [root / "leakage" / name for name in ("ui", "web", "runs", "results", "spec", "networks", "data")]
files = [file for folder in folders for file in folder.rglob("*.py")]
for file in files:
    importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__"))
for name in more:
    importlib.import_module(name)
seconds = time.perf_counter() - began
pages = int(open("/proc/self/statm").read().split()[1])
took = []
for _ in range(5):
    start = time.perf_counter()
    gc.collect()
    took.append(time.perf_counter() - start)
print(json.dumps({"seconds to import": seconds, "resident MB": pages * 4096 / 2**20, "gc.collect(), ms": 1e3 * sorted(took)[2]}))
"""


def web() -> list[Row]:
    """Measure import seconds, resident memory and a garbage collection of the web process, without and with the engine. Linux only."""
    heavy = ("torch", "leakage.evaluation.play", "leakage.workers.adapter")
    return [
        {"web process": name, **child(WEB, ROOT, *more, CUDA_VISIBLE_DEVICES="")}
        for name, more in (("as it is", ()), ("with torch and the engine", heavy))
    ]


DESCRIBE = """
import json, sys, time
from pathlib import Path
began = time.perf_counter()
if sys.argv[2] == "read":
    from leakage.spec import catalog
    known = catalog.read(Path(sys.argv[1]))
else:
    from leakage.workers import plugin_catalog
    known = plugin_catalog.write(Path(sys.argv[1]))
print(json.dumps({"seconds": time.perf_counter() - began, "plug-ins": len(known.entries)}))
"""


def plugins() -> list[Row]:
    """Measure the seconds until a new process lists all plug-ins: by importing them, and from the dispatcher's file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "catalog.json"
        return [{"how": how, **child(DESCRIBE, path, how, CUDA_VISIBLE_DEVICES="")} for how in ("import", "read")]


# ---------------------------------------------------------------- 0013: migrations


def migrations() -> list[Row]:
    """Measure the seconds to migrate a store of version 0.1.0, by its number of runs, and to open it afterwards."""
    import sqlite3

    from leakage.runs.store import Store

    rows: list[Row] = []
    dump = (ROOT / "tests" / "runs" / "store_of_0_1_0.sql").read_text()
    with tempfile.TemporaryDirectory() as folder:
        for copies in (1, 500):
            path = Path(folder) / f"{copies}.db"
            with sqlite3.connect(path) as db:
                db.executescript(dump)
                names = [row[1] for row in db.execute("PRAGMA table_info(runs)") if row[1] != "id"]
                for number in range(1, copies):
                    tail = f"'-{number}'"
                    fresh = f"SELECT id || {tail}, {', '.join(names)} FROM runs WHERE status = 'done' ORDER BY rowid LIMIT 4"
                    db.execute(f"INSERT OR IGNORE INTO runs {fresh}")
                    old = f"SELECT run || {tail}, kind, body FROM events WHERE seq <= 100 AND run || {tail} IN (SELECT id FROM runs)"
                    db.execute(f"INSERT INTO events (run, kind, body) {old}")
            runs = sqlite3.connect(path).execute("SELECT COUNT(*) FROM runs").fetchone()[0]
            took = []
            for _ in range(2):
                start = time.perf_counter()
                Store(path).close()
                took.append(time.perf_counter() - start)
            megabytes = path.stat().st_size / 2**20
            rows.append({"runs": runs, "MB": megabytes, "migrated in, ms": 1e3 * took[0], "opened later in, ms": 1e3 * took[1]})
    return rows


HERE = (queue, web, plugins, migrations)

if __name__ == "__main__":
    import torch
    from _decisions_engine import SECTIONS as ENGINE
    from _decisions_steps import SECTIONS as STEPS
    from _table import say, table

    SECTIONS = {section.__name__: section for section in (*HERE, *ENGINE, *STEPS)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", nargs="*", choices=[[], *SECTIONS], default=[], help="default: all")
    chosen = parser.parse_args().section or list(SECTIONS)
    torch.set_num_threads(1)
    for name in chosen:
        gc.collect()
        rows = SECTIONS[name]()
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        found[name] = {
            "about": SECTIONS[name].__doc__,
            "machine": f"{platform.machine()}, {cores} cores",
            "torch": torch.__version__,
            "rows": rows,
        }
        say()
        say(f"{name}: {SECTIONS[name].__doc__}")
        heads = list(dict.fromkeys(head for row in rows for head in row))
        table(heads, [[row.get(head, "") for head in heads] for row in rows])
        RESULTS.write_text(json.dumps({one: found[one] for one in SECTIONS if one in found}, indent=1) + "\n")
