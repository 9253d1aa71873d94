"""Fits how certain labels are called: the constants of leakage/engine/label_certainty.py, from shares of labels_behind_protections.py.

Certainty is sigmoid(a logit(p) + c) (Platt 1999), p the fraction that rehearsals expect to be right. a and c are those of largest
likelihood of the fractions that are right, of all rules' labels, the chosen rule's counting as much as all others together. The networks
of the fit (FITTED there) are others than those of the table, by which the second half of the output tests it. Readings that needed no
rehearsal are left out.

    python benchmarks/published/label_certainty.py parts       seconds
"""

import argparse
import sys
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch
from _table import save, say, table
from labels_behind_protections import EDGES, FITTED, Reading, mean, read
from torch import Tensor

from leakage.engine.label_certainty import CLOSEST

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("folder", type=Path, help="of the shares")


def numbers(done: list[Reading], rules: set[str]) -> tuple[Tensor, Tensor, Tensor]:
    """logit(p) and 1 (N, 2), the fractions right (N,) and weights (N,), of these rules."""
    pairs = [(one, rule) for one in done for rule in one["right"] if rule in rules]
    p = torch.tensor([one["expected"][rule] for one, rule in pairs]).double().clamp(CLOSEST, 1 - CLOSEST)
    right = torch.tensor([one["right"][rule] for one, rule in pairs]).double()
    weight = torch.tensor([1.0 if rule == "best" else 1 / 7 for _, rule in pairs]).double()
    return torch.stack([p.logit(), torch.ones_like(p)], 1), right, weight


def fitted(given: Tensor, right: Tensor, weight: Tensor) -> Tensor:
    """a and c (2,) by Newton's method, drawn to 1 and 0 by as much as one reading says."""
    start = torch.tensor([1.0, 0.0]).double()
    found = start.clone()
    for _ in range(100):
        said = (given @ found).sigmoid()
        slope = given.T @ (weight * (right - said)) - (found - start)
        information = (given * (weight * said * (1 - said)).unsqueeze(1)).T @ given + torch.eye(2).double()
        found = found + torch.linalg.solve(information, slope) / 2
    return found


def bins(said: Tensor, right: Tensor) -> list[list[object]]:
    """By certainty: how many, what is said and what is right on average."""
    rows = list[list[object]]()
    for low, high in pairwise(EDGES):
        inside = (said >= low) & ((said < high) | (high == 1))
        if bool(inside.any()):
            rows.append([f"{low:g} to {high:g}", int(inside.sum()), mean(said[inside].tolist()), mean(right[inside].tolist())])
    return rows


if __name__ == "__main__":
    found = [one for file in sorted(parser.parse_args().folder.glob("*.jsonl")) for one in read(file)]
    found = [one for one in found if one.get("expected")]
    own = [one for one in found if one["net"] in FITTED]
    others = [one for one in found if one["net"] not in FITTED]
    every = set(found[0]["right"])
    constants = fitted(*numbers(own, every))
    say("SLOPE, OFFSET = " + ", ".join(f"{value:.3f}" for value in constants.tolist()))
    rows = []
    for word, readings in (("fitted", own), ("others", others)):
        for kind, rules in (("chosen rule", {"best"}), ("all rules", every - {"best"})):
            if readings:
                given, right, _ = numbers(readings, rules)
                rows += [[word, kind, *row] for row in bins((given @ constants).sigmoid(), right)]
    table(["networks", "labels of", "said", "batches", "said, mean", "right, mean"], rows)
    save("label_certainty", {"about": __doc__, "readings": [len(own), len(others)], "constants": constants.tolist(), "bins": rows})
