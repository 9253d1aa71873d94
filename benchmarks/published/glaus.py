"""GLAUS and the inversion of MinMax sampling: each attacker's cosine to the gradient by the number of draws, and DLG afterwards.

LeNet: the first test picture of CIFAR-10, ratios 0.05, 0.2 and 0.5; the accomplice has the next picture of the same class. MNIST-CNN
(sigmoid, weights ~ U(-0.5, 0.5)), as in the code of GLAUS: ten phones with the first ten test pictures of class 5, number 9 (from 0) is
attacked, number 7 colludes, ratio 0.05, up to 1000 draws, seed 1; then DLG, 24 steps, on what was made of 20 and of 1000 draws. The sum of
all ten phones, which tells GLAUS the signs of entries that were never sent, stands beside the accomplice alone. Also the sizes |v| that one
draw sends beside |g|. assets/glaus.json holds numbers only, no picture.

    python benchmarks/published/glaus.py        about two minutes of one core
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import ROOT, result, save, say, table

from leakage.data.datasets import datasets
from leakage.engine.client import gradient_client, weights_of
from leakage.engine.core import ClientState, Params, Round, generator
from leakage.engine.strategy import ACCOMPLICE
from leakage.evaluation.baselines import make_baselines
from leakage.evaluation.play import Private, play, prepare_attack
from leakage.protocols.fedsgd import FedSGD
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture
from leakage.workers.adapter import federation, network, origins, plugin
from leakage.workers.private_pictures import load

ID = "minmax_sampling"
SMALL = 300  # points of the hook
torch.set_num_threads(1)


class Frozen(FedSGD):
    """A server that never moves the weights: every draw is of the same gradient, as in GLAUS."""

    def server_update(self, seen: Round) -> Params:
        """Return the same weights."""
        return seen.weights


def flat(update: Params) -> Tensor:
    """Return all entries as one vector (D,)."""
    return torch.cat([value.flatten() for value in update.values()]).double()


def cosine(one: Params, other: Params) -> float:
    """Return the cosine between two gradients."""
    return float(torch.cosine_similarity(flat(one), flat(other), dim=0))


def gradient(experiment: Experiment, picture: Picture) -> Params:
    """Return the gradient of a phone with this picture on the untrained model."""
    x, y = load(experiment.model_copy(update={"pictures": (picture,)}), {})
    model = network(experiment, (x.shape[1], x.shape[2], x.shape[3])).eval()
    sent, _ = gradient_client(model)(weights_of(model), x, y, {})
    return {name: g.detach() for name, g in sent.items()}


def cosines(ratio: float, g: Params, numbers: tuple[int, ...], others: dict[str, Params]) -> list[dict[str, Any]]:
    """For each number of draws: every strategy; GLAUS once for each of the gradients that may give the sizes."""
    defense, rows = plugin("defense", Part(id=ID, fields={"ratio": ratio})), []
    ways = {name: way for name, way in defense.strategies().items() if way.averaging}
    states: dict[str, ClientState] = {name: {} for name in ways}
    ever = torch.zeros(len(flat(g)), dtype=torch.bool)
    for number in range(1, max(numbers) + 1):
        sent = defense.sample(g, generator(1, "defense", 0, ID, number - 1))
        ever |= flat(sent) != 0
        row: dict[str, Any] = {"ratio": ratio, "draws": number, "best possible": float((flat(g) * ever).norm() / flat(g).norm())}
        for name, way in ways.items():
            if number in numbers:
                for who, other in others.items() if way.colluding else [("", {})]:
                    carried = {ACCOMPLICE + layer: value for layer, value in other.items()}
                    row[f"{name}: {who}" if who else name] = cosine(way.invert_update(sent, {**states[name], **carried}), g)
            states[name] = way.infer_state(sent, states[name])
        rows += [row] if number in numbers else []
    return rows


def hook(g: Params, ratio: float) -> dict[str, Any]:
    """What one draw sends of entries beside what they are: every so many of those that were kept, by size."""
    sent = flat(plugin("defense", Part(id=ID, fields={"ratio": ratio})).sample(g, generator(1, "defense", 0, ID, 0)))
    kept = sent.nonzero().squeeze(1)
    order = kept[flat(g)[kept].abs().argsort()]
    smallest = float(sent[kept].abs().min())
    shown = order[:: max(1, len(order) // SMALL)]
    return {"ratio": ratio, "g": flat(g)[shown].abs().tolist(), "v": sent[shown].abs().tolist(), "smallest": smallest, "kept": len(kept)}


def dlg(experiment: Experiment, strategy: str, number: int, accomplice: Picture | None) -> dict[str, Any]:
    """Run DLG on the last of so many draws of the same gradient."""
    assume = Assumptions(strategy=strategy, accomplice=accomplice)
    asked = experiment.model_copy(update={"assume": assume, "attack": Part(id="dlg", fields={"steps": 24, "restarts": 8})})
    x, y = load(asked, {})
    scene = prepare_attack(
        network(asked, (x.shape[1], x.shape[2], x.shape[3])),
        Private(x, y, asked.num_classes),
        replace(federation(asked), protocol=Frozen(), rounds=number, attacked_round=number),
        plugin("attack", asked.attack),
        lambda: make_baselines(origins(asked), x, y, seed=asked.seed),
    )
    *_, frame = play(scene, per_second=1)
    came = result(scene, frame)
    row = {"strategy": strategy, "draws": number, "mse": came.mse, "psnr": came.psnr, "label right": came.label_right}
    return {**row, "word": came.word, "cosine": 1 - scene.known["cosine"], "seconds": came.seconds}


cifar = Experiment(pictures=(Picture(source="cifar10", id="0"),))
labels = [int(label) for label in datasets()["cifar10"].rows().labels[:200]]
friend = Picture(source="cifar10", id=str(labels.index(labels[0], 1)))
own, other = (gradient(cifar, picture) for picture in (cifar.pictures[0], friend))
lenet = [row for ratio in (0.05, 0.2, 0.5) for row in cosines(ratio, own, (1, 2, 5, 20, 100), {"same class": other})]

digits = [int(label) for label in datasets()["mnist"].rows().labels]
fives = [Picture(source="mnist", id=str(place)) for place, label in enumerate(digits) if label == 5][:10]
mnist = Experiment(
    pictures=(fives[9],),
    size=28,
    channels=1,
    model=Part(id="mnist_cnn"),
    defenses=(Part(id=ID, fields={"ratio": 0.05}),),
)
phones = [gradient(mnist, picture) for picture in fives]
added = {layer: torch.stack([g[layer] for g in phones]).sum(0) for layer in phones[0]}
signed = {layer: g.abs() * added[layer].sign() for layer, g in phones[7].items()}  # sizes of the accomplice, signs of the sum
stranger = gradient(mnist, Picture(source="mnist", id=str(digits.index(3))))
others = {"accomplice": phones[7], "accomplice, signs of the sum": signed, "accomplice of another class": stranger}
published = cosines(0.05, phones[9], (1, 10, 100, 1000), others)

ways = plugin("defense", Part(id=ID)).strategies()
after = [
    dlg(mnist, name, number, fives[7] if way.colluding else None) for number in (20, 1000) for name, way in ways.items() if way.averaging
]
for title, found in (("LeNet", lenet), ("MNIST-CNN", published), ("DLG on MNIST-CNN", after)):
    say(f"\n{title}")
    table(list(found[0]), [list(row.values()) for row in found])
body = {"about": __doc__, "defense": ID, "hook": hook(own, 0.05), "cifar": lenet, "digits": published, "dlg": after}
save("glaus", body)
(ROOT / "assets" / "glaus.json").write_text(json.dumps(body, indent=1) + "\n")
