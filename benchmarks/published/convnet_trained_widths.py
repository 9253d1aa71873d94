"""Inverting Gradients on ConvNets: the effect of training and width (Geiping et al. 2020, sections 5 and 6).

The first 5 CIFAR-10 test pictures, one at a time, labels recovered by the iDLG rule, TV 0.001, one start, BatchNorm in eval mode: the
untrained ConvNet-16, ours after 1, 5 and all rounds, and untrained widths 8, 16, 32 and 64. The paper prints no width for ConvNets; for
ResNet18 of width 16, 64 and 128 it gives 19.02, 22.04 and 22.94 dB. A rank is the median of ranks by pixels, SSIM and LPIPS among 100
test pictures, 1 is identified; what knows nothing averages 50.5. LPIPS stands only where a backbone is on this machine.

    python benchmarks/published/convnet_trained_widths.py [--steps 1500] [--pictures 5] [--seed 1]       about an hour on one core
"""

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import finish, save, say, table

from leakage.data.checkpoints import cards
from leakage.spec.experiment import Experiment, Part, Picture

TRAINED = "convnet-16-cifar10"
SCORES = ("psnr", "registered_psnr", "ssim", "lpips", "rank")

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--steps", type=int, default=1500)
parser.add_argument("--pictures", type=int, default=5)
parser.add_argument("--seed", type=int, default=1)
given = parser.parse_args()

settings = [(f"width {width}, untrained", width, "") for width in (8, 16, 32, 64)]
stages = cards()[TRAINED].stages
settings[2:2] = [(f"width 16, {stage.rounds} rounds ({stage.accuracy:.0%})", 16, f"{TRAINED}@{stage.rounds}") for stage in stages]

runs, rows, baselines = [], [], {}
for name, width, checkpoint in settings:
    found = []
    for index in range(given.pictures):
        experiment = Experiment(
            pictures=(Picture(source="cifar10", id=str(index)),),
            model=Part(id="convnet", fields={"width": width}),
            checkpoint=checkpoint,
            attack=Part(id="inverting_gradients", fields={"steps": given.steps}),
            seed=given.seed,
        )
        result = finish(experiment)
        say(f"{name}, picture {index}: {result.psnr:.1f} dB, rank {result.scores['rank']:g}, {result.seconds:.0f} s")
        found.append(result)
        asked = {"width": width, "checkpoint": checkpoint, "picture": index, "seed": given.seed, "steps": given.steps}
        runs.append({**asked, "result": result})
    means = [statistics.mean(result.scores.get(score, float("nan")) for result in found) for score in SCORES]
    first = sum(result.scores["rank"] == 1 for result in found)
    right = sum(result.label_right for result in found)
    rows.append([name, *means, f"{first} of {len(found)}", f"{right} of {len(found)}", statistics.mean(result.loss for result in found)])
    baselines = {kind: [result.baselines[kind] for result in found if kind in result.baselines] for kind in found[0].baselines}
for kind, scores in baselines.items():
    means = [statistics.mean(one.get(score, float("nan")) for one in scores) for score in SCORES]
    rows.append([f"({kind})", *means, "", "", float("nan")])
say()
table(["model", "PSNR", "registered", "SSIM", "LPIPS", "rank", "identified", "label", "cosine distance"], rows)
save("convnet_trained_widths", {"about": __doc__, "runs": runs})
