"""Why attackers that know the rounding do worse than naive ones: many pictures have a gradient that rounds to the same numbers.

Untrained LeNet, CIFAR-10 test pictures, int8. L-BFGS from one start with the naive attacker's distance, with the distance that is 0
inside a rounding step ("within the step"), and with the second from the end of the first. For each answer: how far its gradient lies
outside the steps, and from their middle, as fractions of the gradient's squared norm; the private picture lies outside no step.

    python benchmarks/published/within_the_step.py [--pictures 3]       about 3 minutes on one core
"""

import argparse
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import attacker, save, say, table

from leakage.attacks._lbfgs import search_once
from leakage.engine.core import Observation, generator
from leakage.engine.matching import squared_distance
from leakage.evaluation.metrics import psnr
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.workers import plugin_catalog
from leakage.workers.adapter import prepare

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pictures", type=int, default=3)
given = parser.parse_args()
torch.set_num_threads(1)


def share(seen: Observation, x: torch.Tensor, labels: torch.Tensor) -> float:
    """Return the distance of a picture by this attacker's measure, as a fraction of that of a gradient of zeros."""
    distance, target = squared_distance(seen.as_gradient()), seen.as_gradient()
    nothing = distance({name: torch.zeros_like(g) for name, g in target.items()})
    return float(distance(seen.gradient(x, labels)).detach() / nothing)


runs = []
for rounding in ("nearest", "stochastic"):
    for number in range(given.pictures):
        asked = Experiment(
            pictures=(Picture(source="cifar10", id=str(number)),),
            defenses=(Part(id="low_precision", fields={"rounding": rounding}),),
            attack=Part(id="idlg"),
        )
        naive, within = (
            prepare(asked.model_copy(update={"assume": attacker(who)}).resolve(plugin_catalog.describe()))
            for who in ("naive", "within the step")
        )
        answers = {"the private picture": naive.x}
        for name, scene, begin in (("naive", naive, None), ("within the step", within, None), ("naive, then within", within, "naive")):
            start = answers[begin] if begin else None
            *_, last = search_once(scene.seen, generator(1, "start"), labels=naive.y, steps=200, begin=start, line_search="strong_wolfe")
            answers[name] = last.x
        for name, x in answers.items():
            outside, middle = share(within.seen, x, naive.y), share(naive.seen, x, naive.y)
            runs.append([rounding, number, name, float(psnr(x, naive.x).mean()), outside, middle])
            say(", ".join(map(str, runs[-1])))
say()
table(["rounding", "picture", "answer", "PSNR", "outside the steps", "from their middle"], runs)
save("within_the_step", {"about": __doc__, "runs": runs})
