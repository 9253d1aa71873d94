"""Every protection at several strengths against several attacks, naive and with each adaptive strategy: LeNet, CIFAR-10.

Each cell: the first test pictures, one at a time, untrained LeNet (sigmoid) drawn by the seed, raw pixels; or four of them, one on each of
four phones whose updates are added up. The attacks are those that declare themselves among the strongest, with their declared settings
(`Attack.strongest`), as on the page Compare; R-GAP in float64, which it needs. A strategy that combines rounds watches 16 rounds of a
server that never moves the weights; an accomplice has its own picture. Cells are explained instead of run if the adaptive attacker does the
same as the naive one, or if every round sends the same; a protection that refuses the model (FedKL) is named. An adaptive attacker that is
more than 1 dB worse than the naive one has the reason beside it. ROG, GRNN and CI-Net, which are not among the strongest, run too: ROG with
its defaults; the slow GRNN and CI-Net with 1,200 and 1,000 steps (10 and 7 seconds), two pictures, and eight protections of one strength
each. Attacks are absent that do not fit LeNet (SPEAR needs a fully connected layer with ReLU first), or that need what `matrix_scenes.py`
has: a generator of digits, a network trained beforehand, a phone that trains for many steps.
Started again, it goes on where it was stopped; `--share 0/2` and `--share 1/2` play halves of it in two processes with a book each, which
`--join` puts together. assets/matrix.json holds numbers only, no picture of a data set.

    python benchmarks/published/matrix.py [--pictures 3] [--seeds 2]        about an hour of two cores a seed
"""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _cells import EVERY_ROUND, FLAT, give_reasons, is_random, print_cells, totals
from _table import ACCOMPLICE, ROOT, WATCHED, Book, Watched, attacker, say

from leakage.engine.core import AdaptiveStrategy
from leakage.results.worst_case import fits
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.workers import plugin_catalog
from leakage.workers.adapter import plugin, prepare

ONE_PASS = "it solves for what arrived and imitates nothing: what this attacker knows changes nothing"
COUNTED = "it knows how often an entry came, not what was sent: at this ratio the naive attacker has much of the gradient itself"
ERRORS_GROW = "R-GAP solves, and errors of a few per cent ruin it; the naive one reads zeros where nothing came and stays near grey"
NOTHING = "behind so much noise no attack here shows a picture: both end below a plain grey one, where decibels say little"
SEARCH = "so little noise limits nobody: both pictures end where the search does, and the difference is its randomness"
BELOW: dict[tuple[str, ...], str] = {  # protection, attacker (and attack) -> why it gets 1 dB less than the naive one: missing is an error
    ("low_precision", "within the step"): FLAT,
    ("low_precision", "round the guess"): FLAT,
    ("low_precision", "average the rounds"): SEARCH,
    ("gaussian_noise", "average the rounds"): SEARCH,
    ("minmax_sampling", "count how often"): COUNTED,
    ("minmax_sampling", "with an accomplice"): COUNTED,
    ("minmax_sampling", "solve it"): ERRORS_GROW,
    ("minmax_sampling", "average the rounds"): ERRORS_GROW,
    ("dp_sgd", "imitate", "grnn"): NOTHING,
    ("dp_sgd", "average the rounds", "grnn"): NOTHING,
}
STRENGTHS: dict[str, list[dict[str, Any]]] = {  # of every protection; those that are not named have their defaults
    "gaussian_noise": [{"scale": s} for s in (0.001, 0.01, 0.1)],
    "laplacian_noise": [{"scale": s} for s in (0.001, 0.01, 0.1)],
    "pruning": [
        *({"fraction": s} for s in (0.5, 0.9, 0.99)),
        {"fraction": 0.9, "scope": "whole gradient"},
        {"fraction": 0.9, "scope": "random"},
    ],
    "low_precision": [{"number": "fp16"}, {"number": "int8"}, {"number": "int8", "rounding": "stochastic"}],
    "clipping": [{"bound": 1.0}, {"bound": 1.0, "scope": "each layer"}],
    "dp_sgd": [{"max_grad_norm": 1.0, "noise_multiplier": s} for s in (0.01, 0.1, 1.0)],
    "fed_cdp": [{"noise_multiplier": s} for s in (0.01, 0.5)],
    "soteria": [{"fraction": s} for s in (0.1, 0.6, 0.9)],
    "outpost": [{}],
    "ada_defense": [{"variant": "as published"}, {"variant": "as in the code"}],
    "minmax_sampling": [{"ratio": s} for s in (0.05, 0.5)],
    "precode": [{"size": 32}, {"size": 256}],
    "percentile_privacy": [{}, {"percentile": 90.0, "gamma": 100.0}],
    "svt_privacy": [{}, {"version": "before the fix"}],
    "exclude_vars": [{"names": "last"}, {"names": "first"}],
    "flower_local_dp": [{}, {"epsilon": 1000.0, "clipping_norm": 1.0}],
    "flower_central_dp": [{}],
    "adaptive_clipping": [{}],
    "ldp_fl": [{}, {"epsilon": 10.0}],
}

