"""AdaDefense's evaluation again: its attacks, naive and adaptive, on three MNIST test pictures and LeNet (GLAUS: MNIST-CNN).

GRNN is also run on three pictures of CIFAR-10 and of CIFAR-100 (32 x 32, in colour), without a protection for 4,000 steps too.

Hu et al. 2024 attack by GRNN, Inverting Gradients and GLAUS ("four attacks": the released test of GGL runs its optimiser with a budget of
1, so none of its numbers is there), all naive. Here each of six attacks is naive, or applies AdaDefense to its guess too, or inverts it;
with the formula of the paper and with that of the code. Beside stand the published numbers of LeNet in the paper's units: its "MSE" is a
root in grey levels. GLAUS, as in its code: MNIST-CNN, ratio 0.05, an accomplice of class five, DLG; the draws are of AdaDefense's update,
in which nearly all entries have the same size, so that counts rank nothing. An adaptive attacker uses only the sign of every received
entry, and applies AdaDefense to the guess; it then needs no accomplice.

    python benchmarks/published/ada_defense_table.py [--pictures 3]        about half an hour on one core; goes on where it stopped
"""

import argparse
import sys
from dataclasses import asdict, replace
from pathlib import Path
from statistics import mean
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import Book, Fields, attacker, result, say, table

from leakage.data.datasets import datasets
from leakage.defenses._minmax import read_sums
from leakage.defenses.ada_defense import AdaDefense
from leakage.defenses.minmax_sampling import MinMaxSampling
from leakage.engine.core import AdaptiveStrategy, ClientState, Defense, Params, Round
from leakage.engine.federation import Federation
from leakage.evaluation.baselines import make_baselines
from leakage.evaluation.play import Private, play, prepare_attack
from leakage.protocols.fedsgd import FedSGD
from leakage.spec.experiment import Assumptions, Channels, Experiment, Part, Picture, Side
from leakage.spec.words import RECOGNIZABLE
from leakage.workers.adapter import federation, network, origins, plugin
from leakage.workers.private_pictures import load

VARIANTS = {"the paper": "as published", "the code": "as in the code"}
KNOWING = ("stand-in of the guess", "read it off")
SEARCH: Fields = {"step_size": 0.02, "start": "uniform", "tv_weight": 0.001, "steps": 1500}
LBFGS: Fields = {"steps": 60, "restarts": 2}
ATTACKS: dict[str, tuple[str, Fields]] = {
    "GRNN": ("grnn", {"steps": 1000}),
    "GGL": ("ggl", {}),
    "Inverting Gradients": ("inverting_gradients", SEARCH),
    "DLG": ("dlg", LBFGS),
    "iDLG": ("idlg", LBFGS),
    "GRNN, CIFAR-10": ("grnn", {"steps": 1000}),
    "GRNN, CIFAR-100": ("grnn", {"steps": 1000}),
    "GRNN, CIFAR-10, 4,000 steps": ("grnn", {"steps": 4000}),
    "GRNN, CIFAR-100, 4,000 steps": ("grnn", {"steps": 4000}),
}
LONGER = tuple(name for name in ATTACKS if "4,000" in name)  # without a protection only
PUBLISHED: dict[
    str, tuple[Fields, Fields]
] = {  # attack -> (no defense, AdaDefense): "MSE" and SSIM of table IV, LeNet, and labels of tables II and III
    "GRNN": ({"rmse255": 0.65, "ssim": 1.0, "labels": "all right"}, {"rmse255": 173.44, "ssim": -0.003, "labels": "all wrong"}),
    "GRNN, CIFAR-10": ({"rmse255": 1.97, "ssim": 0.997, "labels": "all right"}, {"rmse255": 143.19, "ssim": 0.0, "labels": "all wrong"}),
    "GRNN, CIFAR-100": ({"rmse255": 1.79, "ssim": 0.998, "labels": "all right"}, {"rmse255": 145.36, "ssim": 0.003, "labels": "all wrong"}),
    "Inverting Gradients": ({"rmse255": 19.23, "ssim": 0.825}, {"rmse255": 90.62, "ssim": 0.3}),
    "GLAUS": ({"labels": "5 of 5, recognizable"}, {"labels": "1 of 5, all read as five"}),
}
DRAWS = 200
DIGITS = (8, 4, 9)  # of GLAUS's table III, in its order

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pictures", type=int, default=3)
given = parser.parse_args()
torch.set_num_threads(1)
results_file = Book("ada_defense_table", __doc__)


class Frozen(FedSGD):
    """A server that never moves the weights: every draw is of the same gradient, as in GLAUS."""

    def server_update(self, seen: Round) -> Params:
        """Return the same weights."""
        return seen.weights


class Unknown(AdaDefense):
    """AdaDefense against a naive attacker."""

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        """Nothing is done about it."""
        return {"unknown": AdaptiveStrategy("not known")}


class Behind(MinMaxSampling):
    """MinMax sampling of what another protection made: it draws from what is sent."""

    stage = "update"


