"""FedProx: FedAvg with a term that pulls the weights of the clients back towards the received weights."""

from dataclasses import dataclass
from functools import partial

from leakage.engine.core import Client, Params, Round, StepRng, Travels, flag, param
from leakage.protocols._local import SHUFFLED, LocalTraining, geometric


@dataclass(frozen=True, kw_only=True)
class FedProx(LocalTraining):
    """Minimize L(w) + mu / 2 ||w - w_0||^2 by local SGD steps, and send w_T - w_0; w_0 are the received weights.

    w_{t+1} = w_t - rate (grad L(w_t; batch t) + mu (w_t - w_0)), over mini-batches as FedAvg.
    Source: Li et al. 2020, equation 2 and algorithm 2.
    """

    title = "Several local steps with a proximal term (FedProx)"
    short = "FedProx"
    plain = "As FedAvg, but the phone's weights are pulled back, harder the further they drift from the received weights."
    hint = "The pull is known to the server, so it hides nothing. With one local step it is FedSGD."
    source = "https://arxiv.org/abs/1812.06127"
    elementwise = True
    travels = Travels(
        "difference of weights",
        proximal=True,
        imitated="it imitates {steps}, proximal term included",
        overlooked="the proximal term",
        one_step=True,
    )

    proximal: float = param(0.1, 0, 100, "How hard the weights are pulled back towards the received weights (mu).")
    shuffled: bool = flag(False, SHUFFLED)

    def client(self, gradient: Client, step_rng: StepRng | None = None) -> Client:
        def pull(moved: Params) -> Params:
            return {name: self.proximal * value for name, value in moved.items()}

        return partial(self.descend, gradient, pull=pull, step_rng=step_rng if self.shuffled else None)

    def to_gradient(self, update: Params, seen: Round) -> Params:
        """Return -update / (rate * c), the average gradient over the T local steps, with c = 1 + q + ... + q^(T-1), q = 1 - rate * mu."""
        steps = self.count_steps(seen.count)
        weight = geometric(1 - self.rate * self.proximal, steps)
        return {name: value / (-self.rate * weight) for name, value in update.items()}