SUMS = [None, Part(id="gaussian_noise", fields={"scale": 0.01})]  # protections of phones whose updates are added up
PHONES = 4
# Attacks that do not name themselves among the strongest.
MORE: dict[str, dict[str, Any]] = {"rog": {}, "grnn": {"steps": 1200}, "ci_net": {"steps": 1000}}
# Attacks that take long -> of how many pictures they are played, and only of these protections, at this place:
SLOW = {"grnn": 2, "ci_net": 2}
FEW = {"gaussian_noise": 1, "pruning": 1, "low_precision": 1, "clipping": 0, "dp_sgd": 1, "soteria": 1, "ada_defense": 0, "precode": 0}

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pictures", type=int, default=3)
parser.add_argument("--seeds", type=int, default=2)
parser.add_argument("--attacks", nargs="+", default=[], metavar="ID", help="play only these; the others as far as they are in the book")
parser.add_argument("--share", default="0/1", help="which part of the work: 0/2 is the first half")
parser.add_argument("--report", action="store_true", help="play nothing: sum up what is there")
parser.add_argument("--join", action="store_true", help="first put the books of both halves together")
given = parser.parse_args()
part, parts = (int(word) for word in given.share.split("/"))
torch.set_num_threads(1)
known = plugin_catalog.describe()
scenario = Experiment(pictures=(Picture(source="cifar10", id="0"),))
wide = scenario.model_copy(update={"precision": "float64"})
fitting = [entry for entry in known.attacks if entry.strongest is not None and (fits(entry, scenario, known) or fits(entry, wide, known))]
ATTACKS = {entry.id: Part(id=entry.id, fields=entry.strongest or {}) for entry in fitting}
ATTACKS |= {id: Part(id=id, fields=fields) for id, fields in MORE.items()}
if given.join:
    Book("matrix", __doc__, brief=True).take(f"matrix-{number}" for number in range(2))
results_file = Book("matrix" if parts == 1 else f"matrix-{part}", __doc__, brief=True)


