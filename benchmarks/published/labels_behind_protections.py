"""Labels behind every protection: the fraction right by every rule, and how much of the chosen rule's labels was expected to be right.

Every defense with its default fields, an adaptive attacker with its first strategy and a naive one; FedSGD; CIFAR-10 test pictures drawn at
random, so that labels are uniform and repeat; the fraction is that of multisets, 1 - sum_c |n_c - m_c| / (2 B). Untrained nets: another
seed for every draw. Trained nets: the last stage of the shipped checkpoints. No attack is run. "gap" is the best rule's fraction less the
chosen one's, where the best is picked afterwards, by net, batch and attacker. The second table bins the certainties of all rules' labels.

    python benchmarks/published/labels_behind_protections.py [--draws 12] [--nets LeNet,MLP] [--batches 1,4,8] [--seed 0] [--name NAME]
"""

import argparse
import statistics
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch
from _table import save, say, table

from leakage.data.checkpoints import cards
from leakage.data.images import datasets
from leakage.engine.core import generator
from leakage.engine.labels import RULES, recover_by
from leakage.engine.loading import ids
from leakage.evaluation.metrics import label_overlap
from leakage.spec.experiment import Assumptions, Experiment, Part
from leakage.workers.adapter import observe

NETS = {
    "LeNet": (Part(id="lenet"), ""),
    "ConvNet-16": (Part(id="convnet"), ""),
    "ResNet-20": (Part(id="he_resnet", fields=cards()["resnet-20-cifar10"].fields), ""),
    "MLP": (Part(id="mlp"), ""),
    "LeNet, trained": (Part(id="lenet"), "lenet-cifar10@20"),
    "ConvNet-16, trained": (Part(id="convnet"), "convnet-16-cifar10@24"),
    "ResNet-20, trained": (Part(id="he_resnet", fields=cards()["resnet-20-cifar10"].fields), "resnet-20-cifar10@24"),
}
EDGES = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 1.0)

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--draws", type=int, default=12)
parser.add_argument("--nets", default=";".join(NETS), help="separated by semicolons")
parser.add_argument("--batches", default="1,4,8")
parser.add_argument("--defenses", default="", help="separated by commas; all where empty")
parser.add_argument("--seed", type=int, default=0, help="of the first draw: other seeds are other pictures and weights")
parser.add_argument("--name", default="labels_behind_protections", help="of the file in benchmarks/results")
given = parser.parse_args()
torch.set_num_threads(1)


def play(net: str, defense: str, size: int, seed: int, *, adaptive: bool) -> dict[str, tuple[float, float]]:
    """Rule -> the fraction right and the certainty."""
    chosen = torch.randperm(len(held.labels), generator=generator(seed, "truth"))[:size].numpy()
    x = torch.from_numpy(held.pixels[chosen]).permute(0, 3, 1, 2).contiguous().float() / 255
    y = torch.from_numpy(held.labels[chosen]).long()
    model, checkpoint = NETS[net]
    defenses = (Part(id=defense),) if defense else ()
    seen = observe(
        Experiment(model=model, checkpoint=checkpoint, seed=seed, defenses=defenses, assume=Assumptions(adaptive=adaptive)), x, y
    )
    answers = recover_by(seen, RULES)
    return {rule: (label_overlap(found.labels, y), -1.0 if found.certainty is None else found.certainty) for rule, found in answers.items()}


def mean(values: list[float]) -> float:
    """To three digits."""
    return round(statistics.mean(values), 3)


held = datasets()["cifar10"].rows()
defenses = given.defenses.split(",") if given.defenses else ["", *ids("defense")]
cells, said = list[dict[str, object]](), list[tuple[str, float, float]]()
groups: dict[tuple[str, int, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
for net in given.nets.split(";"):
    for defense in defenses:
        for size in map(int, given.batches.split(",")):
            for adaptive in (True, False):
                try:
                    draws = [play(net, defense, size, given.seed + draw, adaptive=adaptive) for draw in range(given.draws)]
                except ValueError as error:  # the model has no place for it
                    say(f"{net}, {defense}: {error}")
                    break
                right = {rule: mean([draw[rule][0] for draw in draws]) for rule in RULES}
                certainty = mean([draw["best"][1] for draw in draws])
                attacker = "adaptive" if adaptive else "naive"
                cells.append(
                    {"net": net, "defense": defense or "none", "batch": size, "attacker": attacker, "right": right, "said": certainty}
                )
                for rule in RULES:
                    groups[net, size, attacker][rule] += [draw[rule][0] for draw in draws]
                said += [(rule, draw[rule][1], draw[rule][0]) for draw in draws for rule in RULES if draw[rule][1] >= 0]
                words = f"{right['best']:.2f}, said {certainty:.2f}, best {max(right.values()):.2f}"
                say(f"{net}, {defense or 'none'}, {size}, {attacker}: {words}")

rows = []
for (net, size, attacker), found in groups.items():
    fractions = {rule: mean(values) for rule, values in found.items()}
    rows.append([net, size, attacker, *fractions.values(), round(max(fractions.values()) - fractions["best"], 3)])
say()
table(["net", "batch", "attacker", *RULES, "gap"], rows)
bins = []
for kind, wanted in (("chosen rule", {"best"}), ("all rules", set(RULES) - {"best"})):
    for low, high in pairwise(EDGES):
        inside = [(sure, right) for rule, sure, right in said if rule in wanted and (low <= sure < high or sure == high == 1)]
        if inside:
            bins.append([kind, f"{low:g} to {high:g}", len(inside), mean([s for s, _ in inside]), mean([r for _, r in inside])])
say()
table(["labels of", "said", "batches", "said, mean", "right, mean"], bins)
save(given.name, {"about": __doc__, "draws": given.draws, "seed": given.seed, "cells": cells, "groups": rows, "bins": bins})
