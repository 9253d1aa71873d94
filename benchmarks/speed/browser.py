"""An attack inside a web page beside the same attack in PyTorch: steps per processor second, and seconds from a chosen picture to 20 dB.

Page and PyTorch take turns on one machine, with one thread each. Processor seconds of a page are those of all processes of its browser.
The first steps load modules and translate code, so both are measured after WARM steps: from the page's seconds those of an attack of WARM
steps are subtracted.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[:3]]  # this folder, benchmarks, the project
from _table import save, say, table
from loop import WARM, prepare_warm, run_like_worker
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from leakage.data.images import gallery, read
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture
from leakage.web.site import write_site
from leakage.workers import plugin_catalog

STEPS = {"idlg": 60, "inverting_gradients": 1500}
CASES = [(attack, batch) for attack in STEPS for batch in (1, 2)]
ROUNDS = 3  # in turn
GOAL = 20.0  # dB
TIMEOUT = 120_000  # milliseconds
PLAY = """
([order, text]) => new Promise((ended, failed) => {
  const worker = new Worker(URL.createObjectURL(new Blob([text], { type: 'text/javascript' })));
  worker.onmessage = ({ data }) => {
    if (data.kind === 'failed') failed(new Error(data.message));
    if (data.kind === 'end') { worker.terminate(); ended({ step: data.step, seconds: data.seconds, psnr: data.psnr }); }
  };
  worker.postMessage({ ...order, pictures: Float32Array.from(order.pictures) });
})
"""


def processes() -> dict[int, float]:
    """Return the processor seconds of each process below this one, by its number: those of the browser that was started here."""
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = int(path.parent.name), path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it has just ended
        stats[pid] = (int(rest[1]), int(rest[11]) + int(rest[12]))
    below, more = {os.getpid()}, {os.getpid()}
    while more:
        more = {pid for pid, (parent, _) in stats.items() if parent in more} - below
        below |= more
    return {pid: stats[pid][1] / os.sysconf("SC_CLK_TCK") for pid in below - {os.getpid()} if pid in stats}


def spent() -> float:
    """Return the processor seconds of the browser's processes together, with those of the program that drives it."""
    return sum(processes().values())


def renderer_memory() -> float:
    """Return the memory of the largest renderer of the browser in MB: its own pages, and its share of those that processes share (PSS)."""
    largest = 0.0
    for pid in processes():
        try:
            if "--type=renderer" not in Path(f"/proc/{pid}/cmdline").read_text():
                continue
            (line,) = (line for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() if line.startswith("Pss:"))
        except (OSError, ValueError):
            continue  # it has just ended
        largest = max(largest, int(line.split()[1]) / 1000)
    return largest


def experiment(attack: str, batch: int) -> Experiment:
    """Return the attack on the first pictures of the gallery."""
    fields: dict[str, Any] = {"steps": STEPS[attack]} | ({"restarts": 1} if attack == "idlg" else {})
    pictures = tuple(Picture(id=item.id) for item in gallery()[:batch])
    chosen = Experiment(pictures=pictures, attack=Part(id=attack, fields=fields), assume=Assumptions(labels=batch > 1))
    return chosen.resolve(plugin_catalog.describe())


def order(attack: str, batch: int, steps: int) -> dict[str, Any]:
    """Return the same attack as the page's worker reads it, of so many steps."""
    items = gallery()[:batch]
    pictures = [(read("gallery", item.id, 32, 3).transpose(2, 0, 1) / 255).ravel().tolist() for item in items]
    fields: dict[str, Any] = {"steps": steps} | ({"restarts": 1} if attack == "idlg" else {})
    return {
        **{"network": "lenet", "shape": [3, 32, 32], "classes": 10, "seed": 1, "attack": attack, "adaptive": True},
        **{"pictures": [number for picture in pictures for number in picture], "labels": [item.label for item in items]},
        **fields,
    }


def in_torch(attack: str, batch: int) -> dict[str, float]:
    """Measure steps and processor seconds of the attack in this process, after WARM steps."""
    _, snapshots = prepare_warm(experiment(attack, batch), 1, 1)
    began = time.process_time()
    count = sum(1 for _ in islice(snapshots, STEPS[attack]))
    return {"step": count, "cpu_seconds": time.process_time() - began}


def in_page(page: Page, attack: str, batch: int) -> dict[str, float]:
    """Measure the steps per processor second of the attack in the page: after WARM steps, and with these and the start of the worker."""
    warm, whole = (played(page, order(attack, batch, steps)) for steps in (WARM, STEPS[attack]))
    after = {name: whole[name] - warm[name] for name in ("step", "cpu_seconds")}
    return {"page": rate(after), "page_with_start": rate(whole)}


