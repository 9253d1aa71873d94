"""How long one replay takes on this machine, so that a page can say what a run will cost before it starts."""

import time

import torch

from leakage import catalog
from leakage.engine.client import gradient_client, weights_of
from leakage.engine.matching import cosine_distance

REPEATS = 3


def measure(device: torch.device) -> dict[str, tuple[float, float]]:
    """Seconds for one replay and its derivative, per model with default fields, for 1 and for 8 pictures of 3x32x32."""
    return {entry.id: (_seconds(entry.id, 1, device), _seconds(entry.id, 8, device)) for entry in catalog.describe().of("model")}


def _seconds(model_id: str, batch: int, device: torch.device) -> float:
    with torch.random.fork_rng(devices=[]):
        model = catalog.load("model", model_id)().build((3, 32, 32), 10).to(device).eval()
        x = torch.rand(batch, 3, 32, 32).to(device).requires_grad_()
    weights, client, y = weights_of(model), gradient_client(model), torch.arange(batch, device=device)
    distance = cosine_distance(client(weights, x.detach(), y, {})[0])
    taken = []
    for _ in range(1 + REPEATS):  # the first warms up
        began = time.perf_counter()
        (slope,) = torch.autograd.grad(distance(client(weights, x, y, {})[0]), x)
        slope.sum().item()  # wait for the device
        taken.append(time.perf_counter() - began)
    return min(taken[1:])
