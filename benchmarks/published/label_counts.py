"""Labels of a batch by every rule of `engine/labels.py`: the fraction found, as multisets, 1 - sum_c |n_c - m_c| / (2 B).

CIFAR-10 test pictures drawn at random, so that labels are uniform and repeat; 8 and 32 at a time, 20 draws, mean ± standard error.
Untrained nets: another seed for every draw. Trained nets: the shipped checkpoints. "certainty" is what the attacker expects of the best
rule at least, from the gradient alone. "random" guesses every label uniformly, "balanced" takes every class equally often: neither looks at
a gradient; 1,000 draws each.

    python benchmarks/published/label_counts.py [--draws 20]       about 8 minutes on one core
"""

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch
from _table import save, say, table

from leakage.data.checkpoints import cards
from leakage.data.images import datasets
from leakage.engine.core import generator
from leakage.engine.labels import RULES, recover
from leakage.evaluation.metrics import label_overlap
from leakage.spec.experiment import Experiment, Part
from leakage.workers.adapter import observe

NETS = (
    ("LeNet", Part(id="lenet"), "lenet-cifar10"),
    ("ConvNet-16", Part(id="convnet"), "convnet-16-cifar10"),
    ("ResNet18-16", Part(id="resnet"), "resnet18-16-cifar10"),
    ("LeNet, no biases", Part(id="lenet", fields={"bias": False}), ""),
    ("LeNet*, no biases", Part(id="lenet", fields={"activation": "leaky_relu", "bias": False, "initialisation": "default"}), ""),
)
BASELINE_DRAWS = 1000

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--draws", type=int, default=20)
given = parser.parse_args()
torch.set_num_threads(1)

settings = [(f"{name}, untrained", model, "") for name, model, _ in NETS]
for name, _untrained, id in NETS:
    for stage in cards()[id].stages if id else ():
        model = Part(id=cards()[id].model, fields=cards()[id].fields)
        settings.append((f"{name}, epoch {stage.rounds} ({stage.accuracy:.0%})", model, f"{id}@{stage.rounds}"))


def mean_and_error(values: list[float]) -> dict[str, float]:
    """Return the mean and its standard error."""
    return {"mean": statistics.mean(values), "error": statistics.stdev(values) / len(values) ** 0.5}


def cell(found: dict[str, float] | None) -> str:
    """Format a mean and its error as a cell of the table."""
    return "" if found is None else f"{found['mean']:.3f} ± {found['error']:.3f}"


held = datasets()["cifar10"].rows()
rows, results = [], []
for size in (8, 32):
    for name, model, checkpoint in settings:
        found: dict[str, list[float]] = {rule: [] for rule in RULES}
        certainties = []
        for seed in range(given.draws):
            chosen = torch.randperm(len(held.labels), generator=generator(seed, "truth"))[:size].numpy()
            x = torch.from_numpy(held.pixels[chosen]).permute(0, 3, 1, 2).contiguous().float() / 255
            y = torch.from_numpy(held.labels[chosen]).long()
            seen = observe(Experiment(model=model, checkpoint=checkpoint, seed=seed), x, y)
            for rule in RULES:
                answer = recover(seen, rule)
                found[rule].append(label_overlap(answer.labels, y))
                if rule == "best" and answer.certainty is not None:
                    certainties.append(answer.certainty)
        scores = {rule: mean_and_error(values) for rule, values in found.items()}
        certainty = mean_and_error(certainties) if certainties else None
        results.append({"net": name, "batch": size, "draws": given.draws, "overlap": scores, "certainty": certainty})
        rows.append([size, name, *map(cell, scores.values()), cell(certainty)])
        say(f"batch {size}, {name}: best {cell(scores['best'])}, certainty {cell(certainty)}")

    rng = generator(0, "baseline")
    guesses: dict[str, list[float]] = {"random": [], "balanced": []}
    for _ in range(BASELINE_DRAWS):
        y = torch.randint(10, (size,), generator=rng)
        guesses["random"].append(label_overlap(torch.randint(10, (size,), generator=rng), y))
        guesses["balanced"].append(label_overlap(torch.arange(size) % 10, y))
    for kind, values in guesses.items():
        score = mean_and_error(values)
        results.append({"net": f"({kind})", "batch": size, "draws": BASELINE_DRAWS, "overlap": {"best": score}, "certainty": None})
        rows.append([size, f"({kind})", cell(score), *[""] * len(RULES)])
say()
table(["batch", "net", *RULES, "certainty"], rows)
save("label_counts", {"about": __doc__, "results": results})
