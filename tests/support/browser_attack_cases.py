"""What the program computes for the attacks that the browser also computes (tests/js/attack_cases.json), in float64.

Command that writes the file anew: python -m tests.support.browser_attack_cases
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from leakage.attacks._adam import Descent
from leakage.attacks._lbfgs import search_once
from leakage.attacks.linear_layer import LinearLayer
from leakage.engine.core import Model, Observation, generator
from leakage.engine.federation import Federation, ThreatModel
from leakage.engine.label_probes import head
from leakage.engine.labels import counts, mean_predictions, nearest_counts, recover, sign_free
from leakage.engine.matching import Smoothness, distance
from leakage.engine.observe import observe, ready
from leakage.engine.weights import untrained
from leakage.models.lenet import LeNet
from leakage.models.mlp import MLP
from leakage.models.mnist_cnn import MnistCNN
from leakage.protocols.fedsgd import FedSGD
from tests.support.browser_network_cases import numbers_of
from tests.support.browser_protection_cases import compute_protections

FILE = Path(__file__).parents[1] / "js" / "attack_cases.json"
TEXTS = ("", "abc", "1:attack", "0:label probes", "a text that is longer than one block of 64 bytes, with an umlaut: \u00fc, and so on")
CLASSES, SHAPE, SEED = 5, (3, 8, 8), 1
LENET_STAR = LeNet(**LeNet.presets["LeNet* (Zhu and Blaschko 2021)"])
NETWORKS: dict[str, Model] = {"lenet": LeNet(), "lenet_star": LENET_STAR, "mlp": MLP(), "mnist_cnn": MnistCNN()}


def compute_cases() -> dict[str, Any]:
    """Compute the content of the file."""
    return {
        "digests": {text: hashlib.sha256(text.encode()).hexdigest() for text in TEXTS},
        "random": compute_random(),
        "weights": [compute_weights(name) for name in NETWORKS],
        "distances": [compute_distance(kind) for kind in ("squared", "cosine")],
        "variations": [compute_variation(shape) for shape in ((2, 3, 5, 4), (1, 1, 1, 6), (1, 2, 7, 1))],
        "labels": compute_labels(),
        "searches": compute_searches(),
        "linear_layer": compute_linear_layer(),
        "protections": compute_protections(),
    }


def compute_random() -> dict[str, Any]:
    """Draw from one generator, in the order of the keys."""
    rng = generator(SEED, "attack")
    return {
        "seed": rng.initial_seed() & 0xFFFFFFFF,
        "uniform": torch.rand(5, generator=rng).tolist(),
        "normal": {str(count): torch.randn(count, generator=rng).tolist() for count in (3, 15, 16, 37)},
        "permutation": torch.randperm(12, generator=rng).tolist(),
        "range": torch.empty(5).uniform_(-0.3, 0.4, generator=rng).tolist(),
        "start": torch.randn((1, 3, 8, 8), generator=generator(SEED, "attack")).flatten().tolist(),
    }


def compute_weights(name: str) -> dict[str, Any]:
    model = untrained(NETWORKS[name], (3, 16, 16), 10, seed=7)
    weights = torch.cat([value.detach().flatten() for value in model.parameters()])
    return {"network": name, "count": len(weights), "first": weights[:4].tolist(), "sha256": hashlib.sha256(weights.numpy()).hexdigest()}


def compute_distance(kind: str) -> dict[str, Any]:
    gradient, target = numbers_of(30, 1).requires_grad_(), numbers_of(30, 2)
    compare = distance(kind, {"w": target})
    value = compare({"w": gradient[None]})[0]
    (derivative,) = torch.autograd.grad(value, gradient)
    return {"kind": kind, "value": value.item(), "derivative": derivative.tolist()}


def compute_variation(shape: tuple[int, ...]) -> dict[str, Any]:
    x = numbers_of(torch.Size(shape).numel(), 4).view(1, *shape)
    derivative = Smoothness(0.5).derivative(x)
    return {"shape": shape, "derivative": derivative.flatten().tolist()}


def compute_labels() -> dict[str, Any]:
    """Compute the labels of single rows by the rules, and those of batches of an untrained network."""
    rows = [numbers_of(6, seed).tolist() for seed in range(5, 9)]
    weight_gradient = numbers_of(20, 9).view(5, 4)
    batches = []
    for name, classes in (("lenet", [3, 3, 1]), ("lenet", [0, 1, 2, 4]), ("lenet_star", [2, 2, 0]), ("mlp", [4, 4, 4, 0])):
        seen = observed(NETWORKS[name], torch.tensor(classes))
        means = mean_predictions(seen)
        assert means is not None
        rule = "model prior" if head(seen).bias is None else "matched prior"
        found = recover(seen, rule).labels.tolist()
        batches.append(
            {"network": name, "labels": classes, "found": found, "counts": recover(seen, "bias-corrected").labels.tolist()}
            | {"bias": means.bias_gradient.tolist(), "plain": means.plain.tolist(), "matched": means.matched.tolist()}
        )
    return {
        "counts": [{"rows": row, "labels": counts(torch.tensor(row), 5).tolist()} for row in rows],
        "nearest": [{"wanted": row, "labels": nearest_counts(4 * torch.tensor(row).abs(), 5).tolist()} for row in rows],
        "sign_free": sign_free(weight_gradient).tolist(),
        "batches": batches,
    }


def observed(model: Model, y: Tensor, *, shape: tuple[int, int, int] = SHAPE, labels: bool = True) -> Observation:
    """Return what the server has of pictures with the labels y; weights by SEED, everything in float64."""
    federation = Federation.of(FedSGD(), [], ThreatModel(labels=labels), seed=SEED)
    x = ((numbers_of(len(y) * torch.Size(shape).numel(), 3) + 1) / 2).view(len(y), *shape)
    network = untrained(model, shape, CLASSES, seed=SEED)
    return observe(ready(network, federation, x), x, y, federation, num_classes=CLASSES)


def compute_searches() -> dict[str, Any]:
    """Compute the first steps of every search: the distance at each step, and the pictures at the end."""
    one, two = observed(NETWORKS["lenet"], torch.tensor([2])), observed(NETWORKS["lenet"], torch.tensor([0, 3]))
    logits = torch.randn((1, CLASSES), generator=generator(SEED, "attack"))
    return {
        "idlg": path(search_once(one, generator(SEED, "attack"), labels=one.granted.labels, steps=3, begin=begin(one))),
        "strong_wolfe": path(
            search_once(one, generator(SEED, "attack"), labels=one.granted.labels, steps=3, begin=begin(one), line_search="strong_wolfe")
        ),
        "dlg": path(search_once(one, generator(SEED, "attack"), labels=None, steps=2, begin=begin(one))) | {"logits": logits[0].tolist()},
        "inverting_gradients": path(descent(two)),
        "coarse first": path(descent(two, coarse=0.5)),
        "behind errors": path(descent(two, floor=torch.tensor(0.05, dtype=torch.double))) | {"floor": 0.05},
    }


def begin(seen: Observation) -> Tensor:
    return numbers_of(torch.Size(seen.batch.shape).numel(), 4, 1.5).view(seen.batch.shape)


def descent(seen: Observation, **more: Any) -> Iterator[Any]:
    assert seen.granted.labels is not None
    search = Descent(steps=20, step_size=0.1, **more)
    compare = distance("cosine", seen.as_gradient())
    return search.run(seen, begin(seen)[None], seen.granted.labels, compare, Smoothness(0.001), note={}, rng=generator(SEED, "attack"))


def path(search: Iterator[Any]) -> dict[str, Any]:
    losses = []
    for snapshot in search:
        losses.append(float(snapshot.loss))
        x = snapshot.x.clone()
    return {"losses": losses, "end": x.flatten()[::3].tolist()}


def compute_linear_layer() -> list[dict[str, Any]]:
    """Compute what the bias attack reads of one picture, and of batches."""
    found = []
    for classes in ([2], [0, 3], [4, 1, 2]):
        seen = observed(MLP(), torch.tensor(classes))
        (answer,) = LinearLayer().run(seen, generator(SEED, "attack"))
        found.append({"labels": classes, "pictures": answer.x.flatten()[::3].tolist(), "loss": float(answer.loss)})
    return found


if __name__ == "__main__":
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in compute_cases().items())
    FILE.write_text(f"{{\n{lines}\n}}\n")
