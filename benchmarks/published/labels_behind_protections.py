"""Labels behind every protection: the fraction right by every rule, and the fraction that the chosen rule expected.

Every defense with its default fields, an adaptive attacker with its first strategy and a naive one; FedSGD; CIFAR-10 test pictures drawn at
random for every network, protection and batch, so that labels are uniform and repeat; the fraction is that of multisets,
1 - sum_c |n_c - m_c| / (2 B). Untrained nets: another seed for every draw. Trained nets: the last stage of the shipped checkpoints; no
trained MLP ships, so there is none here. No attack is run. "gap" is the best rule's fraction less the chosen one's, where the best is
picked afterwards, by net, batch and attacker. The second table bins the certainties of the chosen rule's labels, and of all rules' labels.

    python benchmarks/published/labels_behind_protections.py [--draws 12] [--nets "LeNet;MLP"] [--batches 1,4,8] [--seed 0] [--name NAME]

On several cores: each plays a share of all readings and writes it down, one line of JSON a reading; then the shares are joined. All
networks and attackers come by turns, so that shares take about as long, and shares that end early (--minutes) are a random sample.

    for k in $(seq 16); do
        python benchmarks/published/labels_behind_protections.py --share $k/16 --nets all --folder parts --minutes 8 &
    done; wait
    python benchmarks/published/labels_behind_protections.py --share 1/1 --batches 1 --seed 10 --draws 4 --folder parts --defenses \
        dp_sgd,fed_cdp,flower_local_dp,exclude_vars,ldp_fl,percentile_privacy,minmax_sampling     # more of the least certain ones
    python benchmarks/published/label_certainty.py parts     # where the constants of the certainty are to be fitted anew
    python benchmarks/published/labels_behind_protections.py --join parts
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections import defaultdict
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch
from _table import save, say, table
from torch import Tensor

from leakage.data.checkpoints import cards
from leakage.data.images import datasets
from leakage.data.readers import Rows
from leakage.engine import labels
from leakage.engine.core import Observation, generator
from leakage.engine.label_certainty import calibrated
from leakage.engine.label_counts import expected_right, guessed_right
from leakage.engine.label_rehearsal import rehearsed
from leakage.engine.labels import RULES
from leakage.engine.loading import ids
from leakage.evaluation.metrics import label_overlap
from leakage.spec.experiment import Assumptions, Experiment, Part
from leakage.workers.adapter import observe

RESNET = Part(id="he_resnet", fields=cards()["resnet-20-cifar10"].fields)
RESNET18 = Part(id="resnet", fields=cards()["resnet18-16-cifar10"].fields)
NETS = {
    "LeNet": (Part(id="lenet"), ""),
    "MLP": (Part(id="mlp"), ""),
    "ConvNet-16": (Part(id="convnet"), ""),
    "ResNet-20": (RESNET, ""),
    "LeNet, trained": (Part(id="lenet"), "lenet-cifar10@20"),
    "ConvNet-16, trained": (Part(id="convnet"), "convnet-16-cifar10@24"),
    "ResNet-20, trained": (RESNET, "resnet-20-cifar10@24"),
}
FITTED = {  # others, by whose readings label_certainty.py fits how certain labels are called
    "LeNet, 5 rounds": (Part(id="lenet"), "lenet-cifar10@5"),
    "ConvNet-16, 5 rounds": (Part(id="convnet"), "convnet-16-cifar10@5"),
    "ResNet18-16": (RESNET18, ""),
    "ResNet18-16, 20 rounds": (RESNET18, "resnet18-16-cifar10@20"),
}
EDGES = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 1.0)
CLASSES = 10  # of CIFAR-10
Reading = dict[str, Any]  # net, defense, batch, attacker and seed; then right and said by rule, and seconds; or what refused it

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--draws", type=int, default=12)
parser.add_argument("--nets", default=";".join(NETS), help='separated by semicolons; "all": these, and those of label_certainty.py')
parser.add_argument("--batches", default="1,4,8")
parser.add_argument("--defenses", default="", help='separated by commas, "none" among them; all where empty')
parser.add_argument("--seed", type=int, default=0, help="of the first draw: other seeds are other pictures and weights")
parser.add_argument("--name", default="labels_behind_protections", help="of the file in benchmarks/results")
parser.add_argument("--share", default="1/1", help="K/N: play the Kth of N shares of the readings")
parser.add_argument("--folder", type=Path, help="of the shares' files; a share that is there goes on where it stopped")
parser.add_argument("--minutes", type=float, default=float("inf"), help="after which no reading is begun")
parser.add_argument("--join", type=Path, help="put the shares of this folder together; nothing is played")


@cache
def cifar10() -> Rows:
    """Return the test pictures."""
    return datasets()["cifar10"].rows()


def readings(given: argparse.Namespace) -> list[Reading]:
    """Return the planned readings, draw after draw, in random order within each draw."""
    defenses = given.defenses.split(",") if given.defenses else ["none", *ids("defense")]
    found = list[Reading]()
    for draw in range(given.draws):
        own = [
            {"net": net, "defense": defense, "batch": size, "attacker": attacker, "seed": given.seed + draw}
            for net in (given.nets if given.nets != "all" else ";".join([*NETS, *FITTED])).split(";")
            for defense in defenses
            for size in map(int, given.batches.split(","))
            for attacker in ("adaptive", "naive")
        ]
        random.Random(draw).shuffle(own)
        found += own
    return found


def play(asked: Reading) -> Reading:
    """Return the fraction right and the certainty, by rule; a refusal or failure is noted with its message."""
    held = cifar10()
    drawn = generator(asked["seed"], "truth", asked["net"], asked["defense"], asked["batch"])  # both attackers attack the same pictures
    chosen = torch.randperm(len(held.labels), generator=drawn)[: asked["batch"]].numpy()
    x = torch.from_numpy(held.pixels[chosen]).permute(0, 3, 1, 2).contiguous().float() / 255
    y = torch.from_numpy(held.labels[chosen]).long()
    model, checkpoint = {**NETS, **FITTED}[asked["net"]]
    defenses = () if asked["defense"] == "none" else (Part(id=asked["defense"]),)
    assume = Assumptions(adaptive=asked["attacker"] == "adaptive")
    try:
        seen = observe(Experiment(model=model, checkpoint=checkpoint, seed=asked["seed"], defenses=defenses, assume=assume), x, y)
    except ValueError as error:  # the model has no place for it
        return {**asked, "refused": str(error)}
    began, probabilities = time.perf_counter(), list[Tensor | None]()

    def noted(seen: Observation) -> Tensor | None:
        probabilities.append(rehearsed(seen))
        return probabilities[-1]

    setattr(labels, "rehearsed", noted)  # noqa: B010  # the module exports its own rules alone
    try:
        answers = labels.recover_by(seen, RULES)
    except Exception as error:  # one reading that fails must not end all others; the table names it
        return {**asked, "failed": f"{type(error).__name__}: {error}"}
    own = probabilities[0] if probabilities else None
    return {
        **asked,
        "seconds": round(time.perf_counter() - began, 4),
        "rule": answers["best"].rule,
        "right": {rule: label_overlap(found.labels, y) for rule, found in answers.items()},
        "said": {rule: found.certainty for rule, found in answers.items()},
        "expected": None if own is None else {rule: expected_right(found.labels, own) for rule, found in answers.items()},
    }


def said_now(one: Reading, rule: str) -> float | None:
    """The certainty of a reading's labels by the constants of today: what the rehearsals said of them was written down."""
    said: float | None = one["said"][rule]
    return said if one["expected"] is None else calibrated(one["expected"][rule], guessed_right(one["batch"], CLASSES))


