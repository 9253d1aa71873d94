"""From which strength on does a protection stop DLG? Noise, pruning and low precision, against a naive and an adaptive attacker.

DLG's own setting: LeNet with sigmoids, untrained, one CIFAR-10 test picture, L-BFGS on pictures and labels, 300 steps, up to 2 starts.
With noise the adaptive attacker averages 16 rounds of a server that never moves the weights; with pruning and precision it uses the default
strategy. "Recognizable" is the verdict of the page (line-up, SSIM, LPIPS), not a threshold on the error. Zhu et al. 2019, figure 7: noise
stops it from 1e-2 on, pruning from 20 to 30 % on, fp16 does not, int8 does. Started again, it goes on where it was stopped.

    python benchmarks/published/thresholds.py [--pictures 4]        about 1 hour on one core
"""

import argparse
import json
import sys
from pathlib import Path
from statistics import mean
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import ROOT, WATCHED, Book, Watched, say, table

from leakage.results.intervals import wilson
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture
from leakage.spec.words import RECOGNIZABLE

NOISES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
SHARES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99)
SWEEPS: dict[str, list[tuple[str, Part]]] = {  # what is swept -> (where it stands on the axis, the protection)
    "Gaussian noise": [(f"{scale:g}", Part(id="gaussian_noise", fields={"scale": scale})) for scale in NOISES],
    "Laplacian noise": [(f"{scale:g}", Part(id="laplacian_noise", fields={"scale": scale})) for scale in NOISES],
    "Pruning": [(f"{share:.0%}", Part(id="pruning", fields={"fraction": share})) for share in SHARES],
    "Low precision": [(number, Part(id="low_precision", fields={"number": number})) for number in ("fp16", "bf16", "int8")],
}

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pictures", type=int, default=3)
parser.add_argument("--report", action="store_true", help="play nothing: sum up the points that are whole")
given = parser.parse_args()
torch.set_num_threads(1)
results_file = Book("thresholds", __doc__, brief=True)
rows: list[dict[str, Any]] = []
for sweep, points in SWEEPS.items():
    for place, defense in points:
        for adaptive in (False, True):
            found = []
            for number in range(given.pictures):
                asked = {"sweep": sweep, "at": place, "adaptive": adaptive, "picture": number}
                averages = adaptive and "noise" in defense.id
                watched: Watched = WATCHED if averages else {}
                experiment = Experiment(
                    pictures=(Picture(source="cifar10", id=str(number)),),
                    defenses=(defense,),
                    attack=Part(id="dlg", fields={"restarts": 2}),
                    assume=Assumptions(adaptive=adaptive, strategy="average the rounds" if averages else ""),
                    seed=number + 1,
                    **watched,
                )
                found.append(results_file.known(asked) if given.report else results_file.play(asked, experiment))
            runs = [run for run in found if run is not None]
            if len(runs) < len(found):
                continue
            seen = sum(run["word"] == RECOGNIZABLE for run in runs)
            rows.append(
                {
                    "sweep": sweep,
                    "at": place,
                    "id": defense.id,
                    "fields": defense.fields,
                    "who": "adaptive" if adaptive else "naive",
                    "recognizable": seen,
                    "runs": len(runs),
                    "interval": wilson(seen, len(runs)),
                    "psnr": mean(run["psnr"] for run in runs),
                    "psnr_each": [round(run["psnr"], 2) for run in runs],
                    "ssim": mean(run["ssim"] for run in runs),
                    "grey_psnr": mean(run["grey_psnr"] for run in runs),
                }
            )
say()
heads = ["protection", "strength", "who", "recognizable", "PSNR", "SSIM"]
table(heads, [[row["sweep"], row["at"], row["who"], f"{row['recognizable']} of {row['runs']}", row["psnr"], row["ssim"]] for row in rows])
(ROOT / "assets" / "thresholds.json").write_text(json.dumps({"about": __doc__, "pictures": given.pictures, "rows": rows}, indent=1) + "\n")
