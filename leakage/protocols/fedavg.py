"""FedAvg: the client trains for several local steps and sends the change of its weights."""

from dataclasses import dataclass
from functools import partial

from leakage.engine.core import Client, Params, Round, StepRng, Travels, flag, param
from leakage.protocols._local import SHUFFLED, LocalTraining, geometric
from leakage.protocols._optimizers import Momentum


@dataclass(frozen=True, kw_only=True)
class FedAvg(LocalTraining):
    """Take T = E * ceil(n / B) local SGD steps over mini-batches of B of the n pictures, and send theta_T - theta_0.

    theta_{t+1} = theta_t - rate v_{t+1}, v_{t+1} = momentum v_t + grad L(theta_t; batch t). The last mini-batch may be smaller.
    Source: McMahan et al. 2017, algorithm 1; the attacked quantity is that of Geiping et al. 2020, equation 6.
    """

    title = "Several local steps (FedAvg)"
    short = "FedAvg"
    plain = "The phone trains for several steps by itself and sends how far the weights have moved."
    hint = "Local steps hide little: an attacker that knows how the phone trains imitates each step. Try 5 epochs, naive and adaptive."
    source = "https://arxiv.org/abs/1602.05629"
    elementwise = True
    travels = Travels("difference of weights", imitated="it imitates {steps}", one_step=True)
    presets = {
        "Geiping et al. 2020: five steps on one picture": {"epochs": 5, "mini_batch": 0, "rate": 0.0001},
        "Geiping et al. 2020: mini-batches of two": {"epochs": 1, "mini_batch": 2, "rate": 0.0001},
    }

    momentum: float = param(0, 0, 0.99, "How much of its last local step the phone repeats in the next.")
    shuffled: bool = flag(False, SHUFFLED)

    def client(self, gradient: Client, step_rng: StepRng | None = None) -> Client:
        return partial(self.descend, gradient, optimizer=Momentum(self.momentum), step_rng=step_rng if self.shuffled else None)

    def to_gradient(self, update: Params, seen: Round) -> Params:
        """Return -update / (rate * c), the average gradient over the local steps.

        c is the sum over the local steps of the weight of each gradient in the update. The weight is 1 + momentum + momentum^2 + ..., with
        one term for the gradient's own step and one for each later step.
        """
        steps = self.count_steps(seen.count)
        weight = sum(geometric(self.momentum, left) for left in range(1, steps + 1))
        return {name: value / (-self.rate * weight) for name, value in update.items()}
