"""DLG on the five networks of R-GAP's rank analysis (Zhu and Blaschko 2021, table 3): does the order of errors follow the index?

The first CIFAR-10 test pictures, nets A to E with one output; the label is the opposite of what the network says, and known to the attack.
Activation and optimiser are not stated in the paper. "leaky_relu": that of its code; "sigmoid": smooth, as L-BFGS needs it. At most
STEPS steps a start, TRIES starts unless one succeeds, the best by gradient distance. MSE without clamping, pixels in [0, 1].
Published: A 4.2e-9, B 0.056, C 0.063, D 2.7e-4, E 0.013; index -484, 405, 405, -208, 316.

    python benchmarks/published/dlg_nets.py [--pictures 5] [--only TEXT]        about half an hour on one core; goes on where it stopped
"""

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import Book, say, table

from leakage.networks.grammar import parse, unroll
from leakage.networks.rank import analyse
from leakage.networks.templates import TEMPLATES
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture

STEPS, TRIES = 100, 4
PUBLISHED = {"A": 4.2e-9, "D": 2.7e-4, "E": 0.013, "B": 0.056, "C": 0.063}
ACTIVATIONS = ("leaky_relu", "sigmoid")

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pictures", type=int, default=5)
parser.add_argument("--only", default="", help="only rows whose name has this text: a net or an activation")
given = parser.parse_args()

results_file, rows = Book("dlg_nets", __doc__), []
for activation in ACTIVATIONS:
    for net, published in PUBLISHED.items():
        if given.only not in f"net {net}, {activation}":
            continue
        results = []
        for number in range(given.pictures):
            experiment = Experiment(
                pictures=(Picture(source="cifar10", id=str(number)),),
                model=Part(id="rgap_net", fields={"net": net, "activation": activation}),
                attack=Part(id="idlg", fields={"steps": STEPS, "restarts": TRIES}),
                assume=Assumptions(labels=True),
                task="flipped",
                seed=1 + number,
                max_seconds=3600,
            )
            results.append(results_file.play({"net": net, "activation": activation, "picture": number}, experiment))
        errors = [result["scores"]["mse_norm"] for result in results]
        index = analyse(unroll(parse(TEMPLATES[f"R-GAP's net {net}"]), (3, 32, 32), 1)).index
        grey = statistics.mean(result["baselines"]["grey"]["mse"] for result in results)
        rows.append([net, activation, index, statistics.mean(errors), statistics.median(errors), max(errors), published, grey])
say()
table(["net", "activation", "index", "MSE mean", "median", "worst", "published", "grey"], rows)
results_file.save()
