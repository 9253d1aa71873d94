"""Servers that change the model: how many pictures come back, beside formulas and published figures; and behind every protection.

shares        B (or n phones with B in all) of 8 to 256 pictures, K of 64 to 1024 bins: the share of CIFAR-10 test pictures alone by
              brightness, 200 draws, beside (1 - 1/K)^(B - 1)
engine        three draws of each through the imprint and its attack in float64: as one phone, and as a sum over two and four phones. The
              attack must find exactly the pictures that are alone; beside it the published differencing, which loses the last bin
last_bin      six pictures, each alone, one of them in the last bin
bisect        B 64, K 256, attacked in rounds 1 to 11
sparse        the sparse imprint, one gradient of 8 or 64 pictures, and eight local steps of 8 pictures
loki          4 phones x 8 MNIST pictures, K 64, one gradient; 10 phones x 64 CIFAR-10 pictures, K 256, 8 local steps of 8 pictures at 1e-4;
              each picture scaled by its phone's map of ones, and as the demo does: stretched by its own minimum and maximum; and the
              demo rebuilt, with its own count
noise         DP-SGD on imprint, sparse imprint and LOKI: predicted and measured error of pictures alone in their bins, float64. LOKI
              divides by one noisy number a picture, so that half of its squared errors are below 0.45 of their mean
protections   imprint and LOKI behind every protection with its defaults, naive and by every strategy; 16 rounds where a strategy needs them
fishing       64 pictures: the body's gradient under class fishing beside that of one class alone, for every class and both precisions; the
              difference of two rounds under feature fishing beside the gradient of one picture's feature, for three sharpnesses A and
              three pictures: the one farthest from its neighbours by the feature, one in the middle, one close to a neighbour

Assumed: the server knows the mean and the standard deviation of the brightness of public pictures (CIFAR-10's first training file; MNIST's
training pictures) and takes it as normally distributed. Pictures are raw [0, 1] test pictures; the network behind the added layers is an
untrained LeNet. A picture counts as exact if no pixel is off by half a grey level of 255 (in float64: by 1e-5).
Started again, it goes on where it was stopped.

    python benchmarks/published/malicious.py [--draws 3] [--parts shares engine ...]        about 15 minutes on one core
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch
from _bins import expected_alone, expected_alone_sparse, expected_first_alone
from _cheating import Found, bisected, grey_psnr, last_bin, law, loki, noise_on, protected, share, sparse_once, through_engine
from _loki_demo import demo_count
from _separation import PLACES, fished_classes, fished_feature
from _table import Book, say, table

from leakage.workers import plugin_catalog

BATCHES, BINS = (8, 16, 64, 256), (64, 128, 256, 512, 1024)
PHONES = (1, 2, 4)  # in the first, second and third draw through the engine, and so on
ROUNDS = (1, 2, 3, 4, 6, 11)
MULTIPLIERS = (1e-6, 1e-5, 1e-4, 1.0)  # of DP-SGD's noise; the last is the default
SHARPNESSES = (1e3, 1e4, 1e5)  # of feature fishing; the last is the default
SMALL = 0.01  # MSE: the prediction is of first order in the noise
TEASER = "64 ImageNet pictures, 128 bins: 70.94 dB on average, as the authors of the imprint state beside their code"
DATA = ("cifar10", "mnist")
DEMO = {"share": 0.875, "psnr": 41.05, "ssim": 0.976}  # LOKI's demo, as it printed: 560 of 640 pictures
RATES = (1e-4, 1e-10)  # of the demo's local steps, and one at which no row moves
WHY = (
    "Why LOKI's demo counts 87.5 %, and not the {alone:.1%} of pictures that are expected to be alone: it counts the rows that one picture "
    "switches on during training, each step with the weights of that step. Its maps are 500 times the picture, so that a row moves in the "
    "local step that trains it and later pictures of the same bin no longer switch it on. Such a bin gives the picture that comes first, "
    "and pictures collide only within a mini-batch: {first:.1%} are expected, {count:.0f} of 640 beside its 560."
)
REBUILT = (
    "The demo rebuilt with a narrower ResNet-50 and other pictures counts {moving} rows in three draws of 640 pictures, at {psnr:.1f} dB; "
    "where rows stand still, at a rate of 1e-10, it counts {still}, and {alone} pictures are alone. The demo's 41 dB come from stretching "
    "each picture from 0 to 1."
)
PARTS = ("shares", "engine", "last_bin", "bisect", "sparse", "loki", "noise", "protections", "fishing")

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--draws", type=int, default=3)
parser.add_argument("--noise-draws", type=int, default=50)
parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
parser.add_argument("--report", action="store_true", help="run nothing: sum up what is there")
given = parser.parse_args()
torch.set_num_threads(1)
known = plugin_catalog.describe()
results_file = Book("malicious", __doc__)
SERVERS = [entry.id for entry in known.servers]
seeds = range(given.draws)


def once(asked: Found, compute: Callable[[], Found]) -> Found | None:
    """Return the stored result of what is asked, or compute and store it; None if it is missing and nothing is to be run for it."""
    needed = {"bisect": "bisect", "sparse": "imprint_sparse", "loki": "loki"}.get(asked["part"], asked.get("server", "imprint"))
    if (there := results_file.known(asked)) or given.report or asked["part"] not in given.parts or needed not in SERVERS:
        return there
    begun = time.process_time()
    result = {**compute(), "seconds": round(time.process_time() - begun, 2)}
    say(f"{', '.join(f'{name} {value}' for name, value in asked.items())}: {result}")
    results_file.runs.append({**asked, "result": result})
    results_file.save()
    return result


def each_draw(asked: Found, compute: Callable[[int], Found]) -> list[Found]:
    """Return the results of all draws that are there."""
    results = [once({**asked, "draw": draw}, partial(compute, draw)) for draw in seeds]
    return [one for one in results if one]


def show(title: str, heads: list[str], rows: list[list[Any]]) -> None:
    """Print a table under its title, if there are rows."""
    if rows:
        say()
        say(title)
        table(heads, rows)


def total(runs: Sequence[Found], name: str) -> str:
    """Return the sum of a count over runs, and the counts."""
    return f"{sum(run[name] for run in runs)} ({', '.join(str(run[name]) for run in runs)})"


def shares() -> None:
    """Shares of pictures alone in their bins, and three draws of each through the engine."""
    rows, through = [], []
    for batch in BATCHES:
        for bins in BINS:
            own = once({"part": "shares", "pictures": batch, "bins": bins}, partial(share, batch, bins))
            if own:
                formula, sparse = expected_alone(batch, bins), expected_alone_sparse(batch, bins)
                gap = own["alone"] - formula
                rows.append([batch, bins, own["alone"], formula, f"{gap:+.3f}", own["sparse"], sparse])
            asked = {"part": "engine", "pictures": batch, "bins": bins}
            runs = each_draw(asked, lambda draw, b=batch, k=bins: through_engine(b, k, PHONES[draw % len(PHONES)], draw))  # type: ignore[misc]
            if runs:
                names = ("alone", "found", "published", "alone_in_the_last_bin")
                counts = [total(runs, name) for name in names]
                through.append([batch, bins, *counts, f"{sum(run['equal'] for run in runs)} of {len(runs)}"])
    show("share alone by brightness, 200 draws", ["pictures", "bins", "imprint", "formula", "off by", "sparse", "formula"], rows)
    heads = ["pictures", "bins", "alone", "found", "by the published differencing", "alone in the last bin", "exactly those alone"]
    show("through the engine: a draw each as one phone, and as a sum over 2 and 4 phones", heads, through)


def single_cases() -> None:
    """The last bin, and bins that are placed anew in each round, and the sparse imprint."""
    runs = each_draw({"part": "last_bin", "pictures": 6, "bins": 64}, last_bin)
    show(
        "six pictures alone, one in the last bin",
        ["found by ours", "by the published differencing"],
        [[r["ours"], r["published"]] for r in runs],
    )
    rows = []
    for number in ROUNDS:
        asked = {"part": "bisect", "pictures": 64, "bins": 256, "round": number}
        if runs := each_draw(asked, partial(bisected, number)):
            rows.append([number, mean(run["alone"] for run in runs), mean(run["found"] for run in runs), len(runs)])
    show("bins placed anew in each round: 64 pictures, 256 bins", ["round", "share alone", "share found", "draws"], rows)
    rows = []
    for batch, bins, steps in ((8, 64, 1), (64, 256, 1), (64, 256, 8)):
        asked = {"part": "sparse", "pictures": batch, "bins": bins, "steps": steps}
        if runs := each_draw(asked, partial(sparse_once, batch, bins, steps=steps > 1)):
            counts = [total(runs, name) for name in ("alone", "exact", "of_those_alone")]
            rows.append([batch, bins, steps, expected_alone_sparse(batch, bins) * batch * len(runs), *counts])
    show("the sparse imprint", ["pictures", "bins", "local steps", "expected", "alone", "exact", "of those alone"], rows)


def lokis() -> list[str]:
    """LOKI beside its demo; sentences that say what differs."""
    rows: list[list[Any]] = []
    for name, phones, each, bins in (("mnist", 4, 8, 64), ("cifar10", 10, 64, 256)):
        asked = {"part": "loki", "data": name, "phones": phones, "pictures": each, "bins": bins}
        runs = each_draw(asked, partial(loki, name, phones, each, bins))
        if runs:
            first = expected_first_alone(each, bins, 8) if name == "cifar10" else expected_alone_sparse(each, bins)
            counts = [f"{mean(run[key] for run in runs) / phones / each:.1%}" for key in ("alone", "first_in_their_bin", "exact")]
            scores = [mean(run[key] for run in runs) for key in ("psnr", "psnr_stretched", "ssim", "ssim_stretched", "grey_psnr")]
            shares = [f"{expected_alone_sparse(each, bins):.1%}", counts[0], f"{first:.1%}", *counts[1:]]
            rows.append([f"{phones} x {each} {name}, {bins}", len(runs), *shares, *scores])
    demo = ["the demo: 10 x 64 cifar10, 256", 1, *"----", f"{DEMO['share']:.1%}", "-", DEMO["psnr"], "-", DEMO["ssim"], "-"]
    rows += [demo] * bool(rows)
    expected = ["alone: formula", "alone", "first in their bin: formula", "first in their bin"]
    heads = ["phones x pictures, bins", "draws", *expected, "exact"]
    show("LOKI", [*heads, "PSNR", "PSNR, stretched", "SSIM", "SSIM, stretched", "grey PSNR"], rows)
    moving, still = (each_draw({"part": "loki", "data": "the demo", "rate": rate}, partial(demo_count, rate)) for rate in RATES)
    first = expected_first_alone(64, 256, 8)
    findings = [WHY.format(alone=expected_alone_sparse(64, 256), first=first, count=640 * first)]
    if moving and still:
        names = ("counted", "counted", "alone")
        counts = [", ".join(str(run[name]) for run in runs) for name, runs in zip(names, (moving, still, still), strict=True)]
        psnr = mean(run["psnr_stretched"] for run in moving)
        findings.append(REBUILT.format(moving=counts[0], still=counts[1], alone=counts[2], psnr=psnr))
    return findings


def errors(server: str, multiplier: float) -> Found:
    """Return medians of the predicted and the measured MSE over all draws, and the mean of their ratio where 0.01 is not reached."""
    pairs = [one for draw in range(given.noise_draws) for one in noise_on(server, multiplier, draw)]
    small = [one for one in pairs if one[0] < SMALL]
    predicted, measured = (median(one[place] for one in pairs) for place in (0, 1))
    ratio = mean(one[1] / one[0] for one in small) if small else None
    return {"pictures": len(pairs), "predicted": predicted, "measured": measured, "below": len(small), "ratio_below": ratio}


def noises() -> None:
    """The predicted and the measured error behind DP-SGD."""
    rows = []
    for server in ("imprint", "imprint_sparse", "loki"):
        for multiplier in MULTIPLIERS:
            asked = {"part": "noise", "server": server, "multiplier": multiplier, "draws": given.noise_draws}
            if one := once(asked, partial(errors, server, multiplier)):
                names = ("pictures", "predicted", "measured", "below", "ratio_below")
                rows.append([server, f"{multiplier:g}", *(one[name] for name in names)])
    heads = ["server", "noise multiplier", "pictures", "predicted MSE", "measured", "below 0.01", "measured / predicted of these"]
    show("DP-SGD with a bound of 1 on 8 pictures, 64 bins (medians; of those below 0.01 the mean of the ratios)", heads, rows)


def protections(server: str) -> str:
    """Imprint or LOKI behind every protection; a sentence that names the protections that leave all pictures exact."""
    rows, exact = [], dict[str, bool]()
    arms = [("", "naive", "float32"), *((entry.id, who, "float32") for entry in known.defenses for who in ("naive", *entry.strategies))]
    for defense, who, bits in [*arms, ("ada_defense", "read it off", "float64")]:
        asked = {"part": "protections", "server": server, "defense": defense or "none", "who": who, "precision": bits}
        runs = each_draw(asked, partial(protected, server, defense, who, bits))
        played = [run for run in runs if "refused" not in run]
        if played:
            found, alone = (sum(run[key] for run in played) for key in ("exact", "alone"))
            scores = [mean(run[key] for run in played) for key in ("psnr", "grey_psnr")]
            named = who + ", float64" * (bits == "float64")
            rows.append([defense or "none", named, played[0]["rounds"], f"{found} of {alone} alone", *scores])
            if defense and bits == "float32":
                exact[defense] = exact.get(defense, False) or found == alone
        elif runs:
            rows.append([defense, who, "-", runs[0]["refused"], "-", "-"])
    title = f"{server} (64 bins, 8 pictures) behind every protection"
    show(title, ["protection", "attacker", "rounds", "exact", "PSNR", "grey"], rows)
    names = ", ".join(name for name, every in exact.items() if every)
    return f"Protections with default settings behind which {server} gives back each picture that is alone: {names}."


def fishing() -> None:
    """How exactly fishing separates one class, or one picture."""
    rows = []
    for precision in ("float32", "float64"):
        runs = each_draw({"part": "fishing", "server": "class_fishing", "precision": precision}, partial(fished_classes, precision))
        if runs:
            rows.append([precision, sum(run["classes"] for run in runs), f"{max(run['largest'] for run in runs):.1e}"])
    show("class fishing, 64 pictures", ["precision", "classes", "largest relative difference"], rows)
    rows = []
    for place in PLACES:
        for sharpness in SHARPNESSES:
            asked = {"part": "fishing", "server": "feature_fishing", "sharpness": sharpness, "place": place}
            for run in each_draw(asked, partial(fished_feature, sharpness, place)):
                d = run["distance"]
                rows.append([place, f"{d:.1e}", f"{sharpness:.0e}", f"{math.exp(-sharpness * d):.1e}", f"{run['error']:.1e}"])
    heads = ["by its gaps", "distance d to the threshold", "A", "exp(-A d)", "relative difference"]
    show("feature fishing, 64 pictures, float32", heads, rows)


def main() -> None:
    """Run what is missing, print the tables, and write what they say."""
    shares()
    single_cases()
    findings = lokis()
    noises()
    findings += [protections(server) for server in ("imprint", "loki")]
    fishing()
    for sentence in findings:
        say(f"\n{sentence}")
    results_file.save(
        draws=f"up to {given.draws} of each, with the seeds {', '.join(map(str, seeds))}; shares: 200 draws; noise: {given.noise_draws}",
        assumed={"brightness": "normal, with mean and deviation of public pictures", "law": {name: law(name) for name in DATA}},
        grey_psnr={name: grey_psnr(name) for name in DATA},
        published={"loki_demo": DEMO, "imprint": TEASER},
        findings=findings,
    )


if __name__ == "__main__":
    main()
