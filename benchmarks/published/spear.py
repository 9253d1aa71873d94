"""SPEAR: which fraction of a batch comes back from one gradient, what the attack says about it, and where it fails.

An untrained MLP (ReLU, two hidden layers of 1024 units) in CIFAR-10 normalization, CIFAR-10 test pictures and a seed for every draw.
Batches of 8 to 48 pictures, as numbers of 64, 32, 16 and 8 bits, each without a protection, with every picture's gradient clipped (DP-SGD
without noise, at half the length of the mean gradient's), with Gaussian noise of a hundredth and a tenth of the first layer's root mean
square, and pruned by half and by nine tenths. Then raw pixels without normalization, in networks of three widths; four phones with four
pictures each under secure aggregation; the search by samples, as published; several local steps; and what it cannot work on.

MSE: of pictures in [0, 1], median and worst; recovered: the share of pictures with an MSE below 1e-3 (30 dB); lambda: the attack's own
verdict, 1 where all units agree with its pictures; proved: how many of them it calls proved; seconds of one core.

    python benchmarks/published/spear.py [--draws 1]       about 15 minutes on one core, resumable
"""

import argparse
import math
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch
from _table import Book, Fields, say, table

from leakage.data.images import datasets
from leakage.engine.core import Attack, generator
from leakage.evaluation.metrics import mse
from leakage.evaluation.pairing import pair
from leakage.spec.experiment import Experiment, Part
from leakage.workers.adapter import observe, plugin

RECOVERED = 1e-3
BATCHES = (8, 16, 24, 32, 48)
BITS = {
    "float64": (),
    "float32": (),
    "float16": (Part(id="low_precision", fields={"number": "fp16"}),),
    "int8": (Part(id="low_precision"),),
}
PROTECTIONS = ("none", "each picture clipped", "noise 0.01", "noise 0.1", "pruning 0.5", "pruning 0.9")
FIRST = "linear1.weight"

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--draws", type=int, default=1)
given = parser.parse_args()
torch.set_num_threads(1)
held = datasets()["cifar10"].rows()
results_file = Book("spear", __doc__)


def pictures(seed: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Test pictures at random, and their labels."""
    chosen = torch.randperm(len(held.labels), generator=generator(seed, "truth"))[:count].numpy()
    x = torch.from_numpy(held.pixels[chosen]).permute(0, 3, 1, 2).contiguous().float() / 255
    return x, torch.from_numpy(held.labels[chosen]).long()


def protection(name: str, plain: dict[str, torch.Tensor]) -> tuple[Part, ...]:
    """One of PROTECTIONS, as strong as the undefended gradient asks for."""
    kind, _, size = name.partition(" ")
    if kind == "noise":
        return (Part(id="gaussian_noise", fields={"scale": float(size) * float(plain[FIRST].square().mean().sqrt())}),)
    if kind == "pruning":
        return (Part(id="pruning", fields={"fraction": float(size)}),)
    if kind == "each":
        length = float(torch.stack([g.square().sum() for g in plain.values()]).sum().sqrt())
        return (Part(id="dp_sgd", fields={"max_grad_norm": length / 2, "noise_multiplier": 0.0}),)
    return ()


def play(asked: dict[str, Any], model: Fields, *, search: str = "descent", **setting: Any) -> dict[str, Any]:
    """One run; `asked` says how many pictures, which bits and protection, and the draw."""
    if known := results_file.known(asked):
        return known
    x, y = pictures(asked["draw"], asked["pictures"])
    x = x.double() if asked["bits"] == "float64" else x
    base = Experiment(model=Part(id=asked["model"], fields=model), seed=asked["draw"], **setting)
    plain = observe(base, x, y).as_gradient()
    own = protection(asked["protection"], plain) if FIRST in plain else ()
    seen = observe(base.model_copy(update={"defenses": (*own, *BITS[asked["bits"]])}), x, y)
    attack: Attack = plugin("attack", Part(id="spear", fields={"search": search}))
    began = time.process_time()
    *_, last = attack.run(seen, generator(asked["draw"], "attack"))
    seconds = time.process_time() - began
    each = mse(last.x.clamp(0, 1)[pair(last.x, x)], x)
    note: dict[str, Any] = {name: last.note[name] for name in ("rank", "lambda", "proved", "event") if name in last.note}
    middle, share = float(each.median()), float((each < RECOVERED).double().mean())
    found = {"mse": middle, "worst": float(each.max()), "psnr": -10 * math.log10(max(middle, 1e-30))}
    return results_file.note(asked, {**found, "recovered": share, "seconds": seconds, **note})


def run_key(pictures: int, bits: str, protection: str, draw: int, **more: Any) -> dict[str, Any]:
    """Return the key of a run in the file."""
    return {
        "model": "mlp",
        "width": 1024,
        "input": "cifar10",
        "pictures": pictures,
        "bits": bits,
        "protection": protection,
        "draw": draw,
    } | more


def row(run: dict[str, Any]) -> list[Any]:
    """Return the numbers of a run for a table."""
    return [run["mse"], run["worst"], f"{run['recovered']:.0%}", run.get("lambda", "-"), run.get("proved", "-"), f"{run['seconds']:.1f}"]


HEADS = ["MSE", "worst", "recovered", "lambda", "proved", "seconds"]
WIDE: Fields = {"width": 1024, "normalise": "cifar10"}
for draw in range(given.draws):
    rows = []
    for count in BATCHES:
        for bits in BITS:
            for name in PROTECTIONS:
                run = play(run_key(count, bits, name, draw), WIDE, precision="float64" if bits == "float64" else "float32")
                rows.append([count, bits, name, *row(run)])
    say()
    table(["pictures", "bits", "protection", *HEADS], rows)

    rows = []
    for width in (256, 1024, 2048):
        for count in (8, 16, 32):
            run = play(run_key(count, "float32", "none", draw, width=width, input="raw"), {"width": width})
            rows.append([width, count, *row(run)])
    say()
    table(["width, raw pixels", "pictures", *HEADS], rows)

    rows = []
    small: Fields = {"width": 512, "normalise": "cifar10"}
    four = Part(id="secure_aggregation", fields={"clients": 4})
    local: Fields = {"epochs": 5, "rate": 0.01}
    settings: list[tuple[str, int, dict[str, Any]]] = [
        ("four phones, added up", 16, {"aggregation": four}),
        ("one phone", 16, {}),
        ("five local steps", 16, {"protocol": Part(id="fedavg", fields=local)}),
        ("five epochs, 4 pictures each step", 16, {"protocol": Part(id="fedavg", fields=local | {"mini_batch": 4})}),
        ("samples, as published", 4, {"search": "samples"}),
        ("samples, as published", 8, {"search": "samples"}),
        ("samples, as published", 10, {"search": "samples"}),
    ]
    for name, count, setting in settings:
        run = play(run_key(count, "float32", "none", draw, width=512, setting=name), small, **setting)
        rows.append([name, count, *row(run)])
    say()
    table(["setting", "pictures", *HEADS], rows)
    refused: list[tuple[str, Fields, int]] = [
        ("mlp", {"width": 32, "normalise": "cifar10"}, 40),
        ("mlp", {**WIDE, "activation": "sigmoid"}, 8),
        ("fcn3", {"activation": "relu"}, 8),
        ("lenet", {}, 8),
    ]
    for model, fields, count in refused:
        words = ", ".join(str(value) for value in fields.values())
        run = play(run_key(count, "float32", "none", draw, model=model, width=words), fields)
        say(f"\n{model} ({words}), {count} pictures: {run['event']}")
