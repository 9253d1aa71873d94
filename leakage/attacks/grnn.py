"""GRNN: the attack searches for the weights of an untrained generator in place of pixels."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from leakage.attacks._gated_generator import GatedGenerator
from leakage.engine.core import Attack, Observation, Snapshot, param
from leakage.engine.discrepancy import goal_of
from leakage.engine.weights import drawing


@dataclass(frozen=True, kw_only=True)
class GRNN(Attack):
    """min over the weights of a generator G of ||g(x, y) - g*||^2 + ||g(x, y) - g*|| + tv_weight * TV2(x), with (x, y) = G(v).

    g(x, y) is the gradient of pictures x with labels y, g* the received gradient. v ~ N(0, 1) (B, inputs) stays as it was drawn, and
    nothing is trained beforehand: G's only prior knowledge is that convolutions produce smooth pictures more easily than noise. TV2 = 2
    (mean dx^2 + mean dy^2). RMSprop with momentum 0.99. The labels y are soft and come from G too, unless they are granted. Behind errors
    of a known size, pictures that fit as well as the true ones would are only smoothed further. In the paper's code the term called
    Wasserstein is this Euclidean distance.
    Unlike the paper: 2,000 steps by default; the paper takes 20,000. If a side is no power of two, the picture is cut from a larger one.
    Source: Ren et al. 2022, equations 4 to 8, and their code.
    """

    title = "Guess and compare by an untrained generator (GRNN)"
    short = "GRNN"
    plain = "Lets a small network, which has never seen a picture, generate pictures and labels until they give the gradient received."
    hint = "Reads the label along with the picture. Give it 2,000 steps and more: it starts slowly and then gets sharp."
    source = "https://arxiv.org/abs/2105.00529"
    way = "Let a network generate a picture, compare, improve the network."
    evaluations_per_step = 4
    loss_name = "squared gradient distance"
    presets = {
        "paper (Ren et al. 2022, LeNet)": {"steps": 1000},
        "AdaDefense's tests (inputs 1024, 20,000 steps)": {"steps": 20000, "inputs": 1024, "tv_weight": 0.000001},
        "ours: 2,000 steps": {"steps": 2000},
        "quick look": {"steps": 500},
    }

    steps: int = param(2000, 1, 20000, "Optimiser steps.")
    step_size: float = param(0.0001, 0.000001, 0.1, "How far one step moves the generator's weights (RMSprop).")
    momentum: float = param(0.99, 0, 0.999, "How much of the last step every step keeps.")
    tv_weight: float = param(0.001, 0, 10, "How strongly smooth pictures are preferred (weight of the squared total variation).")
    inputs: int = param(128, 1, 1024, "How many random numbers the generator is given for each picture.")

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        goal = goal_of(seen, "squared")
        with drawing(int(torch.randint(2**31, (), generator=rng)), "generator"):
            generator = GatedGenerator(self.inputs, seen.batch.image_shape, seen.batch.num_classes).to(seen.device, seen.dtype)
        v = torch.randn((seen.batch.size, self.inputs), generator=rng).to(seen.device, seen.dtype)
        weights = list(generator.parameters())
        optimiser = torch.optim.RMSprop(weights, lr=self.step_size, momentum=self.momentum)
        note: dict[str, str | int | float] = {
            "label rule": "granted" if seen.granted.labels is not None else "generated together with the picture"
        }
        note |= goal.note
        note["prior"] = "nothing: its generator has never seen a picture"
        note["generator's weights"] = sum(weight.numel() for weight in weights)

        def generate() -> tuple[Tensor, Tensor, Tensor]:
            x, y = generator(v)
            y = y if seen.granted.labels is None else seen.granted.labels
            return x, y, goal.distance({name: g.unsqueeze(0) for name, g in seen.gradient(x, y).items()})[0]

        for step in range(1, self.steps + 1):
            x, y, match = generate()
            yield Snapshot(step, x.detach(), y.detach(), match.detach(), note)
            fit = match if goal.floor is None else match.clamp(min=goal.floor)
            loss = fit + fit.clamp(min=torch.finfo(match.dtype).tiny).sqrt() + self.tv_weight * squared_variation(x)
            for weight, gradient in zip(weights, torch.autograd.grad(loss, weights, allow_unused=True), strict=True):
                weight.grad = gradient
            optimiser.step()
        x, y, match = generate()
        yield Snapshot(self.steps, x.detach(), y.detach(), match.detach(), note)


def squared_variation(x: Tensor) -> Tensor:
    """Compute TV2 of pictures (B, C, H, W): twice the sum of the mean squared differences of neighbors across and down."""
    across, down = x[..., 1:] - x[..., :-1], x[..., 1:, :] - x[..., :-1, :]
    return 2 * (across.square().mean() + down.square().mean())
