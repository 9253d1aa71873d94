"""What torch computes for the networks that the browser also computes (tests/js/network_cases.json), in float64.

Command that writes the file anew: python -m tests.support.browser_network_cases
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from leakage.engine.core import Model
from leakage.models.lenet import LeNet
from leakage.models.mlp import MLP
from leakage.models.mnist_cnn import MnistCNN

FILE = Path(__file__).parents[1] / "js" / "network_cases.json"
CLASSES, BATCH = 5, 2
STRIDE = 17  # the file holds every 17th entry of a gradient


class Case(NamedTuple):
    """A network of leakage/ui/components/attack/plans.js, and the same model of the program."""

    plan: str
    options: dict[str, Any]
    model: Model
    shape: tuple[int, int, int]
    scale: float
    """The weights lie between -scale and scale."""


CASES = (
    Case("lenet", {}, LeNet(), (3, 8, 11), 0.5),
    Case("lenet", {"activation": "tanh", "bias": False}, LeNet(activation="tanh", bias=False), (1, 9, 8), 0.1),
    Case("lenet_star", {}, LeNet(**LeNet.presets["LeNet* (Zhu and Blaschko 2021)"]), (3, 8, 8), 0.1),
    Case("mlp", {"width": 8}, MLP(width=8), (3, 8, 8), 0.1),
    Case("mlp", {"width": 9, "depth": 3, "activation": "leaky_relu"}, MLP(width=9, depth=3, activation="leaky_relu"), (1, 5, 6), 0.3),
    Case("mnist_cnn", {}, MnistCNN(), (1, 14, 14), 0.5),
)


def compute_cases() -> list[dict[str, Any]]:
    """Compute the content of the file."""
    return [compute_case(case) for case in CASES]


def compute_case(case: Case) -> dict[str, Any]:
    """Compute gradient g, d<g, v>/dx and d<g, v>/dy of one network by automatic differentiation."""
    net = case.model.build(case.shape, CLASSES).double()
    parameters = list(net.parameters())
    sizes = [value.numel() for value in parameters]
    for value, numbers in zip(parameters, numbers_of(sum(sizes), 1, case.scale).split(sizes), strict=True):
        value.data = numbers.view_as(value)
    direction = numbers_of(sum(sizes), 2)
    x = numbers_of(BATCH * torch.Size(case.shape).numel(), 3).view(BATCH, *case.shape).requires_grad_()
    y = (numbers_of(BATCH * CLASSES, 4) + 1.1).view(BATCH, CLASSES)
    y = (y / y.sum(1, keepdim=True)).requires_grad_()
    loss = F.cross_entropy(net(x), y)
    gradient = torch.cat([part.flatten() for part in torch.autograd.grad(loss, parameters, create_graph=True)])
    picture_slope, label_slope = torch.autograd.grad(gradient @ direction, (x, y))
    return {
        "plan": case.plan,
        "shape": list(case.shape),
        "classes": CLASSES,
        "batch": BATCH,
        "options": case.options,
        "scale": case.scale,
        "tensors": [[name, list(value.shape)] for name, value in net.state_dict().items()],
        "loss": loss.item(),
        "gradient_norm": gradient.norm().item(),
        "stride": STRIDE,
        "gradient": gradient[::STRIDE].tolist(),
        "picture_slope": picture_slope.flatten().tolist(),
        "label_slope": label_slope.flatten().tolist(),
    }


def numbers_of(count: int, seed: int, scale: float = 1) -> Tensor:
    """Return pseudo-random numbers between -scale and scale, the same as numbersOf in tests/js/network_checks.js."""
    state, numbers = seed, []
    for _ in range(count):
        state = (1664525 * state + 1013904223) % 2**32
        numbers.append(scale * (state / 2**31 - 1))
    return torch.tensor(numbers, dtype=torch.float64)


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(case) for case in compute_cases())
    FILE.write_text(f"[\n{lines}\n]\n")