def played(page: Page, order: dict[str, Any]) -> dict[str, float]:
    """Measure steps and processor seconds of an attack in the page, with the start of its worker."""
    before = spent()
    end: dict[str, float] = page.evaluate(PLAY, [order, page.evaluate("gleOwn.worker")])
    return {**end, "cpu_seconds": spent() - before}


def rate(measured: dict[str, float]) -> float:
    """Return the steps per processor second."""
    return measured["step"] / measured["cpu_seconds"]


def seconds_to_picture(page: Page, address: str, picture: Path) -> float:
    """Measure the seconds from the choice of a picture at the door to a guess with GOAL dB, by the page's own words."""
    page.goto(address)
    page.get_by_role("button", name="Try your own picture").click()
    page.locator(".gle-own-picture").wait_for()
    began = time.perf_counter()
    page.locator(".gle-own-picture input[type=file]").set_input_files(picture)
    page.get_by_role("button", name="Attack it").click()
    page.wait_for_function(
        "(goal) => parseFloat(document.querySelector('.gle-own-big')?.textContent) >= goal", arg=GOAL, timeout=TIMEOUT, polling=20
    )
    return time.perf_counter() - began


def memory_of_attack(page: Page) -> float:
    """Wait for the end of the attack that runs in a page, and return the largest memory of its renderer meanwhile, in MB."""
    largest = 0.0
    while not page.locator(".gle-own-run[data-word]").count():
        largest = max(largest, renderer_memory())
        page.wait_for_timeout(100)
    return largest


def measure(browser_path: str, rounds: int) -> dict[str, Any]:
    """Measure everything, and return it as the command saves it."""
    found: dict[str, Any] = {"rounds": rounds, "cases": [], "to_picture_s": []}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        site = Path(folder) / "site"
        write_site(site, plugin_catalog.describe())
        address = (site / "index.html").as_uri()
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(TIMEOUT)
        page.goto(address)
        page.get_by_role("button", name="Try your own picture").click()
        page.locator(".gle-own-picture").wait_for()
        found["browser"] = browser.version
        for attack, batch in CASES:
            runs = []
            for _ in range(rounds):
                runs.append(in_page(page, attack, batch))
                for way in ("formula", "autograd"):
                    told = run_like_worker(__file__, "--torch", attack, batch, "--way", way)
                    runs[-1][way] = rate(json.loads(told))
            medians = {way: statistics.median(run[way] for run in runs) for way in runs[0]}
            found["cases"].append({"attack": attack, "batch": batch, **medians})
        picture = Path(folder) / "picture.png"
        Image.fromarray(read("gallery", "chelsea", 256, 3)).save(picture)
        for _ in range(max(rounds, 3)):
            fresh = browser.new_context()
            door = fresh.new_page()
            found["to_picture_s"].append(seconds_to_picture(door, address, picture))
            found["renderer_mb"] = max(found.get("renderer_mb", 0.0), memory_of_attack(door))
            fresh.close()
        browser.close()
    return found


def report(found: dict[str, Any]) -> None:
    """Print what was measured as a table."""
    rows = [
        [row["attack"], row["batch"], *(f"{row[way]:.0f}" for way in ("page_with_start", "page", "formula", "autograd"))]
        + [f"{row['page'] / row[way]:.2f}" for way in ("formula", "autograd")]
        for row in found["cases"]
    ]
    heads = ["attack", "pictures", "page, with its start", "page", "torch, formula", "torch, autograd", "page/formula", "page/autograd"]
    say("Steps per processor second, medians:")
    table(heads, rows)
    times = sorted(found["to_picture_s"])
    say(f"From the choice of a picture to {GOAL:.0f} dB: median {statistics.median(times):.1f} s, worst {times[-1]:.1f} s (below 5 asked)")
    say(f"Memory of the renderer at most {found['renderer_mb']:.0f} MB (below 150 asked)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", nargs=2, metavar=("ATTACK", "PICTURES"), help=argparse.SUPPRESS)
    parser.add_argument("--way", choices=["formula", "autograd"], default="formula", help=argparse.SUPPRESS)
    parser.add_argument("--browser", default=os.environ.get("LEAKAGE_BROWSER", "/usr/bin/chromium"))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    if given.torch:
        os.environ["LEAKAGE_STEP"] = given.way
        say(json.dumps(in_torch(given.torch[0], int(given.torch[1]))))
    else:
        measured = measure(given.browser, given.rounds)
        save("browser", measured)
        report(measured)
