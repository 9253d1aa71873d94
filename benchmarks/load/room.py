"""A class of 200 phones in one room: joining, votes, beats, silence, a live run beside them, and a server that sleeps for a minute.

A real server with two slots; the phones are one process on the same cores. Run it alone on the machine.

    .venv/bin/python benchmarks/load/room.py
    .venv/bin/python benchmarks/load/room.py --quick
"""

import argparse
import gzip
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]
import httpx
from _site import Site, new_site, until
from _students import files_of
from _table import save, say, table
from crowds import p95

from leakage.spec.experiment import Experiment, Part

LESSON = "07-noise"
FILM, QUESTION, REVEAL, TRY = 2, 3, 4, 5  # beats of that lesson: a film, a question, a film after it, a grid of what-ifs
CHANGES = (1, FILM, 1, FILM, QUESTION)  # the beats to which the teacher goes before the question is asked
OPTIONS = 3
JOIN_WITHIN, VOTE_WITHIN, BACK_WITHIN = 10.0, 3.0, 20.0  # seconds
KB = 1000
TICKS = os.sysconf("SC_CLK_TCK")  # of processor time, a second


@dataclass(frozen=True)
class Size:
    """How large the class is, and how long it is measured: seconds of silence, of the server's sleep, and steps of a live run."""

    phones: int = 200
    silence: float = 20.0
    sleep: float = 60.0
    steps: int = 4000


QUICK = Size(phones=20, silence=6.0, sleep=16.0, steps=300)


class Class:
    """A room on a site with its teacher, and the process of its students."""

    def __init__(self, site: Site, count: int) -> None:
        self.site, self.web = site, httpx.Client(base_url=site.address, headers={"Origin": site.address}, timeout=30)
        until(self.answers, 60)
        room = self.web.post("/api/class", json={"lesson": LESSON, "beat": 1}).raise_for_status().json()
        self.code, self.key = room["code"], room["key"]
        command = [sys.executable, str(Path(__file__).parent / "_students.py"), site.address, self.code, str(count)]
        self.students = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answers(self) -> bool:
        """Return whether the server answers."""
        try:
            return self.web.get("/_stcore/health").is_success
        except httpx.TransportError:
            return False

    def lead(self, **what: Any) -> float:
        """Let the teacher do something, and return when the request was sent."""
        sent = time.monotonic()
        self.web.post(f"/api/class/{self.code}/lead", json={"key": self.key, **what}).raise_for_status()
        return sent

    def tell(self, do: str, **what: Any) -> dict[str, Any]:
        """Let the students do something (a method of `_students.Crowd`), and return their response."""
        assert self.students.stdin
        assert self.students.stdout
        self.students.stdin.write(json.dumps({"do": do, **what}) + "\n")
        self.students.stdin.flush()
        response: dict[str, Any] = json.loads(self.students.stdout.readline())
        return response

    def end(self) -> None:
        """End the process of the students."""
        self.students.kill()
        self.students.wait()
        self.web.close()


def row(what: str, value: float, asked: str = "", met: bool | None = None) -> dict[str, Any]:
    """Return a line of the table: a figure, and what was asked of it, if anything was."""
    return {"what": what, "value": round(value, 4), "asked": asked, "met": "" if met is None else "yes" if met else "no"}


def below(what: str, value: float, limit: float) -> dict[str, Any]:
    """Return a line of the table for a figure that must be below a limit."""
    return row(what, value, f"below {limit:g}", value < limit)


def busiest_second(times: Sequence[float]) -> int:
    """Return how many of these times lie in one second, wherever it begins."""
    ordered, first, most = sorted(times), 0, 0
    for place, at in enumerate(ordered):
        while ordered[first] <= at - 1:
            first += 1
        most = max(most, place - first + 1)
    return most


# ---------------------------------------------------------------- what is measured


def measure_sizes(room: Class) -> list[dict[str, Any]]:
    """Measure what a phone loads before the first film, compressed, in kB."""
    page = room.web.get(f"/j/{room.code}").text
    style, script = files_of(page)
    lesson = f"/api/class/{room.code}/lesson"
    kb = {
        name: transferred(room, address) for name, address in [("script", script), ("style", style), ("lesson at its first beat", lesson)]
    }
    kb = {"page": len(gzip.compress(page.encode())) / KB, **kb}
    return [
        *(row(f"{name}, gzip, kB", value) for name, value in kb.items()),
        below("script and style, gzip, kB", kb["script"] + kb["style"], 60),
        below("first view without the film, gzip, kB", sum(kb.values()), 80),
    ]


def transferred(room: Class, address: str) -> float:
    """Return the kB of a response as it is sent."""
    with room.web.stream("GET", address) as response:
        return sum(len(part) for part in response.iter_raw()) / KB


def measure_joining(room: Class, size: Size) -> list[dict[str, Any]]:
    """Measure how long a phone takes until it shows the film, while all join."""
    room.lead(beat=FILM)
    joined = room.tell("join", within=JOIN_WITHIN)
    seconds = joined["seconds"]
    for error in joined["errors"][:3]:
        say(error)
    return [
        row("phones that joined", len(seconds), f"{size.phones}", len(seconds) == size.phones),
        row("page, script, style, lesson and film, median s", statistics.median(seconds)),
        below("page, script, style, lesson and film, p95 s", p95(seconds), 2),
    ]


