"""AdaDefense on LeNet, the first CIFAR-10 test pictures: naive, imitated, and inverted by its formula.

Inverting Gradients in pixel space (raw [0, 1], step 0.02 from even noise, TV 1e-3), then, if the update was inverted, L-BFGS with every
entry weighted by the error of its inversion. `cos` is the cosine between the attacker's gradient and the undefended gradient.
Hu et al. 2024 report no picture and no correct label.

    python benchmarks/published/ada_defense.py [--pictures 5] [--seeds 1]        about 20 minutes on one core
"""

import argparse
import sys
from pathlib import Path
from statistics import mean

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import Book, Fields, attacker, say, table

from leakage.spec.experiment import Experiment, Part, Picture
from leakage.spec.words import RECOGNIZABLE
from leakage.workers.adapter import prepare

SEARCH: Fields = {"step_size": 0.02, "start": "uniform", "tv_weight": 0.001, "steps": 1500}
ATTACKS = {
    "iDLG": Part(id="idlg"),
    "Inverting Gradients": Part(id="inverting_gradients", fields=SEARCH),
    "then L-BFGS": Part(id="inverting_gradients", fields={**SEARCH, "polish": 40}),
}
CODE, PUBLISHED = "as in the code", "as published"
TRAINED = "lenet-cifar10@20"
ARMS = [  # name, variant or None, trained, rounds, who, attack
    ("undefended", None, "", 1, "adaptive", "Inverting Gradients"),
    *((f"{CODE}, naive", CODE, "", 1, "naive", attack) for attack in ("iDLG", "Inverting Gradients")),
    *((f"{CODE}, {strategy}", CODE, "", 1, strategy, "Inverting Gradients") for strategy in ("stand-in of the guess", "signs alone")),
    *((f"{CODE}, read it off", CODE, "", 1, "read it off", attack) for attack in ("iDLG", "Inverting Gradients", "then L-BFGS")),
    (f"{PUBLISHED}, naive", PUBLISHED, "", 1, "naive", "Inverting Gradients"),
    (f"{PUBLISHED}, stand-in of the guess", PUBLISHED, "", 1, "stand-in of the guess", "Inverting Gradients"),
    (f"{PUBLISHED}, read it off", PUBLISHED, "", 1, "read it off", "then L-BFGS"),
    ("trained, undefended", None, TRAINED, 1, "adaptive", "then L-BFGS"),
    (f"trained, {CODE}, naive", CODE, TRAINED, 1, "naive", "Inverting Gradients"),
    (f"trained, {CODE}, read it off", CODE, TRAINED, 1, "read it off", "then L-BFGS"),
    *((f"{CODE}, round {rounds}, read it off", CODE, "", rounds, "read it off", "then L-BFGS") for rounds in (2, 3)),
]

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pictures", type=int, default=5)
parser.add_argument("--seeds", type=int, default=1)
given = parser.parse_args()
torch.set_num_threads(1)
results_file = Book("ada_defense", __doc__)
rows = []
for name, variant, trained, rounds, who, attack in ARMS:
    found, close = [], []
    for seed in range(1, given.seeds + 1):
        for number in range(given.pictures):
            asked = Experiment(
                pictures=(Picture(source="cifar10", id=str(number)),),
                checkpoint=trained,
                defenses=(Part(id="ada_defense", fields={"variant": variant}),) if variant else (),
                rounds=rounds,
                attacked_round=rounds,
                attack=ATTACKS[attack],
                assume=attacker(who),
                seed=seed,
            )
            found.append(results_file.play({"arm": name, "attack": attack, "picture": number, "seed": seed}, asked))
            close.append(1 - prepare(asked).known["cosine"])
    psnr, ssim = [run["psnr"] for run in found], [run["ssim"] for run in found]
    right, seen = sum(run["label_right"] for run in found), sum(run["word"] == RECOGNIZABLE for run in found)
    rows.append(
        [name, attack, mean(close), mean(psnr), min(psnr), max(psnr), mean(ssim), f"{right} of {len(found)}", f"{seen} of {len(found)}"]
    )
say()
table(["what is sent, who attacks", "by", "cos", "PSNR", "least", "most", "SSIM", "labels right", "recognizable"], rows)
say(f"A grey picture: {mean(run['result']['grey_psnr'] for run in results_file.runs):.1f} dB.")