def play_share(given: argparse.Namespace) -> list[Reading]:
    """Those of this share, each written down at once where a folder is given."""
    own, of = map(int, given.share.split("/"))
    asked, done, ends = readings(given)[own - 1 :: of], list[Reading](), time.monotonic() + 60 * given.minutes
    file = given.folder / f"{own}-of-{of}.jsonl" if given.folder else None
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        done = read(file)
    for number, one in enumerate(asked[len(done) :], len(done) + 1):
        if time.monotonic() > ends:
            break
        found = play(one)
        done.append(found)
        if file:
            with file.open("a") as lines:
                lines.write(json.dumps(found) + "\n")
        if number % 50 == 0 or not file:
            say(f"{number} of {len(asked)}: {found['net']}, {found['defense']}, {found['batch']}, {found['attacker']}: {words_of(found)}")
    return done


def read(file: Path) -> list[Reading]:
    """The whole lines of a share; one that was cut off while it was written is dropped from the file."""
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    whole = [line for line in lines if line.endswith("\n")]
    if len(whole) < len(lines):
        file.write_text("".join(whole))
    return [json.loads(line) for line in whole]


def words_of(found: Reading) -> str:
    """Return the result of one reading in words."""
    if "right" not in found:
        return str(found.get("refused") or found.get("failed"))
    return f"{found['right']['best']:.2f}, said {found['said']['best']}, best {max(found['right'].values()):.2f}"


