"""R-GAP on a noisy gradient, all layers or one layer of a network made 2 and 4 times as wide: does width help, or does the index decide?

The network: conv 4@6 /2 p2 - conv 3@10 /2 p1 - conv 3@18 /2 p1, bias-free, LeakyReLU, one output, label flipped: half of CNN6-d's first
layers, whose second has too few filters. One CIFAR-10 test picture a run; to every tensor of the gradient Gaussian noise is added, NOISE
times its own root mean square. MSE of the picture as found, without clamping, median over pictures and draws of weights and noise.
Zhu and Blaschko 2021, figure 9: width helps only where it lowers the index of rank analysis.

    python benchmarks/published/width_noise.py [--pictures 10] [--draws 2]        about 40 minutes on one core
"""

import argparse
import json
import statistics
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import ROOT, save, say, table

from leakage.engine.core import Params, generator
from leakage.evaluation.metrics import mse
from leakage.networks.grammar import parse, unroll
from leakage.networks.rank import analyse
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.workers.adapter import plugin, prepare

NET = "conv 4@{} /2 p2 - conv 3@{} /2 p1 - conv 3@{} /2 p1"
BASE = (6, 10, 18)
WIDER = {"every layer": (1, 1, 1), "the first layer": (1, 0, 0), "the second layer": (0, 1, 0), "the third layer": (0, 0, 1)}
TIMES = (1, 2, 4)
NOISES = (0.0, 1e-4, 1e-2)

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pictures", type=int, default=10)
parser.add_argument("--draws", type=int, default=2)
given = parser.parse_args()
torch.set_num_threads(1)


def noisy(gradient: Params, scale: float, seed: int) -> Params:
    """Return the gradient with noise of `scale` times the root mean square of each of its tensors."""
    rng = generator(seed, "noise")
    return {name: g + scale * g.square().mean().sqrt() * torch.randn(g.shape, generator=rng, dtype=g.dtype) for name, g in gradient.items()}


def figures(row: dict[str, Any]) -> list[float | str]:
    """Return for every noise the median error, and how often it is lower than the narrow network's on the same picture."""
    lower = {noise: sum(w < n for w, n in zip(row["runs"][noise], rows[0]["runs"][noise], strict=True)) for noise in row["mse"]}
    return [cell for noise, error in row["mse"].items() for cell in (error, f"{lower[noise]} of {len(row['runs'][noise])}")]


rows: list[dict[str, Any]] = []
for part, wider in WIDER.items():
    for times in TIMES:
        if times == 1 and rows:  # the same network again
            rows.append({**rows[0], "wider": part})
            continue
        text = NET.format(*(count * (times if chosen else 1) for count, chosen in zip(BASE, wider, strict=True)))
        analysis = analyse(unroll(parse(text), (3, 32, 32), 1))
        assert analysis.critical
        errors: dict[float, list[float]] = {noise: [] for noise in NOISES}
        grey: list[float] = []
        for number in range(given.pictures):
            for draw in range(given.draws):
                picture = Picture(source="cifar10", id=str(number))
                model = Part(id="custom", fields={"network": text})
                asked = Experiment(pictures=(picture,), model=model, task="flipped", precision="float64", seed=10 * number + draw)
                scene = prepare(asked)
                grey.append(float(mse(torch.full_like(scene.x, 0.5), scene.x)))
                for noise in NOISES:
                    received = scene.seen.received
                    seen = replace(scene.seen, received=replace(received, update=noisy(received.update, noise, asked.seed)))
                    *_, answer = plugin("attack", Part(id="r_gap")).run(seen, generator(asked.seed, "attack"))
                    errors[noise].append(float(mse(answer.x.float(), scene.x)))
        rows.append(
            {
                "wider": part,
                "times": times,
                "network": text,
                "index": analysis.index,
                "critical": analysis.critical.name,
                "mse": {str(noise): statistics.median(values) for noise, values in errors.items()},
                "grey": statistics.median(grey),
                "runs": {str(noise): values for noise, values in errors.items()},
            }
        )
        say(f"{part}, {times} times: index {analysis.index}, {rows[-1]['mse']}")
say()
heads = ["wider", "times", "index", "decided by", *(text for noise in NOISES for text in (f"noise {noise:g}", "lower")), "grey"]
table(heads, [[row["wider"], row["times"], row["index"], row["critical"], *figures(row), row["grey"]] for row in rows])
results = {"about": __doc__, "pictures": given.pictures, "draws": given.draws, "rows": rows}
save("width_noise", results)
(ROOT / "assets" / "width_noise.json").write_text(json.dumps(results, indent=1) + "\n")  # the page Architecture shows it
