"""`make bench`: our speed beside the package `breaching`, and the product's delays. It prints tables and writes JSON. Run it alone.

Every figure that is compared comes from one run, the two sides in turn; ratios travel to other machines, absolute times do not.
"""

import argparse
import os
import platform
import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[:3]]  # this folder, benchmarks, the project
import loop
from _table import ROOT, save, saved, say, table

from leakage.settings import AUTOGRAD, cores, settings
from leakage.spec.words import COMPILED

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--peer", type=Path, help="the Python of the peer's environment; without it the comparison is left out")
parser.add_argument("--only", choices=("peer", "live", "lanes", "closed", "arms", "learn", "gpu"), help="one part only")
parser.add_argument("--networks", nargs="+", choices=loop.CASES, default=list(loop.CASES), help="of the comparison with the peer")
given = parser.parse_args()
body: dict[str, object] = {
    "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
    "python": platform.python_version(),
}

if given.only in (None, "lanes"):
    rows = loop.lanes(cores())
    body["lanes"] = rows
    say("Eight starts of Inverting Gradients at once, against the fastest single one (target for LeNet on 2 threads: at most 3 times)")
    heads = ["model", "threads", "starts", "one_ms", "all_ms", "ratio"]
    table(heads, [[row[head] for head in heads] for row in rows])
    say()

if given.only in (None, "closed"):
    rows = loop.closed_form(cores())
    body["closed"] = rows
    say("R-GAP on one picture of CNN6, float64 (target on 2 cores: at most 4 s, under 1,000 MB more than an idle worker)")
    heads = ["model", "threads", "seconds", "more_mb", "psnr"]
    table(heads, [[row[head] for head in heads] for row in rows])
    say()

if given.only == "gpu":  # alone: elsewhere there may be none
    import gpu

    gpu.report(given.peer and given.peer.absolute())

if given.peer and given.only in (None, "peer"):
    way = loop.compile_known() if settings().compile else settings().step
    rows = [row for threads in sorted({1, cores()}) for row in loop.beside_peer(given.peer.absolute(), threads, given.networks)]
    body["peer" if way == COMPILED else f"peer_{way}"] = rows
    say("Inverting Gradients, one picture 3x32x32, float32, against breaching 0.1.2, from the same ten first pictures")
    say(f"Derivatives by {way}; by formula, compiled, those of LeNet alone (targets: LeNet by formula 2.8 times, compiled 4.5 times;")
    say("ConvNet-16 1.45; the median PSNR at most 0.5 dB below the peer's)")
    heads = ["model", "threads", "iterations", "ours_per_second", "peer_per_second", "ratio", "ours_psnr", "peer_psnr"]
    table(heads, [[row[head] for head in heads] for row in rows])
    say()

if given.only in (None, "live", "arms", "learn"):
    os.environ["LEAKAGE_BROWSER"] = subprocess.run(
        ["bash", str(ROOT / "scripts/browser.sh")], check=True, capture_output=True, text=True
    ).stdout.strip()
    import arms
    import first_pictures
    import live

if given.only in (None, "learn"):
    site = live.Site()
    try:
        first = first_pictures.measured(site)
    finally:
        site.close()
    body["learn"] = first
    say("Lessons and front door, warm: the slowest of five tries")
    measured = [
        ["first moving picture on Learn (s)", first["learn_p95_s"], "<= 1.0"],
        ["first moving picture on the Lab, at the front door (s)", first["lab_p95_s"], "<= 1.2"],
        ["the largest lesson (kB)", first["largest_lesson"] / 1000, "< 400"],
        ["recordings and grids (MB)", first["recordings"] / 1e6, "< 4"],
        ["the folder of `make site` (MB)", first["site"] / 1e6, "< 5"],
    ]
    table(["what", "measured", "target"], measured)
    if given.only:
        save("first_pictures", first)
    say()

if given.only in (None, "arms"):
    os.environ["LEAKAGE_COMPILE"] = "0"  # a site that waits would compile beside the other
    site = live.Site()
    try:
        doors = arms.wait_for_workers(site)
        os.environ["LEAKAGE_STEP"] = AUTOGRAD
        by_autograd = live.Site()
        try:
            eight = arms.eight_runs(doors, arms.wait_for_workers(by_autograd))
        finally:
            by_autograd.close()
            del os.environ["LEAKAGE_STEP"]
        clicks = arms.clicks(site)
    finally:
        site.close()
        del os.environ["LEAKAGE_COMPILE"]
    body |= {"arms": eight, "clicks": clicks}
    say("Comparisons: eight LeNet arms of Inverting Gradients")
    measured = [
        [f"eight arms against one, {eight['steps']} steps (times as long)", eight["ratio"], ""],
        ["eight arms against one by autograd (times as long)", eight["ratio_by_autograd"], "<= 2.5"],
        ["a click while eight arms are live (s, median)", clicks["median_s"], "<= 0.5"],
        ["the same with nothing running (s, median)", clicks["idle_s"], ""],
    ]
    table(["what", "measured", "target"], measured)
    say()

if given.only in (None, "live"):
    site = live.Site()
    try:
        delays = live.page_delays(site)
        kept = live.keeping(site)
        both = live.two_at_once(site)
        viewers = live.ten_viewers(site)
    finally:
        site.close()
    body |= {"page": delays, "keeping": kept, "two_at_once": both, "viewers": viewers}
    say("The product around the loop")
    measured = [
        ["cold: make run to a usable page (s)", delays["cold_s"], "< 5"],
        ["warm: page interactive (s)", delays["warm_s"], "<= 1.5"],
        ["warm: the recorded run's first picture (s)", delays["recorded_s"], "<= 2"],
        ["click on Run to first picture (s)", delays["first_picture_s"], "< 0.8"],
        ["the same while the page still loads Plotly (s)", delays["early_click_s"], ""],
        ["web process with 10 pages (MB)", delays["web_mb"], "< 180"],
        ["torch in the web process", delays["torch_in_web"], "False"],
        *[[f"keeping and streaming, batch {row['batch']} (share of the bare loop)", row["overhead"], "<= 0.02"] for row in kept],
        ["two runs at once: each keeps of its solo speed (worst)", both["worst"], ">= 0.4"],
        ["10 viewers: updates per second of the slowest", viewers["slowest_per_second"], ">= 5"],
    ]
    table(["what", "measured", "target"], measured)
if given.only is None:
    save("speed", body)
elif given.only == "peer":  # each way of computing derivatives has a key of its own
    save("speed_peer", {**saved("speed_peer"), **body})
elif given.only in ("lanes", "arms", "live"):
    save(f"speed_{given.only}", body)
