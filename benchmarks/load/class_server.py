"""A class server under load: waiting times, the cost of a class, a full store. Real processes; run it alone on the machine.

.venv/bin/python benchmarks/load/class_server.py --only fairness class
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]
import beside_compiler
import crowds
import fairness
import full_store
import lesson_slides
import one_network
from _site import Site, new_site
from _table import save, say, table

from leakage.settings import AUTOGRAD, FORMULA

Rows = list[dict[str, Any]]


def on_a_site(measure: Callable[[Site], Rows], step: str = FORMULA) -> Rows:
    """Run a measurement on a new dashboard with a warm dispatcher, whose steps are computed in this way."""
    with new_site(LEAKAGE_STEP=step) as site:
        return measure(site)


PARTS: dict[str, tuple[str, Callable[[], Rows]]] = {
    "fairness": ("How long those looked at wait; version 0.3 beside today", fairness.measure),
    "class": (
        "Answers of the health page while a class follows waiting runs and workers compute (at most 0.3 s)",
        lambda: on_a_site(lambda site: [crowds.a_class(site, 30, arms) for arms in (8, 24)]),
    ),
    "listeners": (
        "200 listeners on 40 runs of a batch of 8 (none misses a frame, p95 below 1 s)",
        lambda: on_a_site(lambda site: [crowds.frames_arrive(site, 200, 40)]),
    ),
    "silent": (
        "60 pages that never read (the web process grows by less than 50 MB)",
        lambda: on_a_site(lambda site: [crowds.never_read(site, 60)]),
    ),
    "sessions": ("60 page sessions (the web process holds at most 250 MB)", lambda: on_a_site(lambda site: [crowds.sessions(site, 60)])),
    "slides": (
        "A picture of a run while one browser asks for 60 slides of the lessons (below 0.5 s)",
        lambda: on_a_site(lambda site: [lesson_slides.measure(site, 60)]),
    ),
    "network": (
        "A class of 30 owners with one network, a picture each, 1,000 steps (in loops at most a third of single runs by autograd)",
        lambda: [*on_a_site(one_network.measure_apart, AUTOGRAD), *on_a_site(one_network.measure)],
    ),
    "compiler": (
        "Runs that arrive while the idle machine compiles, seconds (at most 5 % longer than without the compiler)",
        beside_compiler.measure,
    ),
    "store": ("A store of 64 MB under 500 runs of a batch of 8", lambda: [full_store.measure(500)]),
}


def main() -> None:
    """Print a table for each part, and write them all down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    found: dict[str, Rows] = {}
    for name in parser.parse_args().only:
        about, measure = PARTS[name]
        say(f"\n{about}")
        found[name] = measure()
        heads = list(found[name][0])
        table(heads, [[row[head] for head in heads] for row in found[name]])
        save(f"load_{name}", {"about": about, "rows": found[name]})


if __name__ == "__main__":
    main()
