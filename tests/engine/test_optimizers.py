"""Local training with an optimizer: the update is that of torch.optim, and an attacker that knows the optimizer replays it."""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from small_problems import LABELS, TINY, observed, precision, smooth
from torch import Tensor, nn

import leakage.protocols._local as local
from leakage.engine.client import gradient_client
from leakage.engine.core import Client, Params, generator
from leakage.evaluation.metrics import gradient_distances, psnr
from leakage.protocols._optimizers import ADAM, ADAMW, HALF, NESTEROV, OPTIMIZERS, SGD
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture
from leakage.workers.adapter import plugin, prepare

SETTINGS: dict[str, Mapping[str, Any]] = {
    "one batch": {"epochs": 3},
    "weight decay": {"epochs": 2, "mini_batch": 2, "weight_decay": 0.1},
    "accumulated and clipped": {"epochs": 2, "mini_batch": 1, "accumulation": 2, "max_grad_norm": 0.05, "weight_decay": 0.01},
}  # of 3 pictures: two steps an epoch, the second of one mini-batch
RATE = 0.01


@dataclass(frozen=True)
class Loop:
    """Training as in a script: torch.optim, gradients added up, clip_grad_norm_, autocast with a GradScaler."""

    optimizer: str
    epochs: int = 5
    mini_batch: int = 0
    accumulation: int = 1
    max_grad_norm: float = 0.0
    weight_decay: float = 0.0
    precision: str = "float32"

    def update(self, model: nn.Module, x: Tensor, y: Tensor) -> Params:
        """Train a copy; return the difference of its weights after and before."""
        trained = deepcopy(model)
        parameters = list(trained.parameters())
        optimizer = self._optimizer(parameters)
        scaler = torch.amp.GradScaler("cpu", enabled=self.precision == "float16")
        for batches in self._steps(x, y):
            optimizer.zero_grad()
            for pictures, labels in batches:
                with torch.autocast("cpu", HALF.get(self.precision), enabled=self.precision in HALF):
                    loss = nn.functional.cross_entropy(trained(pictures), labels) / len(batches)
                scaler.scale(loss).backward()
            if self.max_grad_norm:
                nn.utils.clip_grad_norm_(parameters, self.max_grad_norm)
            scaler.step(optimizer)
            scaler.update()
        after = dict(trained.named_parameters())
        return {name: (after[name] - before).detach() for name, before in model.named_parameters()}

    def _optimizer(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        known: dict[str, Callable[[], torch.optim.Optimizer]] = {
            SGD: lambda: torch.optim.SGD(parameters, RATE, momentum=0.9, weight_decay=self.weight_decay),
            NESTEROV: lambda: torch.optim.SGD(parameters, RATE, momentum=0.9, weight_decay=self.weight_decay, nesterov=True),
            ADAM: lambda: torch.optim.Adam(parameters, RATE, weight_decay=self.weight_decay),
            ADAMW: lambda: torch.optim.AdamW(parameters, RATE, weight_decay=self.weight_decay),
        }
        return known[self.optimizer]()

    def _steps(self, x: Tensor, y: Tensor) -> Iterator[list[tuple[Tensor, Tensor]]]:
        size = self.mini_batch or len(x)
        for _ in range(self.epochs):
            batches = list(zip(x.split(size), y.split(size), strict=True))
            yield from (batches[first : first + self.accumulation] for first in range(0, len(batches), self.accumulation))


def relative(one: Params, other: Params) -> float:
    return gradient_distances(one, other)["relative_l2"]


def trains_with(optimizer: str, **fields: Any) -> Part:
    return Part(id="fedavg_optimizer", fields={"optimizer": optimizer, "rate": RATE, **fields})


def client_of(protocol: Part, model: nn.Module) -> Client:
    client: Client = plugin("protocol", protocol).client(gradient_client(model))
    return client


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_update_is_that_of_torch(optimizer: str, settings: str) -> None:
    fields = SETTINGS[settings]
    with precision(torch.float64):
        x = smooth(3)
        seen = observed(x, model=TINY, protocol=trains_with(optimizer, **fields))
        by_torch = Loop(optimizer, **fields).update(seen.model, x, LABELS)
    assert relative(seen.received.update, by_torch) < 1e-11  # float64: torch subtracts weights, which rounds at their size


@pytest.mark.parametrize("optimizer", [SGD, ADAM])
@pytest.mark.parametrize("number", HALF)
@pytest.mark.parametrize("size", [1.0, 40.0])
def test_half_precision_is_that_of_autocast(optimizer: str, number: str, size: float) -> None:
    """With weights 40 times as large three gradients are too large for float16: torch leaves these steps out, each halves the scale."""
    x = smooth(3)
    protocol = trains_with(optimizer, epochs=5, precision=number)
    model = observed(x, model=TINY, protocol=protocol).model
    with torch.no_grad():
        list(model.parameters())[-2].mul_(size)
    sent, _ = client_of(protocol, model)(dict(model.named_parameters()), x, LABELS, {})
    by_torch = Loop(optimizer, precision=number).update(model, x, LABELS)
    plain, _ = client_of(trains_with(optimizer, epochs=5), model)(dict(model.named_parameters()), x, LABELS, {})
    assert relative(sent, by_torch) < 2e-5  # float32, and torch subtracts weights
    assert relative(plain, by_torch) > 1e-4  # 16 bits are another computation


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_gradient_of_one_step_is_read_with_the_decay_taken_out(optimizer: str) -> None:
    with precision(torch.float64):
        x = smooth(3)
        plain = observed(x, model=TINY).received.update
        decay = 0.0 if optimizer == ADAM else 0.1  # Adam divides the sum of both
        seen = observed(x, model=TINY, protocol=trains_with(optimizer, epochs=1, weight_decay=decay))
    read = seen.as_gradient()
    if optimizer in (ADAM, ADAMW):
        assert all(torch.equal(read[name].sign(), g.sign()) for name, g in plain.items())
        assert float(next(iter(read.values())).abs().max()) == pytest.approx(1, abs=1e-3)
    else:
        assert relative(read, plain) < 1e-12


def test_over_steps_too_short_to_move_the_sum_of_directions_is_the_gradient() -> None:
    """Where the gradient does not change on the way, what is read is the gradient, whatever the optimizer makes of its steps."""
    with precision(torch.float64):
        x = smooth(3)
        plain = observed(x, model=TINY).received.update
        for optimizer in (SGD, NESTEROV):
            seen = observed(x, model=TINY, protocol=trains_with(optimizer, epochs=4, rate=1e-6))
            assert relative(seen.as_gradient(), plain) < 1e-4


def test_a_naive_attacker_counts_plain_steps() -> None:
    x, protocol = smooth(3), trains_with(SGD, epochs=3, weight_decay=0.1)
    sent = observed(x, model=TINY, protocol=protocol).received.update
    naive = observed(x, model=TINY, protocol=protocol, assume=Assumptions(adaptive=False))
    assert relative(naive.as_gradient(), {name: value / (-RATE * 3) for name, value in sent.items()}) < 1e-6


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_steps_computed_again_have_the_same_derivative(optimizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for followed in (20, 1):
        monkeypatch.setattr(local, "FOLLOWED", followed)
        with precision(torch.float64):
            protocol = trains_with(optimizer, epochs=2, mini_batch=1, accumulation=2, weight_decay=0.01, max_grad_norm=0.1)
            seen = observed(smooth(3), model=TINY, protocol=protocol)
            x = smooth(3, seed=5).requires_grad_()
            sent = seen.replay.single(x, LABELS)
            total = sum((value * torch.linspace(0, 1, value.numel()).view_as(value)).sum() for value in sent.values())
            found.append(torch.autograd.grad(total, x)[0])
    assert float(found[0].abs().max()) > 0
    torch.testing.assert_close(found[0], found[1], atol=1e-14, rtol=1e-10)  # float64


@pytest.mark.long
@pytest.mark.parametrize("optimizer", [ADAM, ADAMW])
def test_a_step_of_adam_shows_the_picture_to_who_knows_the_optimizer(optimizer: str) -> None:
    """One step on one picture (grey: 10.9 dB): the attacker that takes it for a gradient stays below grey, the one that knows does not."""
    ends = {}
    for adaptive in (True, False):
        scene = prepare(
            Experiment(
                pictures=(Picture(id="astronaut"),),
                protocol=trains_with(optimizer, epochs=1, rate=0.001, weight_decay=0.01),
                attack=Part(id="inverting_gradients", fields={"steps": 300, "step_size": 0.05, "schedule": "coarse first"}),
                assume=Assumptions(adaptive=adaptive),
            )
        )
        *_, answer = scene.attack.run(scene.seen, generator(1, "attack"))
        ends[adaptive] = float(psnr(answer.x, scene.x).mean())
        grey = float(psnr(torch.full_like(scene.x, 0.5), scene.x).mean())
    assert ends[False] < grey < ends[True]