@dataclass(frozen=True)
class Cell:
    """A protection, its attacker, and the attack."""

    defense: Part | None
    who: str
    attack: str
    phones: int = 1

    @property
    def strategy(self) -> AdaptiveStrategy | None:
        if self.defense is None or self.who == "naive":
            return None
        chosen: AdaptiveStrategy = plugin("defense", self.defense).strategies()[self.who]
        return chosen

    @property
    def same(self) -> str:
        """Why this attacker does what the naive one does; empty when it does not."""
        if self.strategy is None:
            return ""
        if self.attack == "r_gap" and not self.strategy.invert_update:
            return ONE_PASS
        assert self.defense is not None
        if self.strategy.averaging and not is_random(self.defense):
            return EVERY_ROUND
        idle = self.who == "imitate" and known.defenses.get(self.defense.id).default_strategy.idle
        return self.strategy.description if idle else ""

    @property
    def only_read(self) -> bool:
        """Whether nothing is played for it now."""
        return bool(given.report or (given.attacks and self.attack not in given.attacks))

    @property
    def runs(self) -> list[tuple[dict[str, Any], Experiment]]:
        """What is asked, and how it is played: every picture with every seed."""
        defenses = (self.defense,) if self.defense else ()
        watched: Watched = WATCHED if self.strategy and self.strategy.averaging else {}
        accomplice = ACCOMPLICE if self.strategy and self.strategy.colluding else None
        asked: dict[str, Any] = {"defenses": [one.model_dump() for one in defenses], "who": self.who, "attack": self.attack}
        asked |= {"fields": dict(ATTACKS[self.attack].fields)} | ({"phones": self.phones} if self.phones > 1 else {})
        asked |= {"accomplice": accomplice.id} if accomplice else {}
        summed = Part(id="secure_aggregation", fields={"clients": self.phones}) if self.phones > 1 else None
        experiment = Experiment(
            defenses=defenses,
            attack=ATTACKS[self.attack],
            aggregation=summed,
            precision="float64" if self.attack == "r_gap" else "float32",
            assume=attacker(self.who, accomplice),
            **watched,
        )
        return [
            (
                {**asked, "picture": number, "seed": seed},
                experiment.model_copy(update={"pictures": self.pictures(number), "seed": seed}),
            )
            for seed in range(1, given.seeds + 1)
            for number in range(self.count)
        ]

    @property
    def count(self) -> int:
        """Of how many pictures it is played."""
        return min(int(given.pictures), SLOW.get(self.attack, int(given.pictures)))

    def pictures(self, number: int) -> tuple[Picture, ...]:
        """One for each phone."""
        return tuple(Picture(source="cifar10", id=str(number * self.phones + place)) for place in range(self.phones))

    def summed_up(self) -> dict[str, Any] | None:
        """Its runs, played if they are not in the book; None where nothing is to be played and there is not one seed of every picture."""
        defense = self.defense and {"id": self.defense.id, "fields": known.defenses.get(self.defense.id).resolve(self.defense.fields)}
        about = {"defense": defense, "who": self.who, "attack": self.attack} | ({"phones": self.phones} if self.phones > 1 else {})
        if self.same:
            return {**about, "same": self.same}
        try:
            results = [
                results_file.known(asked) if self.only_read else results_file.play(asked, experiment) for asked, experiment in self.runs
            ]
            if not any(results):
                prepare(self.runs[0][1])  # it may be refused
        except ValueError as error:
            return {**about, "refused": str(error)}
        runs = [run for run in results if run]
        if len(runs) < self.count:
            return None
        return {**about, **totals(runs)}


def cells() -> list[Cell]:
    """Return every protection at every strength, with the names of its attackers."""
    arms: list[tuple[Part | None, str]] = [(None, "naive")]
    chosen: list[Part | None] = [None]
    for entry in known.defenses:
        strengths = [Part(id=entry.id, fields=fields) for fields in STRENGTHS.get(entry.id, [{}])]
        chosen += [strengths[FEW[entry.id]]] if entry.id in FEW else []
        arms += [(part, who) for part in strengths for who in ("naive", *entry.strategies)]
    summed = [(part, who) for part in SUMS for who in (["naive"] if part is None else ["naive", *known.defenses.get(part.id).strategies])]
    return [
        *(Cell(defense, who, attack) for attack in ATTACKS for defense, who in arms if attack not in SLOW or defense in chosen),
        *(Cell(defense, who, attack, PHONES) for attack in ATTACKS if attack != "r_gap" for defense, who in summed),
    ]


mine = [cell for number, cell in enumerate(cells()) if number % parts == part and (parts == 1 or not cell.only_read)]
for attack in (given.attacks or ATTACKS) if not given.report else ():  # those that can share a loop do; the rest follows one by one
    results_file.play_together([run for cell in mine if cell.attack == attack and not cell.same for run in cell.runs])
results = [one for cell in mine if (one := cell.summed_up())]
naive = [(one["defense"], one["attack"], one.get("phones", 1)) for one in results if one["who"] == "naive"]
give_reasons(results, BELOW)
begun = {one["attack"] for one in results if one["defense"] and "runs" in one}  # nothing to compare with in the others
results = [one for one in results if (one["defense"], one["attack"], one.get("phones", 1)) in naive and one["attack"] in begun]
say()
print_cells(results)
if parts == 1:
    recipe = {
        "model": "lenet",
        "data": "cifar10",
        "pictures": given.pictures,
        "seeds": given.seeds,
        "attacks": {name: own.fields for name, own in ATTACKS.items()},
        "watched": WATCHED["rounds"],
    }
    (ROOT / "assets" / "matrix.json").write_text(json.dumps({"about": __doc__, "recipe": recipe, "cells": results}, indent=1) + "\n")
