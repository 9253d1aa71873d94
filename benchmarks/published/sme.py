"""Many local steps of FedAvg: SME, which replays no step, beside replaying every step and a naive attacker.

Two CIFAR-10 test pictures on one phone, all of them in every local step; LeNet with ReLU, default initialisation and normalised input;
local rate 0.02, one seed, labels granted; every attack 1,000 steps with TV weight 0.01. Seconds are those of one thread, and say how the
three compare, not more: the machine did other things too. Published (Zhu et al. 2023): as good as replaying, in far less time.

    python benchmarks/published/sme.py [--steps 1000]    five minutes on one core; goes on where it stopped
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import Book, say, table

from leakage.spec.experiment import Assumptions, Experiment, Part, Picture

LOCAL_STEPS = (1, 5, 10, 50)
MODEL = Part(id="lenet", fields={"activation": "relu", "initialisation": "default", "normalise": "cifar10"})
ATTACKERS = {  # in words -> attack, adaptive
    "SME": ("sme", True),
    "every step replayed": ("inverting_gradients", True),
    "naive": ("inverting_gradients", False),
}

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--steps", type=int, default=1000)
given = parser.parse_args()

results_file, rows = Book("sme", __doc__), []
for local_steps in LOCAL_STEPS:
    for words, (attack, adaptive) in ATTACKERS.items():
        experiment = Experiment(
            pictures=(Picture(source="cifar10", id="0"), Picture(source="cifar10", id="1")),
            model=MODEL,
            protocol=Part(id="fedavg", fields={"epochs": local_steps, "rate": 0.02}),
            attack=Part(id=attack, fields={"steps": given.steps, "tv_weight": 0.01}),
            assume=Assumptions(labels=True, adaptive=adaptive),
            seed=1,
            max_seconds=3600,
        )
        found = results_file.play({"local steps": local_steps, "attacker": words, "steps": given.steps}, experiment)
        rows.append([local_steps, words, found["psnr"], found["loss"], found["seconds"], found["grey_psnr"]])
say()
table(["local steps", "attacker", "PSNR", "cosine distance", "seconds", "grey PSNR"], rows)
results_file.save()
