"""PRECODE, Soteria, FedKL and ATS on the untrained models of their papers, naive and with each adaptive strategy.

Scheliga et al. 2022 (MLP, CIFAR-10, in their demo): SSIM 0.99969 without PRECODE, 0.0045 with it. Sun et al. 2021: behind Soteria the
error is up to 160 times larger. Ren et al. 2023 and Gao et al. 2021 show no recognizable picture behind FedKL and ATS. None of them tried
adaptive attackers.
Inverting Gradients, 1,000 steps (PRECODE also: the bias attack); CIFAR-10 test pictures. What ATS has shifted is compared as it was before.

    python benchmarks/published/own_models.py [--pictures 2] [--only fedkl]        about an hour on one core
"""

import argparse
import sys
from pathlib import Path
from statistics import mean

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import Book, Fields, attacker, say, table

from leakage.spec.experiment import Experiment, Part, Picture
from leakage.spec.words import RECOGNIZABLE
from leakage.workers import plugin_catalog

SEARCH = Part(id="inverting_gradients", fields={"steps": 1000})
MADE_FOR: dict[str, tuple[Part, list[Fields]]] = {  # protection -> the model, and the strengths
    "precode": (Part(id="mlp", fields={"width": 1024}), [{}]),
    "soteria": (Part(id="convnet", fields={"width": 32}), [{"fraction": 0.1}, {"fraction": 0.6}]),
    "fedkl": (Part(id="he_resnet"), [{}]),
    "ats": (Part(id="he_resnet"), [{}]),
}
ATTACKS = {"precode": (SEARCH, Part(id="linear_layer"))}

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pictures", type=int, default=2)
parser.add_argument("--only", choices=MADE_FOR)
given = parser.parse_args()
torch.set_num_threads(1)
known = plugin_catalog.describe()
results_file = Book("own_models", __doc__, brief=True)


def arms(name: str) -> list[tuple[Part, Part | None, str, Part]]:
    """Return the variants: model, protection (None: without), attacker and attack."""
    model, strengths = MADE_FOR[name]
    attacks = ATTACKS.get(name, (SEARCH,))
    stacks = [Part(id=name, fields=fields) for fields in strengths]
    attackers = ("naive", *known.defenses.get(name).strategies)
    return [(model, None, "naive", attack) for attack in attacks] + [
        (model, stack, who, attack) for stack in stacks for attack in attacks for who in attackers
    ]


rows = []
for name in [given.only] if given.only else MADE_FOR:
    for model, defense, who, attack in arms(name):
        found = []
        for number in range(given.pictures):
            experiment = Experiment(
                model=model,
                pictures=(Picture(source="cifar10", id=str(number)),),
                defenses=(defense,) if defense else (),
                attack=attack,
                assume=attacker(who),
            )
            stack = [defense.model_dump()] if defense else []
            asked = {"model": model.model_dump(), "defenses": stack, "who": who, "attack": attack.id, "picture": number}
            found.append(results_file.play(asked, experiment))
        seen = sum(run["word"] == RECOGNIZABLE for run in found)
        strength = " ".join(str(value) for value in defense.fields.values()) if defense else ""
        rows.append(
            [
                model.id,
                f"{name} {strength}" if defense else "none",
                who if defense else "",
                attack.id,
                mean(run["psnr"] for run in found),
                mean(run["ssim"] for run in found),
                mean(run["grey_psnr"] for run in found),
                f"{seen} of {len(found)}",
            ]
        )
say()
table(["model", "protection", "who", "attack", "PSNR", "SSIM", "grey", "recognizable"], rows)
