"""Inverting Gradients on FedAvg: the number of local steps and their rate (Geiping et al. 2020, figure 5).

The figure shows single pictures on the untrained ConvNet, after 1, 5, 10 and 100 local steps at the rate 0.0001, and after 5 local steps at
rates up to 0.1. The text says that many small steps hide nothing and that a large rate does.

Here: ConvNet of width 16, one picture in each experiment (CIFAR-10 test pictures 0, 100, 200, 300), one local step per epoch, every local
step replayed, step size 1, TV 0.0001, labels granted, BatchNorm in eval mode, another network for each experiment.
Differs from the paper: width 16 for 64, 300 iterations for 4,800, 3 pictures. Earlier runs of 40 iterations stay in the file: after so few
all rates below 0.1 are below a grey picture.
Found: after 5 local steps 18.8 dB at the rate 0.0001 and 15.5 at 0.1, a grey picture 13.7: a large rate costs the attacker something, as
published, and does not hide the picture. fedavg_unrolled.py has 1 and 20 local steps (18.5 and 18.7 dB).
Started again, it goes on where it was stopped. The last row, 100 local steps, takes as long as all others together.

    python benchmarks/published/fedavg_rates.py [--width 16] [--steps 300] [--pictures 3]       two hours on one core
"""

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import Book, say, table

from leakage.spec.experiment import Assumptions, Experiment, Part, Picture

SLOW, FEW = 1e-4, 5
CELLS = [  # local steps, rate
    (1, SLOW),
    *((FEW, rate) for rate in (SLOW, 1e-1, 1e-2, 1e-3)),
    *((count, SLOW) for count in (10, 100)),
]

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--width", type=int, default=16)
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--pictures", type=int, default=3)
given = parser.parse_args()

results_file, rows = Book("fedavg_rates", __doc__), []
for local, rate in CELLS:
    found = []
    for number in range(given.pictures):
        experiment = Experiment(
            pictures=(Picture(source="cifar10", id=str(100 * number)),),
            model=Part(id="convnet", fields={"width": given.width}),
            protocol=Part(id="fedavg", fields={"epochs": local, "mini_batch": 1, "rate": rate}),
            attack=Part(id="inverting_gradients", fields={"steps": given.steps, "step_size": 1, "tv_weight": 1e-4}),
            assume=Assumptions(labels=True),
            seed=1 + number,
            max_seconds=3600,
        )
        asked = {"E": local, "rate": rate, "width": given.width, "steps": given.steps, "experiment": number}
        found.append(results_file.play(asked, experiment))
    psnr = [result["psnr"] for result in found]
    means = [statistics.mean(result[score] for result in found) for score in ("grey_psnr", "ssim", "loss")]
    first = sum(result["scores"]["rank"] == 1 for result in found)
    rows.append([local, rate, statistics.mean(psnr), statistics.stdev(psnr), *means, f"{first} of {len(psnr)}"])
say()
table(["local steps", "rate", "PSNR", "deviation", "grey PSNR", "SSIM", "cosine distance", "identified"], rows)
results_file.save()