def mean(values: list[float]) -> float:
    """Return the mean to three digits."""
    return round(statistics.mean(values), 3)


def tally(done: list[Reading], kind: str) -> list[list[Any]]:
    """Count "refused" and "failed" by network, defense and reason."""
    found = [(one["net"], one["defense"], kind, one[kind]) for one in done if kind in one]
    return [[*what, found.count(what)] for what in dict.fromkeys(found)]


def tables(done: list[Reading], given: argparse.Namespace) -> None:
    """Print the gaps and the bins, and save them with the means of every cell."""
    played = [one for one in done if "right" in one and one["net"] in NETS]
    cells, groups = defaultdict[tuple[Any, ...], list[Reading]](list), defaultdict[tuple[Any, ...], list[Reading]](list)
    for one in sorted(played, key=lambda one: (list(NETS).index(one["net"]), one["batch"], one["attacker"], one["defense"])):
        groups[one["net"], one["batch"], one["attacker"]].append(one)
        cells[one["net"], one["defense"], one["batch"], one["attacker"]].append(one)
    rows = []
    for group, own in groups.items():
        right = {rule: mean([one["right"][rule] for one in own]) for rule in RULES}
        rows.append([*group, len(own), *right.values(), round(max(right.values()) - right["best"], 3)])
    say()
    table(["net", "batch", "attacker", "readings", *RULES, "gap"], rows)
    bins = []
    for kind, wanted in (("chosen rule", {"best"}), ("all rules", set(RULES) - {"best"})):
        found = [(said_now(one, rule), one["right"][rule]) for one in played for rule in sorted(wanted)]
        said = [(sure, right) for sure, right in found if sure is not None]
        for low, high in pairwise(EDGES):
            inside = [(sure, right) for sure, right in said if low <= sure < high or sure == high == 1]
            if inside:
                bins.append([kind, f"{low:g} to {high:g}", len(inside), mean([s for s, _ in inside]), mean([r for _, r in inside])])
    say()
    table(["labels of", "said", "batches", "said, mean", "right, mean"], bins)
    seconds = defaultdict[tuple[str, str], list[float]](list)
    for one in played:
        seconds[one["net"], one["attacker"]].append(one["seconds"])
    times = [[*who, mean(found), round(max(found), 3)] for who, found in seconds.items()]
    say()
    table(["net", "attacker", "seconds, mean", "seconds, most"], times)
    refused, failed = tally(done, "refused"), tally(done, "failed")
    for *what, number in [*refused, *failed]:
        say(f"{number} times {', '.join(map(str, what))}")
    save(
        given.name,
        {
            "about": __doc__,
            "readings": len(played),
            "cells": [
                {
                    **dict(zip(("net", "defense", "batch", "attacker"), cell, strict=True)),
                    "draws": len(own),
                    "right": {rule: mean([one["right"][rule] for one in own]) for rule in RULES},
                    "said": mean([-1.0 if (sure := said_now(one, "best")) is None else sure for one in own]),
                }
                for cell, own in cells.items()
            ],
            "groups": rows,
            "bins": bins,
            "seconds": times,
            "refused": refused,
            "failed": failed,
        },
    )


if __name__ == "__main__":
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.join:
        tables([one for file in sorted(given.join.glob("*.jsonl")) for one in read(file)], given)
    else:
        done = play_share(given)
        if given.share == "1/1":
            tables(done, given)
