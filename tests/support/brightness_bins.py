"""Small batches for servers that sort pictures by brightness, what these servers see, and which pictures are alone in their bins."""

from collections.abc import Sequence
from statistics import NormalDist

import torch
from small_problems import RELU, moments, precision, smooth
from torch import Tensor

from leakage.engine.core import Observation
from leakage.spec.experiment import Experiment, Part
from leakage.workers.adapter import observe

MEAN, DEVIATION = 0.5, 0.15  # of the brightness of `smooth` pictures
LAW = {"mean": MEAN, "deviation": DEVIATION}


def sorting(server: str, **fields: float) -> Part:
    """Return a server that sorts `smooth` pictures into 16 bins."""
    return Part(id=server, fields={"bins": 16, **LAW, **fields})


def batch(size: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return smooth pictures (size, 1, 8, 8) and labels 0 to 9 in turn, in float64."""
    return smooth(size, seed=seed).double(), torch.arange(size) % 10


def added_up(clients: int) -> dict[str, Part]:
    """Return the experiment's fields for a sum over so many clients."""
    return {"aggregation": Part(id="secure_aggregation", fields={"clients": clients})} if clients > 1 else {}


def seen_by(by: Part, x: Tensor, y: Tensor, **settings: object) -> Observation:
    """Return what this server sees of the pictures, in float64."""
    with precision(torch.float64):
        return observe(Experiment(**{"model": RELU, "server": by, **settings}), x, y)


def found(seen: Observation, x: Tensor) -> Tensor:
    """Return which pictures x (B,) are among the attack's pictures, to 1e-5 in every pixel."""
    return among(moments(Part(id="bins"), seen)[-1].x, x, 1e-5)


def among(answer: Tensor, x: Tensor, error: float) -> Tensor:
    """Return which pictures x (B,) are among those of an answer (N, C, H, W), with an error below `error` in every pixel."""
    return torch.tensor([bool(((answer.double() - picture).abs().amax((1, 2, 3)) < error).any()) for picture in x])


def bins_between(x: Tensor, edges: Sequence[float]) -> Tensor:
    """Return the bin (B,) of each picture: the number of the last edge that its brightness reaches, from 0; -1: it is below all."""
    return torch.searchsorted(torch.tensor(edges, dtype=torch.float64), x.mean((1, 2, 3)), right=True) - 1


def narrow_edges(bins: int, mean: float = MEAN, deviation: float = DEVIATION) -> list[float]:
    """Return the edges of bins with the probability 1/(bins + 2) each: the remaining probability is outside of them, half on each side."""
    return [NormalDist(mean, deviation).inv_cdf(number / (bins + 2)) for number in range(1, bins + 2)]


def alone(x: Tensor, edges: Sequence[float], clients: int = 1) -> Tensor:
    """Return which pictures (B,) are the single one of their client between two edges; the clients share the pictures evenly."""
    of = [bins_between(own, edges).tolist() for own in x.tensor_split(clients)]
    return torch.tensor([0 <= number < len(edges) - 1 and own.count(number) == 1 for own in of for number in own])
