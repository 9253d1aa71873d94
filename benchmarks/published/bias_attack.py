"""The bias attack under noise, by estimate; and on batches.

The papers print no numbers: exact recovery without noise is the criterion (Phong et al. 2018, Geiping et al. 2020, proposition D.1).

Noise: an untrained MLP (ReLU, 256 and 256 units), one CIFAR-10 test picture and one seed for every draw, Gaussian noise of that standard
deviation on every entry of the gradient, each estimate of `attacks/linear_layer.py`; the median over the draws of the MSE on [0, 1], guess
clamped. "FCN3" has no biases: there the last layer's gradient comes from the loss, and two layers are undone.
Batches: the same MLP, and one of 1024 units; the share of pictures that come back within 0.001 in every pixel, mean over the draws.

    python benchmarks/published/bias_attack.py [--draws 20]       one to two minutes on one core
"""

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch
from _table import save, say, table

from leakage.attacks._rows import ESTIMATES
from leakage.data.images import datasets
from leakage.engine.core import Attack, Observation, generator
from leakage.evaluation.metrics import mse
from leakage.evaluation.pairing import pair
from leakage.spec.experiment import Experiment, Part
from leakage.workers.adapter import observe, plugin

SCALES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
WIDTHS, BATCHES = (256, 1024), (1, 2, 4, 8, 16)
WITHIN = 1e-3

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--draws", type=int, default=20)
given = parser.parse_args()
torch.set_num_threads(1)
held = datasets()["cifar10"].rows()


def pictures(seed: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Test pictures at random, and their labels."""
    chosen = torch.randperm(len(held.labels), generator=generator(seed, "truth"))[:count].numpy()
    x = torch.from_numpy(held.pixels[chosen]).permute(0, 3, 1, 2).contiguous().float() / 255
    return x, torch.from_numpy(held.labels[chosen]).long()


def answer(seen: Observation, estimate: str = "least squares") -> torch.Tensor:
    """Return the picture that the attack computes."""
    attack: Attack = plugin("attack", Part(id="linear_layer", fields={"estimate": estimate}))
    (moment,) = attack.run(seen, generator(0, "attack"))
    return moment.x


noise = []
for scale in SCALES:
    defenses = (Part(id="gaussian_noise", fields={"scale": scale}),) if scale else ()
    errors: dict[str, list[float]] = {name: [] for name in (*ESTIMATES, "FCN3", "grey picture")}
    for seed in range(given.draws):
        x, y = pictures(seed, 1)
        seen = observe(Experiment(model=Part(id="mlp"), defenses=defenses, seed=seed), x, y)
        for estimate in ESTIMATES:
            errors[estimate].append(float(mse(answer(seen, estimate), x)))
        without = observe(Experiment(model=Part(id="fcn3"), defenses=defenses, seed=seed), x, y)
        errors["FCN3"].append(float(mse(answer(without), x)))
        errors["grey picture"].append(float(mse(torch.full_like(x, 0.5), x)))
    noise.append({"noise": scale, "draws": given.draws, "mse": {name: statistics.median(values) for name, values in errors.items()}})
table(["noise", *noise[0]["mse"]], [[row["noise"], *row["mse"].values()] for row in noise])
say()

batches = []
for width in WIDTHS:
    for size in BATCHES:
        shares = []
        for seed in range(given.draws):
            x, y = pictures(seed, size)
            found = answer(observe(Experiment(model=Part(id="mlp", fields={"width": width}), seed=seed), x, y))
            errors_each = (found[pair(found, x)] - x).abs().flatten(1).amax(1)
            shares.append(float((errors_each < WITHIN).double().mean()))
        batches.append({"width": width, "batch": size, "draws": given.draws, "share": statistics.mean(shares)})
table(["width", "batch", "share exact"], [[row["width"], row["batch"], row["share"]] for row in batches])
save("bias_attack", {"about": __doc__, "noise": noise, "batches": batches})
