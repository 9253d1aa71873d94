"""Inverting Gradients on secure aggregation over 1, 2, 4 and 8 phones with 1 to 16 pictures each: does a sum protect?

MLP (one hidden layer of sigmoids) in CIFAR-10 normalisation, or another model, untrained, FedSGD, CIFAR-10 test pictures drawn at random,
10 seeds (pictures, network and start), 500 iterations, TV 0.001, labels recovered from the gradient. With one gradient each, m phones of B
pictures are exactly one batch of m B (a test says so), so each product is computed once. A run succeeds when its verdict is "recognizable"
(docs/verdicts.md); beside it stands the fraction of pictures that the attack picks out of a line-up of 100. A guess without
information never succeeds, and picks out one in a hundred.

    python benchmarks/published/secure_aggregation.py [--model mlp] [--seeds 10] [--steps 500]      about 20 minutes on one core, resumable
"""

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch
from _table import Book, say, table

from leakage.engine.core import generator
from leakage.results.intervals import wilson
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.spec.words import RECOGNIZABLE

PHONES, BATCHES = (1, 2, 4, 8), (1, 2, 4, 8, 16)

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--seeds", type=int, default=10)
parser.add_argument("--steps", type=int, default=500)
parser.add_argument("--model", default="mlp")
given = parser.parse_args()

results_file, found = Book("secure_aggregation", __doc__), dict[int, list[dict[str, Any]]]()
for total in sorted({phones * batch for phones in PHONES for batch in BATCHES}):
    phones = min(total, max(PHONES))
    for seed in range(1, given.seeds + 1):
        places = torch.randperm(10_000, generator=generator(seed, "pictures"))[:total].tolist()
        experiment = Experiment(
            pictures=tuple(Picture(source="cifar10", id=str(place)) for place in places),
            aggregation=Part(id="secure_aggregation", fields={"clients": phones}) if phones > 1 else None,
            model=Part(id=given.model, fields={"normalise": "cifar10"}),
            attack=Part(id="inverting_gradients", fields={"steps": given.steps}),
            seed=seed,
            max_seconds=3600,
        )
        asked = {"model": given.model, "pictures": total, "phones": phones, "seed": seed, "steps": given.steps}
        found.setdefault(total, []).append(results_file.play(asked, experiment))


def describe(results: list[dict[str, Any]]) -> str:
    """Return the success rate with its 95 % interval, and the fraction of pictures picked out."""
    hits = sum(result["word"] == RECOGNIZABLE for result in results)
    low, high = wilson(hits, len(results))
    share = statistics.mean(result["scores"]["identified"] for result in results)
    return f"{hits} of {len(results)} ({100 * low:.0f}-{100 * high:.0f} %), {100 * share:.0f} %"


say()
say("runs recognizable (95 % interval), pictures picked out of a line-up of 100")
table(["phones", *(f"{batch} each" for batch in BATCHES)], [[phones, *(describe(found[phones * b]) for b in BATCHES)] for phones in PHONES])
say()
rows = []
for total, results in found.items():
    psnr = [result["psnr"] for result in results]
    right = statistics.mean(result["scores"]["label_accuracy"] for result in results)
    rows.append([total, statistics.mean(psnr), min(psnr), max(psnr), right, statistics.mean(result["grey_psnr"] for result in results)])
table(["pictures in the sum", "PSNR mean", "lowest", "highest", "labels right", "grey PSNR"], rows)
results_file.save()
