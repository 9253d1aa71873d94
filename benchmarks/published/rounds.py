"""The leakage of many rounds: every protection with new randomness, after 1, 5, 20 and 100 rounds, beside epsilon.

The first test pictures of CIFAR-10, one at a time, untrained LeNet (sigmoid) drawn by the seed, raw pixels; a server that hardly
moves the weights (step 1e-6) and has watched the phone for so many rounds; Inverting Gradients with its strongest settings against noise,
and with polishing if little noise is left: the better of both counts. The engine itself computes more rounds than the page offers. Beside
every row: the cosine between what the attacker works with and the gradient, and the epsilon of so many uploads at delta 1e-5 where
differential privacy promises one. Started again, it goes on where it was stopped. assets/rounds.json holds numbers only.

    python benchmarks/published/rounds.py [--pictures 2] [--seeds 1]        about 20 minutes of one core
"""

import argparse
import json
import math
import sys
from dataclasses import asdict, replace
from pathlib import Path
from statistics import mean
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import ROOT, WATCHED, Book, attacker, result, say, table

from leakage.engine.accounting import epsilon
from leakage.evaluation.baselines import make_baselines
from leakage.evaluation.play import PreparedAttack, Private, play, prepare_attack
from leakage.results.precomputed import SHOWING
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.spec.gaussian_privacy import DELTA
from leakage.workers import plugin_catalog
from leakage.workers.adapter import federation, network, origins, plugin
from leakage.workers.private_pictures import load

ROUNDS = (1, 5, 20, 100)
ATTACKS = {
    "smooth": Part(id="inverting_gradients", fields={"steps": 1500}),
    "polished": Part(id="inverting_gradients", fields={"steps": 1000, "step_size": 0.02, "start": "uniform", "polish": 20}),
}
BETWEEN = "count how often"  # at every number of draws it lies between the two others: benchmarks/published/glaus.py
CLEAR = 15.0  # dB of the first: below, noise is left, and the polish does no better (in any of 24 rows where both were played)
PROTECTIONS = [  # whose randomness is drawn anew in every round
    Part(id="gaussian_noise", fields={"scale": 0.01}),
    Part(id="gaussian_noise", fields={"scale": 0.1}),
    Part(id="laplacian_noise", fields={"scale": 0.1}),
    Part(id="dp_sgd", fields={"max_grad_norm": 1.0, "noise_multiplier": 0.01}),
    Part(id="dp_sgd", fields={"max_grad_norm": 1.0, "noise_multiplier": 0.1}),
    Part(id="dp_sgd", fields={"max_grad_norm": 1.0, "noise_multiplier": 1.0}),
    Part(id="fed_cdp", fields={"noise_multiplier": 0.01}),
    Part(id="fed_cdp", fields={"noise_multiplier": 0.5}),
    Part(id="outpost"),
    Part(id="minmax_sampling", fields={"ratio": 0.05}),
    Part(id="low_precision", fields={"number": "int8", "rounding": "stochastic"}),
    Part(id="pruning", fields={"fraction": 0.9, "scope": "random"}),
]

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pictures", type=int, default=2)
parser.add_argument("--seeds", type=int, default=1)
parser.add_argument("--report", action="store_true", help="play nothing: sum up what is there")
given = parser.parse_args()
torch.set_num_threads(1)
known = plugin_catalog.describe()
results_file = Book("rounds", __doc__, brief=True)


def scene_of(experiment: Experiment, rounds: int) -> PreparedAttack:
    """The last of so many rounds, ready to be attacked: `prepare`, past the rounds that an Experiment may have."""
    x, y = load(experiment, {})
    return prepare_attack(
        network(experiment, (x.shape[1], x.shape[2], x.shape[3])),
        Private(x, y, experiment.num_classes),
        replace(federation(experiment), rounds=rounds, attacked_round=rounds),
        plugin("attack", experiment.attack),
        lambda: make_baselines(origins(experiment), x, y, seed=experiment.seed),
    )


