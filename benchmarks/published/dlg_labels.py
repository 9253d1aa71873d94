"""The label that DLG finds with the picture, beside iDLG's rule (Zhao et al. 2020, table 1).

Published, 1,000 runs each, DLG: 89.9 % on MNIST, 83.3 % on CIFAR-100, 79.1 % on LFW; iDLG: 100 % on all three. One picture a run, an
untrained LeNet of another seed each, weights and biases ~ U(-0.5, 0.5); DLG's label is the largest entry of its soft label at the end.
"first start" is DLG as published, a single random start. "answer" is the answer of up to STARTS starts, where another follows a start that
diverges or sticks. "settled" is the step after which the label of the first start stays the same: the worst run and the 90th percentile
say whether STEPS is enough. "diverged": first starts that end at values beyond all pixels.
Differs from the paper: 100 runs, 40 of the faces, 9 of the widest head (one start each, 20 steps); at most STEPS steps instead of 300; LFW
is replaced by the Olivetti faces (40 people, three equal colours), once with a head of 40 and once with LFW's 5,749 outputs.

Found: 93 of 100, 89 of 100, 34 of 40, and 6 of 9 with the widest head. Every first start with a wrong label has also lost the picture (MSE
above 1); up to three starts find all labels but one of the faces. iDLG is always right.

    python benchmarks/published/dlg_labels.py [--runs 100] [--only TEXT]       a quarter of an hour on one core; goes on where it stopped
"""

import argparse
import statistics
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import Book, say, table

from leakage.data.images import datasets
from leakage.engine.core import generator
from leakage.engine.labels import recover
from leakage.engine.matching import diverged
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.workers import plugin_catalog
from leakage.workers.adapter import prepare

STEPS, STARTS = 30, 3
WIDE = {"steps": 20, "starts": 1}  # of 5,749 outputs, where a step takes a second
ARMS: dict[str, tuple[str, int, dict[str, Any], int, str]] = {  # name -> data set, every n-th picture, setting, runs at most, published
    "MNIST": ("mnist", 1, {"size": 28, "channels": 1}, 100, "89.9 %"),
    "CIFAR-100": ("cifar100", 20, {}, 100, "83.3 %"),
    "faces": ("faces", 8, {}, 40, "79.1 % (LFW)"),
    "faces, 5,749 outputs": ("faces", 8, {"outputs": 5749}, 9, "79.1 % (LFW)"),
}


def run(experiment: Experiment) -> dict[str, Any]:
    """Return the labels of one run: the true one, those of the first start and of the answer, and iDLG's."""
    scene = prepare(experiment)
    begun, labels = time.process_time(), list[int]()
    last = moment = None  # of the first start, of all
    for moment in scene.attack.run(scene.seen, generator(experiment.seed, "attack")):
        if last is None or (last.note["start"] == moment.note["start"] and moment.step >= last.step):
            last = moment
            labels.append(int(moment.y.argmax()))
    assert moment is not None
    assert last is not None
    return {
        "true": int(scene.y),
        "first start": labels[-1],
        "answer": int(moment.y.argmax()),
        "iDLG": int(recover(scene.seen).labels),
        "settled": 1 + max((step for step, (one, next) in enumerate(pairwise(labels), 1) if one != next), default=0),
        "answer of start": int(moment.note["start"]),
        "diverged": diverged(last.x, float(last.loss)),
        "loss": float(last.loss),
        "mse": float((last.x - scene.x).square().mean()),
        "answer mse": float((moment.x - scene.x).square().mean()),
        "seconds": round(time.process_time() - begun, 2),
    }


def row(name: str, runs: list[dict[str, Any]], published: str) -> list[Any]:
    """Return one row of the table."""
    found = [f"{sum(run[which] == run['true'] for run in runs)} of {len(runs)}" for which in ("first start", "answer", "iDLG")]
    settled = sorted(run["settled"] for run in runs)
    bad, errors = sum(run["diverged"] for run in runs), [run["mse"] for run in runs]
    return [
        name,
        *found,
        published,
        settled[len(runs) * 9 // 10],
        settled[-1],
        bad,
        statistics.median(errors),
        sum(run["seconds"] for run in runs),
    ]


def main() -> None:
    """Run what is not in the book yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--only", default="", help="only rows whose name has this text")
    given = parser.parse_args()
    torch.set_num_threads(1)
    book, known, rows, counts = Book("dlg_labels", __doc__), plugin_catalog.describe(), [], []
    for name, (source, apart, setting, most, published) in ARMS.items():
        if given.only not in name:
            continue
        pictures, runs = datasets()[source].items(0, most * apart)[::apart], []
        for number in range(min(given.runs, most)):
            picture = Picture.model_validate({"source": source, "id": pictures[number].id})
            budget = WIDE if "outputs" in setting else {"steps": STEPS, "starts": STARTS}
            asked = {"data": name, "picture": picture.id, "seed": number, **budget}
            found = book.known(asked)
            if found is None:
                attack = Part(id="dlg", fields={"steps": budget["steps"], "restarts": budget["starts"]})
                found = run(Experiment(pictures=(picture,), attack=attack, seed=number, **setting).resolve(known))
                book.runs.append({**asked, "result": found})
                book.save()
                say(f"{name}, run {number}: {found}")
            runs.append(found)
        rows.append(row(name, runs, published))
        right = {who: sum(one[who] == one["true"] for one in runs) for who in ("first start", "answer", "iDLG")}
        counts.append({"data": name, "runs": len(runs), **right, "first start, %": 100 * right["first start"] / len(runs)})
    say()
    heads = ["data", "DLG, first start", "DLG, answer", "iDLG", "published DLG", "settled, 90 %", "worst", "diverged", "MSE", "CPU seconds"]
    table(heads, rows)
    book.save(right=counts)


if __name__ == "__main__":
    main()