def measure_beats(room: Class, beats: Sequence[int]) -> list[float]:
    """Go to each of these beats, and return after how many seconds each student heard each; infinity if never."""
    late = list[float]()
    for beat in beats:
        time.sleep(1)
        sent = room.lead(beat=beat)
        time.sleep(4)
        for messages in room.tell("report", since=sent)["messages"]:
            late.append(next((at - sent for at, now, _ in messages if now == beat), float("inf")))
    return late


def measure_votes(room: Class, size: Size) -> list[dict[str, Any]]:
    """Measure the requests of all votes, and how many votes the bars show."""
    votes = room.tell("vote", within=VOTE_WITHIN, beat=QUESTION, options=OPTIONS)
    since = room.lead(act="reveal")
    time.sleep(3)
    shown = [max((count or 0 for _, _, count in messages), default=0) for messages in room.tell("report", since=since)["messages"]]
    return [
        row("votes in the bars, on the phone with the fewest", min(shown), f"{size.phones}", min(shown) == size.phones),
        row("vote, median ms", 1000 * statistics.median(votes["seconds"])),
        below("vote, p95 ms", 1000 * p95(votes["seconds"]), 150),
    ]


def measure_silence(room: Class, seconds: float) -> list[dict[str, Any]]:
    """Measure processor time and memory of the web process between two beats."""
    time.sleep(3)
    before, began = processor_seconds(room.site.server.pid), time.monotonic()
    time.sleep(seconds)
    share = (processor_seconds(room.site.server.pid) - before) / (time.monotonic() - began)
    return [
        below("web process between beats, % of a core", 100 * share, 25),
        below("web process between beats, memory in MB", room.site.measure_memory(), 350),
    ]


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process until now (proc(5): utime and stime of stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measure_live_run(room: Class, steps: int) -> list[dict[str, Any]]:
    """Measure the speed of a run without the streams, with them, and without them again, in steps a second."""
    room.tell("rest")
    compute(room.site, min(steps, 300), 0)  # the worker has loaded everything afterwards
    before = compute(room.site, steps, 1)
    room.tell("listen", within=2.0)
    time.sleep(3)
    within = compute(room.site, steps, 2)
    room.tell("rest")
    time.sleep(1)
    after = compute(room.site, steps, 3)
    room.tell("listen", within=2.0)
    kept = within / statistics.mean((before, after))
    return [
        row("live run without streams, before, steps a second", before),
        row("live run with all streams, steps a second", within),
        row("live run without streams, after, steps a second", after),
        row("live run with all streams, % of its speed without", 100 * kept, "at least 90", kept >= 0.9),
    ]


def compute(site: Site, steps: int, seed: int) -> float:
    """Run Inverting Gradients on LeNet, and return the steps a second."""
    experiment = Experiment(attack=Part(id="inverting_gradients", fields={"steps": steps}), seed=seed, max_seconds=300)
    run = site.service.submit_all([experiment], "teacher", anew=True)[0]
    until(lambda: not site.store.queue() and not site.store.running(), 300)
    ended = site.store.get(run)
    if ended is None or ended.status != "done" or ended.started is None or ended.finished is None:
        raise RuntimeError(f"The live run has not ended well: {ended and ended.message}")
    return steps / (ended.finished - ended.started)


def measure_sleep(room: Class, size: Size) -> list[dict[str, Any]]:
    """Stop the server for a while, as a closed laptop does, and measure how the streams come back."""
    time.sleep(3)
    stopped = time.monotonic()
    room.site.server.send_signal(signal.SIGSTOP)
    try:
        time.sleep(size.sleep)
    finally:
        woken = time.monotonic()
        room.site.server.send_signal(signal.SIGCONT)
    time.sleep(BACK_WITHIN + 5)
    back = [messages[0][0] - woken for messages in room.tell("report", since=woken)["messages"] if messages]
    on_time = sum(seconds <= BACK_WITHIN for seconds in back)
    busiest = busiest_second(room.tell("report", since=stopped)["sent"])
    return [
        row(f"streams back within {BACK_WITHIN:g} s of a sleep", on_time, f"{size.phones}", on_time == size.phones),
        row("the last one, s", max(back, default=float("inf"))),
        row("requests in the busiest second of the sleep and after it", busiest, "at most 40", busiest <= 40),
    ]


def measure(size: Size | None = None) -> list[dict[str, Any]]:
    """Measure all of it on a new site; each line has the figure, and what is asked of it."""
    size = size or Size()
    with new_site(slots=2, LEAKAGE_CLASS="1", LEAKAGE_COMPILE="0") as site:
        room = Class(site, size.phones)
        try:
            rows = [*measure_sizes(room), *measure_joining(room, size)]
            late = measure_beats(room, CHANGES)
            votes = measure_votes(room, size)
            late += measure_beats(room, (REVEAL, TRY))
            rows += [*votes, row("beat, median s", statistics.median(late)), below("beat, p95 s", p95(late), 1)]
            rows += measure_silence(room, size.silence) + measure_live_run(room, size.steps)
            return rows + measure_sleep(room, size)
        finally:
            room.end()


def main() -> None:
    """Print the table, and write it down unless the class is small."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20 phones and short pauses; writes nothing")
    quick = parser.parse_args().quick
    rows = measure(QUICK if quick else Size())
    table(list(rows[0]), [list(line.values()) for line in rows])
    if not quick:
        save("load_room", {"about": (__doc__ or "").splitlines()[0], "rows": rows})


if __name__ == "__main__":
    main()
