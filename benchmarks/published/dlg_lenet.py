"""DLG and iDLG on the untrained LeNet of Zhu et al.: how close do they come on the first CIFAR-10 test pictures?

Published: DLG and iDLG show the pictures as visually exact after 300 steps and give no table of errors; iDLG's label is right in 100 %
of 1,000 runs (Zhao et al. 2020, table 1). Here: raw [0, 1], weights and biases U(-0.5, 0.5), one picture, at most 300 steps a start.
Differs from the papers: up to 3 starts, the next only when one stuck or diverged; one network per seed, the same for all pictures.

    python benchmarks/published/dlg_lenet.py [--seeds 1 2] [--pictures 10]       about 10 minutes per seed on one core
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import finish, save, say, table

from leakage.spec.experiment import Experiment, Part, Picture

AIM = {"idlg": 5e-5, "dlg": 1e-4}  # mean squared error on [0, 1]

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--seeds", type=int, nargs="+", default=[1])
parser.add_argument("--pictures", type=int, default=10)
given = parser.parse_args()

runs, rows = [], []
for seed in given.seeds:
    for attack, aim in AIM.items():
        found = []
        for index in range(given.pictures):
            picture = (Picture(source="cifar10", id=str(index)),)
            result = finish(Experiment(pictures=picture, attack=Part(id=attack, fields={"steps": 300, "restarts": 3}), seed=seed))
            name = f"{attack} seed {seed} picture {index}"
            say(f"{name}: MSE {result.mse:.1e}, {result.psnr:.1f} dB, start {result.starts}, {result.seconds:.0f} s")
            found.append(result)
            runs.append({"attack": attack, "seed": seed, "picture": index, "result": result})
        errors = sorted(result.mse for result in found)
        hits, labels = sum(error <= aim for error in errors), sum(result.label_right for result in found)
        grey = sum(result.grey_psnr for result in found) / len(found)
        middle = sorted(result.psnr for result in found)[len(found) // 2]
        rows.append(
            [attack, seed, errors[0], errors[len(errors) // 2], errors[-1], f"{hits} of {len(found)} <= {aim}", labels, middle, grey]
        )
say()
table(["attack", "seed", "MSE best", "median", "worst", "aim", "labels right", "PSNR median", "grey PSNR"], rows)
save("dlg_lenet", {"about": __doc__, "runs": runs})
