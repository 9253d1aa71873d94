"""GradInversion with and without BatchNorm's statistics (Yin et al. 2021; Huang et al. 2021 ask for exactly this).

Train-mode BatchNorm, untrained ConvNet-16, batches of 4 CIFAR-10 test pictures, labels granted, the same start, network and settings with
the statistics granted exactly, with those that the model stores (0 and 1: it is untrained), and with none. Paired by batch.
Published: both papers report that the attack weakens strongly without exact statistics; no number for this setting.

    python benchmarks/published/gradinversion_statistics.py [--batches 5] [--steps 400] [--kinds none exact]    about 25 minutes
"""

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import Book, say, table

from leakage.spec.experiment import Assumptions, Experiment, Part, Picture

SCORES = ("psnr", "ssim", "lpips", "rank")

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--batches", type=int, default=5)
parser.add_argument("--steps", type=int, default=400)
parser.add_argument("--kinds", nargs="+", default=["none", "exact", "running"])
given = parser.parse_args()

results_file = Book("gradinversion_statistics", __doc__)
results: dict[str, list[dict[str, Any]]] = {kind: [] for kind in given.kinds}
for batch in range(given.batches):
    for kind in given.kinds:
        experiment = Experiment(
            pictures=tuple(Picture(source="cifar10", id=str(4 * batch + place)) for place in range(4)),
            model=Part(id="convnet", fields={"width": 16}),
            batch_norm="batch",
            attack=Part(id="gradinversion", fields={"steps": given.steps, "starts": 1}),
            assume=Assumptions(labels=True, statistics=kind),
            seed=1 + batch,
            max_seconds=3600,
        )
        results[kind].append(results_file.play({"batch": batch, "statistics": kind, "steps": given.steps}, experiment))

rows = []
for kind, own_results in results.items():
    means = [statistics.mean(result["scores"].get(score, float("nan")) for result in own_results) for score in SCORES]
    gaps = [result["psnr"] - without["psnr"] for result, without in zip(own_results, results["none"], strict=True)]
    error = statistics.stdev(gaps) / len(gaps) ** 0.5 if len(gaps) > 1 else float("nan")
    rows.append([kind, *means, f"{statistics.mean(gaps):+.2f} ± {error:.2f}"])
for name in ("grey", "noise"):
    known = [result["baselines"][name] for result in results["none"]]
    rows.append([f"({name})", *[statistics.mean(one.get(score, float("nan")) for one in known) for score in SCORES], ""])
say()
table(["statistics", "PSNR", "SSIM", "LPIPS", "rank", "PSNR against none (standard error)"], rows)
results_file.save()