class Known(Behind):
    """The same against an adaptive attacker: a received entry is its sign times the usual size of AdaDefense's entries."""

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        """Signs, in place of ranks."""
        usual = super().strategies()["with an accomplice"]
        return {
            "signs": replace(usual, description="known: every entry that came is a stand-in", invert_update=self.signs, colluding=False)
        }

    def signs(self, received: Params, state: ClientState) -> Params:
        """Return 1, -1, and 0 for entries that never arrived; only directions are compared."""
        after = self._add_draw(received, state)
        return {layer: read_sums(after, layer).lower.sign().to(v) for layer, v in received.items()}


def digit(number: int) -> Picture:
    """Return a test picture of MNIST."""
    return Picture(source="mnist", id=str(number))


def plain(attack: str, variant: str, who: str, number: int) -> dict[str, Any]:
    """Run an attack that takes the update for a gradient."""
    id, fields = ATTACKS[attack]
    polish: Fields = {"polish": 40} if id == "inverting_gradients" and who == "read it off" else {}
    coloured = "CIFAR" in attack
    size: Side = 32 if coloured else 28
    channels: Channels = 3 if coloured else 1
    asked = Experiment(
        pictures=(Picture(source="cifar100" if "CIFAR-100" in attack else "cifar10", id=str(number)) if coloured else digit(number),),
        size=size,
        channels=channels,
        defenses=(Part(id="ada_defense", fields={"variant": VARIANTS[variant]}),) if variant else (),
        attack=Part(id=id, fields={**fields, **polish}),
        assume=attacker(who),
    )
    return results_file.play({"attack": attack, "variant": variant, "who": who, "picture": number}, asked)


def glaus(variant: str, who: str, label: int, attack: Part) -> dict[str, Any]:
    """Combine the draws of one phone's update, and run `attack` on the last of them."""
    labels = [int(label) for label in datasets()["mnist"].rows().labels]
    number, friend = labels.index(label), [place for place, own in enumerate(labels) if own == 5][7]
    name = "GLAUS" if attack.id == "dlg" else "GLAUS, then Inverting Gradients"
    cell = {"attack": name, "variant": variant, "who": who, "picture": number}
    if found := results_file.known(cell):
        return found
    assume = Assumptions(strategy="with an accomplice", accomplice=digit(friend))
    experiment = Experiment(pictures=(digit(number),), size=28, channels=1, model=Part(id="mnist_cnn"), attack=attack, assume=assume)
    ratio, knows = 0.05, who != "naive"
    protections: list[Defense] = [Known(ratio=ratio) if knows and variant else Behind(ratio=ratio)]
    if variant:
        protections = [(AdaDefense if knows else Unknown)(variant=VARIANTS[variant]), *protections]
    setting = Federation.of(Frozen(), protections, federation(experiment).threat, seed=experiment.seed)
    x, y = load(experiment, {})
    scene = prepare_attack(
        network(experiment, (1, 28, 28)),
        Private(x, y, experiment.num_classes),
        replace(setting, rounds=DRAWS, attacked_round=DRAWS),
        plugin("attack", attack),
        lambda: make_baselines(origins(experiment), x, y, seed=experiment.seed),
    )
    *_, frame = play(scene, per_second=1)
    return results_file.note(cell, {**asdict(result(scene, frame)), "cosine": 1 - scene.known["cosine"], "read as": frame.labels[0]})


def row(attack: str, variant: str, who: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the means over the pictures, and the published numbers."""
    told = PUBLISHED.get(attack, ({}, {}))[bool(variant)] if who == "naive" else {}
    return {
        "attack": attack,
        "variant": variant or "none",
        "who": who,
        "psnr": mean(run["psnr"] for run in found),
        "ssim": mean(run["ssim"] for run in found),
        "rmse255": mean(run["scores"]["rmse255"] for run in found),
        "labels": f"{sum(run['label_right'] for run in found)} of {len(found)}",
        "recognizable": f"{sum(run['word'] == RECOGNIZABLE for run in found)} of {len(found)}",
        "published": ", ".join(f"{name} {value}" for name, value in told.items()),
    }


rows = []
for attack in ATTACKS:
    protected = [] if attack in LONGER else [(variant, who) for variant in VARIANTS for who in ("naive", *KNOWING)]
    for variant, who in [("", "naive"), *protected]:
        rows.append(row(attack, variant, who, [plain(attack, variant, who, number) for number in range(given.pictures)]))
LABELS = DIGITS[: given.pictures]
for search in (Part(id="dlg", fields={"steps": 24, "restarts": 8}), Part(id="inverting_gradients", fields=SEARCH)):
    for variant, who in [("", "naive"), *((variant, who) for variant in VARIANTS for who in ("naive", "knows"))]:
        name = "GLAUS" if search.id == "dlg" else "GLAUS, then Inverting Gradients"
        rows.append(row(name, variant, who, [glaus(variant, who, label, search) for label in LABELS]))
results_file.save(rows=rows, published=PUBLISHED, draws=DRAWS)
say()
table(list(rows[0]), [list(one.values()) for one in rows])
