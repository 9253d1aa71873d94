"""The leakage through privacy filters of NVIDIA FLARE and Flower with their defaults: LeNet, CIFAR-10, one picture at a time.

Two phones: one sends a gradient, to which a filter is what it is to a single step of rate 1; one trains for five steps of 0.01 and sends
how far its weights have moved, as these frameworks do. For each filter the cosine of what is sent with what would have been sent, the
share of entries that are not 0, and epsilon; then the pictures of a naive attacker and of each adaptive strategy: Inverting
Gradients, 600 steps and Gauss-Newton, labels granted, so that no filter looks better because of a wrong label. A strategy that averages
watches 16 rounds of the phone that sends gradients, while the server never moves the weights.
Published beside it: FLIP measured a 7 million entries DenseNet after three steps of Adam (issue 1145, 2026): cosine +0.809 behind
PercentilePrivacy, +0.001 behind SVTPrivacy, which leaves 9 % of the entries and spends an epsilon of 70,333 a round.

    python benchmarks/published/deployed_filters.py [--pictures 2]        about 15 minutes of one core; started again, it goes on
"""

import argparse
import math
import sys
from pathlib import Path
from statistics import mean
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import WATCHED, Book, attacker, say, table

from leakage.engine.core import Params
from leakage.engine.whole_distance import flatten
from leakage.evaluation.metrics import gradient_distances
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.workers import plugin_catalog
from leakage.workers.adapter import plugin, prepare
from leakage.workers.attack_job import guarantee

STEPS = 5
CLIENTS = {"gradient": (Part(id="fedsgd"), 1), "five steps": (Part(id="fedavg", fields={"epochs": STEPS, "rate": 0.01}), STEPS)}
FILTERS: dict[str, Part | None] = {
    "none": None,
    "NVFlare percentile": Part(id="percentile_privacy"),
    "NVFlare SVT": Part(id="svt_privacy"),
    "NVFlare SVT before its fix": Part(id="svt_privacy", fields={"version": "before the fix"}),
    "NVFlare exclude_vars last": Part(id="exclude_vars"),
    "Flower local DP (epsilon 1, C 10)": Part(id="flower_local_dp"),
    "Flower local DP (epsilon 100,000, C 1)": Part(id="flower_local_dp", fields={"epsilon": 1e5, "clipping_norm": 1.0}),
    "Flower central DP": Part(id="flower_central_dp"),
    "adaptive clipping": Part(id="adaptive_clipping"),
    "LDP-FL": Part(id="ldp_fl"),
}
ATTACK = Part(id="inverting_gradients", fields={"steps": 600, "step_size": 0.02, "start": "uniform", "polish": 20})
MILLIONS = 7_000_000  # entries of FLIP's DenseNet, about

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pictures", type=int, default=2)
given = parser.parse_args()
torch.set_num_threads(1)
known = plugin_catalog.describe()
results_file = Book("deployed_filters", __doc__, brief=True)


def with_steps(part: Part, steps: int) -> Part:
    """Return the filter, with the number of local steps if it has that field."""
    asks = any(field.name == "steps" for field in known.defenses.get(part.id).fields)
    return Part(id=part.id, fields={**part.fields, **({"steps": steps} if asks else {})})


def experiment(part: Part | None, client: str, picture: int, who: str = "adaptive") -> Experiment:
    """Return the experiment of one cell."""
    protocol, steps = CLIENTS[client]
    settings: dict[str, Any] = {"protocol": protocol} | (dict(WATCHED) if who == "average the rounds" else {})
    return Experiment(
        pictures=(Picture(source="cifar10", id=str(picture)),),
        defenses=(with_steps(part, steps),) if part else (),
        attack=ATTACK,
        assume=attacker(who).model_copy(update={"labels": True}),
        **settings,
    ).resolve(known)


def sent(part: Part | None, client: str, picture: int) -> tuple[Params, float | None]:
    """Return the update of one round, and epsilon."""
    asked = experiment(part, client, picture)
    scene = prepare(asked)
    bound = guarantee(scene)
    return scene.seen.received.history[0].update, None if bound is None else math.inf if bound.value is None else bound.value


let_through = []
for client in CLIENTS:
    for name, part in FILTERS.items():
        pairs = [(sent(part, client, picture), sent(None, client, picture)[0]) for picture in range(given.pictures)]
        let_through.append(
            {
                "client": client,
                "filter": name,
                "cosine": mean(1 - gradient_distances(update, plain)["cosine"] for (update, _), plain in pairs),
                "not_zero": mean(float((flatten(update) != 0).double().mean()) for (update, _), _ in pairs),
                "epsilon": "infinite" if pairs[0][0][1] == math.inf else pairs[0][0][1],
            }
        )
table(["client", "filter", "cosine", "not 0", "epsilon"], [[*row.values()] for row in let_through])
at_flip = plugin("defense", Part(id="svt_privacy")).pure_epsilon(MILLIONS)
say(f"SVT with {MILLIONS:,} entries: epsilon {at_flip:,.0f} (FLIP: 70,333)")

rows = []
for client in CLIENTS:
    for name, part in FILTERS.items():
        ways = ["naive", *(known.defenses.get(part.id).strategies if part else ["adaptive"])]
        for who in ways:
            if who == "average the rounds" and client != "gradient":
                continue
            cells = [({"client": client, "filter": name, "who": who, "picture": p}, p) for p in range(given.pictures)]
            runs = [results_file.play(asked, experiment(part, client, picture, who)) for asked, picture in cells]
            rows.append([client, name, who, mean(run["psnr"] for run in runs), ", ".join(run["word"] for run in runs)])
table(["client", "filter", "who", "PSNR", "verdicts"], rows)
results_file.save(let_through=let_through, epsilon_of_svt={"entries": MILLIONS, "epsilon": at_flip, "FLIP": 70333})
