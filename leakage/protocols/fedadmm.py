"""FedADMM: the client keeps its own model and dual variables from round to round, and sends the increment of both together."""

from dataclasses import dataclass
from dataclasses import replace as changed

import torch
from torch import Tensor

from leakage.engine.core import Client, ClientState, Params, Round, StepRng, Travels, Update, choice, flag, param
from leakage.protocols._local import EPOCHS, SHUFFLED, LocalTraining, geometric, local_rate

LAST_MODEL, SERVER_MODEL = "its own last model", "the server's model"
MODEL, DUAL = "fedadmm.model.", "fedadmm.dual."  # keys of the client's state, by parameter: w and pi


@dataclass(frozen=True, kw_only=True)
class FedADMM(LocalTraining):
    """w <- w - rate (grad f(w; batch) + pi + rho (w - z)), T = E * ceil(n / B) times; then pi <- pi + rho (w - z).

    w is the client's model, z the server's, pi the client's dual variable, rho the penalty, f the loss. The client sends only the increment
    of w + pi / rho. With d = w - z before (d_0) and after (d_T) the round, the increment is 2 d_T - d_0 for every rho. The server adds
    server_step times the increment to z. In the first round pi = 0 and w = z.
    Therefore the server can compute the client's hidden state: d_T = (increment + d_0) / 2, then w and pi, round by round (`infer_state`).
    With q = 1 - rate * rho, the weighted sum of gradients is exactly
    S = sum_t q^(T-1-t) g_t = (q^T d_0 - d_T) / rate - pi (1 - q^T) / (1 - q).
    Source: Gong et al. 2022 (FedADMM); a reproduction report attacked it with DLG and took the increment for a gradient.
    """

    title = "Several local steps with a hidden correction (FedADMM)"
    short = "FedADMM"
    plain = "The phone keeps its own model and a hidden correction (duals), and sends only how both together have changed."
    hint = (
        "The hidden correction looks like a protection, but the server can compute it. "
        "Try DLG-ADMM with a naive attacker, then with an adaptive one."
    )
    source = "https://arxiv.org/abs/2204.03529"
    elementwise = True
    travels = Travels(
        "change of model and hidden correction",
        kept="w, π",
        imitated="it imitates {steps}, and works out the hidden correction round by round",
        overlooked="the hidden correction",
    )

    epochs: int = param(1, 1, 100, EPOCHS)
    rate: float = local_rate(0.01)
    penalty: float = param(0.01, 0.0001, 10, "How strongly the models of phone and server are pulled together (rho).")
    start: str = choice(LAST_MODEL, (LAST_MODEL, SERVER_MODEL), "The model with which the phone begins a round.")
    server_step: float = param(1, 0.01, 2, "The factor by which the server multiplies the increment.")
    shuffled: bool = flag(False, SHUFFLED)

    def client(self, gradient: Client, step_rng: StepRng | None = None) -> Client:
        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            order = step_rng if self.shuffled else None
            before, dual = self._before(weights, state), self._dual(weights, state)

            def pull(moved: Params) -> Params:
                return {name: dual[name] + self.penalty * value for name, value in moved.items()}

            after, state = self.descend(gradient, weights, x, y, state, start=before, pull=pull, step_rng=order)
            update = {name: 2 * value - before[name] if before else 2 * value for name, value in after.items()}
            return update, self._carry(weights, after, dual, state)

        return send

    def to_gradient(self, update: Params, seen: Round) -> Params:
        """Return the weighted mean of the gradients of the T local steps, computed with the client's state before the round.

        It is S / (1 + q + ... + q^(T-1)), with the weighted sum S and the ratio q of the class.
        """
        steps = self.count_steps(seen.count)
        ratio = 1 - self.rate * self.penalty
        weight, dual = geometric(ratio, steps), self._dual(seen.weights, seen.state)
        before, after = self._before(seen.weights, seen.state), self._after(changed(seen, update=update))
        descent = {name: ratio**steps * before[name] - value if before else -value for name, value in after.items()}
        return {name: value / (self.rate * weight) - dual[name] for name, value in descent.items()}

    def naive(self, update: Params, seen: Round) -> Params:
        """Return what a naive attacker takes for the gradient: -update / rate, twice the gradient in a first round of one local step."""
        return {name: value / -self.rate for name, value in update.items()}

    def infer_state(self, seen: Round) -> ClientState:
        return self._carry(seen.weights, self._after(seen), self._dual(seen.weights, seen.state), seen.state)

    def client_weights(self, seen: Round) -> Params:
        after = self._after(seen)
        return {name: weight.detach() + after[name] for name, weight in seen.weights.items()}

    def server_update(self, seen: Round) -> Params:
        return {name: weight + self.server_step * seen.update[name] for name, weight in seen.weights.items()}

    def _before(self, weights: Params, state: ClientState) -> Params:
        """Return d_0 = w - z, the client's model before the round less the server's model z.

        {} (no difference) in the first round, or if the client begins with the server's model.
        """
        if self.start == SERVER_MODEL or not any(name.startswith(MODEL) for name in state):
            return {}
        return {name: state[MODEL + name] - weight.detach() for name, weight in weights.items()}

    def _dual(self, weights: Params, state: ClientState) -> Params:
        return {name: state.get(DUAL + name, torch.zeros_like(weight)) for name, weight in weights.items()}

    def _after(self, seen: Round) -> Params:
        """Return d_T = (increment + d_0) / 2, the client's model after the round less the server's model; the increment is the update."""
        before = self._before(seen.weights, seen.state)
        return {name: (value + before[name]) / 2 if before else value / 2 for name, value in seen.update.items()}

    def _carry(self, weights: Params, after: Params, dual: Params, state: ClientState) -> ClientState:
        models = {MODEL + name: (weights[name] + value).detach() for name, value in after.items()}
        return state | models | {DUAL + name: (dual[name] + self.penalty * value).detach() for name, value in after.items()}