def played(asked: dict[str, Any], experiment: Experiment) -> dict[str, Any] | None:
    """The result of one run, with the cosine, from the book or computed; None where it is not there and nothing is to be played."""
    if (there := results_file.known(asked)) or given.report:
        return there
    scene = scene_of(experiment.resolve(known), asked["rounds"])
    *_, frame = play(scene, per_second=1)
    return results_file.note(asked, {**asdict(result(scene, frame)), "cosine": 1 - scene.known["cosine"]})


def promised(defense: Part, rounds: int) -> float | None:
    """Return epsilon of so many uploads; None if none is promised, infinite above 200."""
    model = network(Experiment(), (3, 32, 32))
    noise_multiplier = plugin("defense", defense).effective_noise_multiplier(len(list(model.parameters())))
    return None if noise_multiplier is None else epsilon(noise_multiplier, rounds)


def row_of(defense: Part, who: str, rounds: int) -> dict[str, Any] | None:
    """Return the row of a protection and an attacker after so many rounds, by the better attack; None while runs are missing."""
    smooth = row_by("smooth", defense, who, rounds)
    if smooth is None or smooth["psnr"] < CLEAR:
        return smooth
    polished = row_by("polished", defense, who, rounds)
    return max(smooth, polished, key=lambda row: float(row["psnr"])) if polished else None


def row_by(attack: str, defense: Part, who: str, rounds: int) -> dict[str, Any] | None:
    """Return the row of one attack."""
    runs = []
    for seed in range(1, given.seeds + 1):
        for number in range(given.pictures):
            asked = {"defense": defense.model_dump(), "who": who, "rounds": rounds, "attack": attack}
            asked |= {"picture": number, "seed": seed}
            experiment = Experiment(
                pictures=(Picture(source="cifar10", id=str(number)),),
                protocol=WATCHED["protocol"],
                defenses=(defense,),
                attack=ATTACKS[attack],
                assume=attacker(who),
                seed=seed,
            )
            runs.append(played(asked, experiment))
    if not all(runs):
        return None
    found = [run for run in runs if run]
    bound = promised(defense, rounds)
    return {
        "defense": {"id": defense.id, "fields": known.defenses.get(defense.id).resolve(defense.fields)},
        "who": who,
        "rounds": rounds,
        "attack": attack,
        "runs": len(found),
        **{name: sum(run["word"] == word for run in found) for name, word in SHOWING.items()},
        "psnr": mean(run["psnr"] for run in found),
        "psnr_each": [round(run["psnr"], 2) for run in found],
        "cosine": mean(run["cosine"] for run in found),
        "grey_psnr": mean(run["grey_psnr"] for run in found),
        "epsilon": None if bound is None else {"value": None if math.isinf(bound) else bound, "delta": DELTA},
    }


rows = []
for protection in PROTECTIONS:
    entry = known.defenses.get(protection.id)
    for way in (name for name in entry.strategies_with(averaging=True, colluding=False) if name != BETWEEN):
        rows += [row for rounds in ROUNDS if (row := row_of(protection, way, rounds))]
say()
table(
    ["protection", "strategy", "rounds", "PSNR", "recognizable", "cosine", "epsilon"],
    [
        [
            " ".join([one["defense"]["id"], *(f"{v:g}" if isinstance(v, float) else str(v) for v in one["defense"]["fields"].values())]),
            *(one["who"], one["rounds"], one["psnr"], f"{one['recognizable']} of {one['runs']}", one["cosine"]),
            "-" if one["epsilon"] is None else "inf" if one["epsilon"]["value"] is None else one["epsilon"]["value"],
        ]
        for one in rows
    ],
)
recipe = {"model": "lenet", "data": "cifar10", "pictures": given.pictures, "seeds": given.seeds}
recipe |= {"rounds": list(ROUNDS), "attacks": {name: own.model_dump() for name, own in ATTACKS.items()}}
(ROOT / "assets" / "rounds.json").write_text(json.dumps({"about": __doc__, "recipe": recipe, "cells": rows}, indent=1) + "\n")
