"""FedProx: FedAvg with a term that pulls the weights of the clients back towards the received weights."""

from dataclasses import dataclass
from functools import partial

from leakage.engine.core import Client, Params, Protocol, Round, StepRng, Travels, flag, param
from leakage.protocols._local import EPOCHS, MINI_BATCH, SHUFFLED, descend, geometric, local_rate, steps_of


@dataclass(frozen=True, kw_only=True)
class FedProx(Protocol):
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

    epochs: int = param(5, 1, 100, EPOCHS)
    mini_batch: int = param(0, 0, 128, MINI_BATCH)
    rate: float = local_rate()
    proximal: float = param(0.1, 0, 100, "How hard the weights are pulled back towards the received weights (mu).")
    shuffled: bool = flag(False, SHUFFLED)

    def client(self, gradient: Client, step_rng: StepRng | None = None) -> Client:
        def pull(moved: Params) -> Params:
            return {name: self.proximal * value for name, value in moved.items()}

        return partial(
            descend,
            gradient,
            epochs=self.epochs,
            mini_batch=self.mini_batch,
            rate=self.rate,
            pull=pull,
            step_rng=step_rng if self.shuffled else None,
        )

    def to_gradient(self, update: Params, seen: Round) -> Params:
        """Return -update / (rate * c), the average gradient, with c = 1 + q + ... + q^(T-1) and q = 1 - rate * mu."""
        steps = steps_of(seen.count, epochs=self.epochs, mini_batch=self.mini_batch)
        weight = geometric(1 - self.rate * self.proximal, steps)
        return {name: value / (-self.rate * weight) for name, value in update.items()}
