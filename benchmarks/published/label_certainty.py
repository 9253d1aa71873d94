"""Fit the certainty of labels: the constant of leakage/engine/label_certainty.py, from parts of labels_behind_protections.py.

Certainty is sigmoid(logit(g) + a (logit(p) - logit(g))), p the fraction that rehearsals expect to be right, g that of a guess. The
coefficient a is that of largest likelihood of the fractions that are right, of all rules' labels, the chosen rule's counting as much as all
others together. The networks of the fit (FITTED there) are others than those of the table, by which the second half of the output tests it.
Readings that needed no rehearsal are left out.

    python benchmarks/published/label_certainty.py parts       seconds
"""

import argparse
import sys
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch
from _table import save, say, table
from labels_behind_protections import CLASSES, EDGES, FITTED, Reading, mean, read
from torch import Tensor

from leakage.engine.label_certainty import logit
from leakage.engine.label_counts import guessed_right

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("folder", type=Path, help="of the shares")


def numbers(done: list[Reading], rules: set[str]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return logit(p), logit(g), the fractions right and weights, (N,) each, of these rules."""
    pairs = [(one, rule) for one in done for rule in one["right"] if rule in rules]
    p = torch.tensor([logit(one["expected"][rule]) for one, rule in pairs]).double()
    g = torch.tensor([logit(guessed_right(one["batch"], CLASSES)) for one, _ in pairs]).double()
    right = torch.tensor([one["right"][rule] for one, rule in pairs]).double()
    weight = torch.tensor([1.0 if rule == "best" else 1 / 7 for _, rule in pairs]).double()
    return p, g, right, weight


def fitted(p: Tensor, g: Tensor, right: Tensor, weight: Tensor) -> float:
    """The coefficient by Newton's method, drawn to 1 by as much as one reading says."""
    found = 1.0
    for _ in range(100):
        said = (g + found * (p - g)).sigmoid()
        score = float((weight * (right - said) * (p - g)).sum()) - (found - 1)
        information = float((weight * said * (1 - said) * (p - g).square()).sum()) + 1
        found += score / information / 2
    return found


def bins(said: Tensor, right: Tensor) -> list[list[object]]:
    """Return for each bin of certainty the count, the mean certainty, and the mean fraction right."""
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
    coefficient = fitted(*numbers(own, every))
    say(f"COEFFICIENT = {coefficient:.3f}")
    rows = []
    for word, readings in (("fitted", own), ("others", others)):
        for kind, rules in (("chosen rule", {"best"}), ("all rules", every - {"best"})):
            if readings:
                p, g, right, _ = numbers(readings, rules)
                rows += [[word, kind, *row] for row in bins((g + coefficient * (p - g)).sigmoid(), right)]
    table(["networks", "labels of", "said", "batches", "said, mean", "right, mean"], rows)
    save("label_certainty", {"about": __doc__, "readings": [len(own), len(others)], "slope": coefficient, "bins": rows})
