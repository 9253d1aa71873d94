"""FedAvg whose clients train with an optimizer of torch.optim, as most training scripts do."""

from dataclasses import dataclass
from functools import partial

import torch

from leakage.engine.core import Client, Params, Round, StepRng, Travels, choice, flag, param
from leakage.protocols._local import SHUFFLED, LocalTraining
from leakage.protocols._optimizers import ADAM, ADAMW, FLOAT32, HALF, NESTEROV, OPTIMIZERS, Optimizer


@dataclass(frozen=True, kw_only=True)
class FedAvgOptimizer(LocalTraining):
    """Take local steps with SGD, Adam or AdamW, as torch.optim does, and send the difference of the weights after and before.

    theta_{t+1} = theta_t - rate v_{t+1}, where v_{t+1} is the optimizer's direction for the gradient of step t. The gradient of a step is
    the mean of the gradients of `accumulation` mini-batches, and is clipped to `max_grad_norm`. Each round begins with a new optimizer.
    Adam and AdamW have the decay rates 0.9 and 0.999 and epsilon 1e-8. The formulas and the straight-through derivative of Adam, which an
    adaptive attacker needs, are those of `protocols/_optimizers.py`. Not replayed are augmentation, dropout and schedules of the rate.
    Source: McMahan et al. 2017, algorithm 1; Kingma and Ba 2015, algorithm 1; Loshchilov and Hutter 2019, algorithm 2; torch.optim.
    """

    title = "Several local steps with an optimizer such as Adam"
    short = "FedAvg with optimizer"
    plain = "As FedAvg, but the phone trains as training scripts do: for example with Adam, weight decay and clipped gradients."
    hint = (
        "A step of Adam keeps the sign of each entry of the gradient and hardly its size. Choose Adam and one epoch, and compare an "
        "attacker that knows the optimizer with one that takes the message for a gradient."
    )
    source = "https://pytorch.org/docs/stable/optim.html"
    travels = Travels("difference of weights", imitated="it imitates {steps}, with the optimizer", overlooked="the optimizer")
    presets = {
        "Adam, one step": {"optimizer": ADAM, "epochs": 1, "rate": 0.001},
        "AdamW with weight decay, five steps": {"optimizer": ADAMW, "rate": 0.001, "weight_decay": 0.01},
        "SGD as in many scripts": {"optimizer": NESTEROV, "momentum": 0.9, "weight_decay": 0.0005, "rate": 0.01},
    }

    optimizer: str = choice(NESTEROV, OPTIMIZERS, "How the phone makes a step from a gradient.")
    momentum: float = param(0.9, 0, 0.99, "With SGD: how much of its last local step the phone repeats in the next.")
    weight_decay: float = param(0, 0, 1, "How hard the weights are pulled towards zero in each step.")
    accumulation: int = param(1, 1, 64, "The number of mini-batches of which the gradients are averaged for one step.")
    max_grad_norm: float = param(0, 0, 1000, "The largest norm of the gradient of a step; longer gradients are shortened. 0: any.")
    precision: str = choice(FLOAT32, (FLOAT32, *HALF), "The numbers in which the network computes in training (mixed precision).")
    shuffled: bool = flag(False, SHUFFLED)

    def client(self, gradient: Client, step_rng: StepRng | None = None) -> Client:
        return partial(self.descend, gradient, optimizer=self._rule, step_rng=step_rng if self.shuffled else None)

    def to_gradient(self, update: Params, seen: Round) -> Params:
        """Return (-update / rate - decay) / c: with SGD the mean gradient of the local steps, with Adam their mean direction.

        c is the sum of the directions that the optimizer has for a gradient of 1 in each step. The decay is that at the received weights;
        it is exact after one step. Adam adds it to the gradient before it divides, so that it cannot be taken out again.
        """
        steps = self.count_steps(seen.count)
        weight = self._sum_of_directions(steps)
        counted = {ADAM: 0.0, ADAMW: float(steps)}.get(self.optimizer, weight)
        decay = {name: self.weight_decay * counted * value.detach() for name, value in seen.weights.items()}
        return {name: (value / -self.rate - decay[name]) / weight for name, value in update.items()}

    def naive(self, update: Params, seen: Round) -> Params:
        """Return -update / (rate T), which takes each of the T steps for one of plain SGD."""
        return {name: value / (-self.rate * self.count_steps(seen.count)) for name, value in update.items()}

    @property
    def _rule(self) -> Optimizer:
        return Optimizer(self.momentum, self.optimizer, self.weight_decay, self.max_grad_norm, self.precision)

    def _pictures_of_step(self, count: int) -> int:
        return min(self.mini_batch * self.accumulation, count) or count

    def _sum_of_directions(self, steps: int) -> float:
        one, kept, total = {"": torch.ones((), dtype=torch.float64)}, Params(), 0.0
        rule = Optimizer(self.momentum, self.optimizer)
        for _ in range(steps):
            direction, kept = rule.direction(one, one, {}, kept)
            total += float(direction[""])
        return total
