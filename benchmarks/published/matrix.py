"""Every protection at some strengths, against some attacks, by a naive attacker and by each way of one who knows it: LeNet, CIFAR-10.

Each cell: the first test pictures, one at a time, untrained LeNet (sigmoid) drawn by the seed, raw pixels. iDLG: 300 steps of L-BFGS, up
to 4 starts. Inverting Gradients: 1,500 steps, then 20 of L-BFGS. What refuses the model (FedKL) is left out.
Started again, it goes on where it was stopped; `--share 0/2` and `--share 1/2` play halves of it in two processes with a book each.
assets/matrix.json holds numbers only, no picture of a data set.

    python benchmarks/published/matrix.py [--pictures 3] [--seeds 2]        about 5 hours on one core
"""

import argparse
import json
import sys
from pathlib import Path
from statistics import mean
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import ROOT, Book, say, table

from leakage import catalog
from leakage.engine.play import plugin
from leakage.spec import Assumptions, Experiment, Part, Picture
from leakage.success import wilson

ATTACKS = {
    "idlg": Part(id="idlg", fields={"tries": 4}),
    "inverting_gradients": Part(id="inverting_gradients", fields={"steps": 1500, "polish": 20}),
}
STRENGTHS: dict[str, list[dict[str, Any]]] = {  # of every protection; those that are not named have their defaults
    "gaussian_noise": [{"scale": s} for s in (0.001, 0.01, 0.1)],
    "laplacian_noise": [{"scale": s} for s in (0.001, 0.01, 0.1)],
    "pruning": [*({"share": s} for s in (0.5, 0.9, 0.99)), {"share": 0.9, "scope": "whole gradient"}, {"share": 0.9, "scope": "random"}],
    "low_precision": [{"number": "fp16"}, {"number": "int8"}, {"number": "int8", "rounding": "stochastic"}],
    "clipping": [{"bound": 1.0}, {"bound": 1.0, "scope": "each layer"}],
    "dp_sgd": [{"clip": 1.0, "sigma": s} for s in (0.01, 0.1, 1.0)],
    "fed_cdp": [{"sigma": s} for s in (0.01, 0.5)],
    "soteria": [{"share": s} for s in (0.1, 0.6, 0.9)],
    "outpost": [{}],
    "ada_defense": [{"variant": "as published"}, {"variant": "as in the code"}],
    "minmax_sampling": [{"ratio": s} for s in (0.05, 0.5)],
    "precode": [{"size": 32}, {"size": 256}],
}

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pictures", type=int, default=3)
parser.add_argument("--seeds", type=int, default=2)
parser.add_argument("--share", default="0/1", help="which part of the work: 0/2 is the first half")
given = parser.parse_args()
part, parts = (int(word) for word in given.share.split("/"))
torch.set_num_threads(1)
known = catalog.describe()
book = Book("matrix" if parts == 1 else f"matrix-{part}", __doc__)


def arms() -> list[tuple[tuple[Part, ...], str]]:
    """Every protection with the names of those who attack it."""
    found: list[tuple[tuple[Part, ...], str]] = [((), "naive")]
    for entry in known.of("defense"):
        for fields in STRENGTHS.get(entry.id, [{}]):
            own = (Part(id=entry.id, fields=fields),)
            found += [(own, who) for who in ("naive", *entry.counters)]
    return found


def cell(defenses: tuple[Part, ...], who: str, attack: str) -> dict[str, Any] | None:
    """The runs of one cell, summed up; None where another process plays them, or the protection refuses the model."""
    runs = []
    for seed in range(1, given.seeds + 1):
        for number in range(given.pictures):
            asked = {"defenses": [one.model_dump() for one in defenses], "who": who, "attack": attack, "picture": number, "seed": seed}
            experiment = Experiment(
                pictures=(Picture(source="cifar10", id=str(number)),),
                defenses=defenses,
                attack=ATTACKS[attack],
                assume=Assumptions(adaptive=who != "naive", counter="" if who in ("naive", "imitate") else who),
                seed=seed,
            )
            try:
                runs.append(book.play(asked, experiment))
            except ValueError as error:
                say(f"{asked}: {error}")
                return None
    seen = sum(run["word"] == "recognisable" for run in runs)
    low, high = wilson(seen, len(runs))
    return {
        "defenses": [{"id": one.id, "fields": plugin_fields(one)} for one in defenses],
        "who": who,
        "attack": attack,
        "runs": len(runs),
        "recognisable": seen,
        "interval": [low, high],
        "psnr": mean(run["psnr"] for run in runs),
        "psnr_each": [run["psnr"] for run in runs],
        "ssim": mean(run["ssim"] for run in runs),
        "identified": mean(run["scores"]["identified"] for run in runs),
        "labels": mean(run["label_right"] for run in runs),
        "grey_psnr": mean(run["grey_psnr"] for run in runs),
    }


def plugin_fields(one: Part) -> dict[str, Any]:
    """Every field of a protection, spelled out."""
    plugin("defense", one)
    return known.get("defense", one.id).resolve(one.fields)


cells = []
work = [(defenses, who, attack) for attack in ATTACKS for defenses, who in arms()]
for number, (defenses, who, attack) in enumerate(work):
    if number % parts == part and (found := cell(defenses, who, attack)):
        cells.append(found)
say()
rows = []
for one in cells:
    name = ", ".join(
        f"{p['id']} {' '.join(f'{v:g}' if isinstance(v, float) else str(v) for v in p['fields'].values())}" for p in one["defenses"]
    )
    right = f"{one['recognisable']} of {one['runs']}"
    rows.append([name or "none", one["attack"], one["who"], right, one["psnr"], one["ssim"], one["identified"], one["labels"]])
table(["protection", "attack", "who", "recognisable", "PSNR", "SSIM", "rank 1", "labels right"], rows)
if parts == 1:
    recipe = {
        "model": "lenet",
        "data": "cifar10",
        "pictures": given.pictures,
        "seeds": given.seeds,
        "attacks": {k: v.fields for k, v in ATTACKS.items()},
    }
    (ROOT / "assets" / "matrix.json").write_text(json.dumps({"about": __doc__, "recipe": recipe, "cells": cells}, indent=1) + "\n")
