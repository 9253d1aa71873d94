"""Attackers that need more than the gradient of a photograph, beside Inverting Gradients: two tables in the form of `matrix.py`.

digits: one MNIST test digit in a gradient of the untrained LeNet of seed 1. GGL, GIFD and GIAS search in a generator that was trained
on other digits. An adaptive attacker tells GIFD the strength of noise; GIAS takes 1,500 steps on its generator's weights, 6 seconds, while
the paper's 8,000 take 22 and end 3 to 5 dB higher. Learning to Invert uses networks that were trained on updates of other digits, of this
LeNet without protection and behind AdaDefense; `learned_inversion.py` trains networks for other protections. Inverting Gradients: 1,000
steps with the weight of the total variation that is best of five without noise (`generators.py`).
training: one CIFAR-10 test picture, on which the phone trains for ten steps of 0.02 (FedAvg); LeNet with ReLU, default initialisation and
normalised input. SME takes the ten steps for a single step at a model in between; other adaptive attacks replay each step.
No strategy combines rounds there, since training moves the model. Protections of a gradient act in every local step, so strategies that
need the exact numbers of a protection are not in that table.

assets/matrix_scenes.json holds numbers only, no picture of a data set.

    python benchmarks/published/matrix_scenes.py [--pictures 2]        about ten minutes of one core; goes on where it was stopped
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _cells import EVERY_ROUND, FLAT, give_reasons, is_random, print_cells, totals
from _table import ROOT, WATCHED, Book, Watched, attacker, say

from leakage.spec.experiment import Experiment, Part, Picture
from leakage.workers import plugin_catalog
from leakage.workers.adapter import plugin

UNTRAINED = "no network was trained behind this protection for this table; the page Training trains one in some minutes"
NO_IMITATION = "it imitates no phone, so it does what somebody does who does not know the protection"
NO_ROUNDS = "a trained network undoes a single gradient, and here 16 rounds are put together"
TAUGHT = {"weight_steps": 1500, "weight_step_size": 0.0001}
TUNED = {"steps": 1000, "tv_weight": 0.01}
BELOW: dict[tuple[str, ...], str] = {  # protection, attacker (and attack) -> why it gets 1 dB less than the naive one: missing is an error
    ("low_precision", "within the step"): FLAT,
}


@dataclass(frozen=True)
class TableScene:
    """What all cells of a table share. `left_out`: attacks that might be expected here -> why they are not."""

    id: str
    title: str
    about: str
    source: Literal["mnist", "cifar10"]
    base: Experiment
    attacks: dict[str, dict[str, Any]]
    protections: Sequence[Part | None]
    left_out: dict[str, str]


SCENES = (
    TableScene(
        id="digits",
        title="A digit, by a trained attacker",
        about="One MNIST digit in a gradient of an untrained LeNet. GGL, GIFD and GIAS search among what a generator produces that was "
        "trained on other digits; Learning to Invert asks a network that has seen what phones send of other digits. An adaptive "
        "attacker tells GIFD how strong the noise is.",
        source="mnist",
        base=Experiment(size=28, channels=1),
        attacks={"inverting_gradients": TUNED, "ggl": {}, "gifd": {}, "gias": TAUGHT, "learning_to_invert": {}},
        protections=(
            None,
            Part(id="gaussian_noise", fields={"scale": 0.06}),
            Part(id="gaussian_noise", fields={"scale": 0.19}),
            Part(id="pruning", fields={"fraction": 0.9}),
            Part(id="low_precision", fields={"number": "int8"}),
            Part(id="soteria", fields={"fraction": 0.6}),
            Part(id="ada_defense", fields={"variant": "as published"}),
        ),
        left_out={"grnn": "it has learned nothing beforehand, and is in the one of photographs"},
    ),
    TableScene(
        id="training",
        title="A phone that trains",
        about="One CIFAR-10 picture, on which the phone trains for ten steps (FedAvg, step size 0.02); LeNet with ReLU, default "
        "initialisation and normalised input. An adaptive attacker replays the ten steps. SME takes them for a single one at a model in "
        "between, and replays nothing.",
        source="cifar10",
        base=Experiment(
            model=Part(id="lenet", fields={"activation": "relu", "initialisation": "default", "normalise": "cifar10"}),
            protocol=Part(id="fedavg", fields={"epochs": 10, "rate": 0.02}),
        ),
        attacks={"inverting_gradients": TUNED, "sme": {}, "rog": {}},
        protections=(
            None,
            Part(id="gaussian_noise", fields={"scale": 0.001}),
            Part(id="gaussian_noise", fields={"scale": 0.01}),
            Part(id="pruning", fields={"fraction": 0.9}),
            Part(id="low_precision", fields={"number": "int8"}),
        ),
        left_out={},
    ),
)

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pictures", type=int, default=2)
given = parser.parse_args()
torch.set_num_threads(1)
known = plugin_catalog.describe()
results_file = Book("matrix_scenes", __doc__, brief=True)


@dataclass(frozen=True)
class SceneCell:
    """One attacker of one protection in a scene."""

    scene: TableScene
    defense: Part | None
    who: str
    attack: str

    @property
    def averages(self) -> bool:
        """Whether it puts rounds together."""
        return self.defense is not None and self.who in known.defenses.get(self.defense.id).strategies_with(averaging=True)

    @property
    def told_noise(self) -> bool:
        """Whether the attack itself is told how strong the noise is."""
        fields = [field.name for field in known.attacks.get(self.attack).fields]
        return self.who != "naive" and "noise" in fields and self.defense is not None and self.defense.id == "gaussian_noise"

    @property
    def without(self) -> dict[str, str]:
        """Why nothing is played for it, under the word for that; empty where something is."""
        entry = known.attacks.get(self.attack)
        if self.who == "naive":
            return {}
        if entry.learned and self.averages:
            return {"absent": NO_ROUNDS}
        if entry.learned and self.defense and self.defense.id != "ada_defense":
            return {"absent": UNTRAINED}
        if self.defense is None:
            return {"same": entry.in_place_of_steps} if entry.in_place_of_steps else {}
        if self.averages and not is_random(self.defense):
            return {"same": EVERY_ROUND}
        if entry.in_place_of_steps and self.who in known.defenses.get(self.defense.id).strategies_with(imitating=True):
            return {"same": NO_IMITATION}
        idle = self.who == "imitate" and known.defenses.get(self.defense.id).default_strategy.idle
        replayed = not self.plain and not entry.in_place_of_steps
        if idle and not replayed and not self.told_noise:
            return {"same": plugin("defense", self.defense).strategies()[self.who].description}
        return {}

    @property
    def plain(self) -> bool:
        """Whether the phone sends a gradient."""
        return known.protocols.get(self.scene.base.protocol.id).sends_gradient

    @property
    def runs(self) -> list[tuple[dict[str, Any], Experiment]]:
        """What is asked, and how it is played: every picture."""
        watched: Watched = WATCHED if self.averages else {}
        fields = dict(self.scene.attacks[self.attack])
        if self.told_noise and self.defense:
            fields["noise"] = float(self.defense.fields["scale"]) / (WATCHED["rounds"] ** 0.5 if self.averages else 1)
        defenses = (self.defense,) if self.defense else ()
        asked = {"scene": self.scene.id, "defenses": [one.model_dump() for one in defenses], "who": self.who, "attack": self.attack}
        changes = {"defenses": defenses, "attack": Part(id=self.attack, fields=fields), "assume": attacker(self.who), "seed": 1, **watched}
        return [
            (
                {**asked, "fields": fields, "picture": number, "seed": 1},
                self.scene.base.model_copy(update={**changes, "pictures": (Picture(source=self.scene.source, id=str(number)),)}),
            )
            for number in range(given.pictures)
        ]

    def summed_up(self) -> dict[str, Any]:
        """Its runs, played unless they are in the book; or why there are none."""
        defense = self.defense and {"id": self.defense.id, "fields": known.defenses.get(self.defense.id).resolve(self.defense.fields)}
        about = {"defense": defense, "who": self.who, "attack": self.attack}
        return about | (self.without or totals([results_file.play(asked, experiment) for asked, experiment in self.runs]))


def attackers(attack: str, part: Part | None, *, plain: bool) -> list[str]:
    """Return the attackers; without a protection the adaptive one differs from the naive one only if more than a gradient is sent."""
    if part is None:
        return ["naive"] if plain else ["naive", "imitate"]
    entry = known.defenses.get(part.id)
    ways = [
        who
        for who in entry.strategies
        if plain or who not in {*entry.strategies_with(averaging=True), *entry.strategies_with(literal=True)}
    ]
    if known.attacks.get(attack).learned:  # whatever else is done about a protection: it asks the network that was trained behind it
        ways = ["imitate", *(who for who in ways if who in entry.strategies_with(averaging=True))]
    return ["naive", *ways]


def cells(scene: TableScene) -> list[SceneCell]:
    """Return every attack on every protection, naive and adaptive."""
    plain = known.protocols.get(scene.base.protocol.id).sends_gradient
    return [
        SceneCell(scene, part, who, attack)
        for attack in scene.attacks
        for part in scene.protections
        for who in attackers(attack, part, plain=plain)
    ]


per_scene = {}
for scene in SCENES:
    mine = cells(scene)
    results_file.play_together([run for cell in mine if not cell.without for run in cell.runs])
    per_scene[scene.id] = [cell.summed_up() for cell in mine]
written = []
for scene in SCENES:
    results = per_scene[scene.id]
    give_reasons(results, BELOW)
    say(f"\n{scene.title}")
    print_cells(results)
    watched = max(WATCHED["rounds"] if cell.averages else 1 for cell in cells(scene))
    recipe = {"data": scene.source, "pictures": given.pictures, "seeds": 1, "attacks": scene.attacks, "watched": watched}
    recipe |= {"protocol": scene.base.protocol.id}
    words = {"id": scene.id, "title": scene.title, "about": scene.about, "left_out": scene.left_out}
    written.append({**words, "recipe": recipe, "cells": results})
(ROOT / "assets" / "matrix_scenes.json").write_text(json.dumps({"about": __doc__, "scenes": written}, indent=1) + "\n")
