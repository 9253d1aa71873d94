"""Adaptive clipping: updates are clipped to a norm that follows the norms of earlier updates."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import change_update, clip_by_norm, count_step, exact_errors, norm_of
from leakage.engine.core import AdaptiveStrategy, Client, ClientState, Defense, Params, StepRng, Update, param

BOUND = "adaptive_clipping.bound"  # key of C in the client's state


@dataclass(frozen=True, kw_only=True)
class AdaptiveClipping(Defense):
    """Send Delta min(1, C / ||Delta||), and beside it the bit b = [||Delta|| <= C] + N(0, bit_noise^2).

    Then C <- C exp(-rate (b - quantile)), so that C approaches the norm below which the fraction `quantile` of the updates lies. In the
    paper the server adds noise to the sum afterwards (central DP). Against the server there is therefore only the clipping, which keeps
    the direction.
    An adaptive attacker does not need C: if an update was clipped, C is the norm of what arrived; otherwise the update arrived unchanged.
    Unlike the paper: the mean of b is taken over this client alone; in federated training every client has its own C.
    Source: Andrew et al. 2021, algorithm 1, equation in section 2.1; Flower's defaults (initial_clipping_norm 0.1).
    """

    title = "Shortened updates with a limit that follows them (adaptive clipping)"
    short = "Adaptive clipping"
    plain = "An update that is too long is shortened before it is sent; what counts as too long follows the updates of earlier rounds."
    hint = "Shortening keeps the direction, so it hides next to nothing. Without noise there is no guarantee."
    stage = "update"
    source = "https://arxiv.org/abs/1905.03871"

    start: float = param(0.1, 1e-6, 1e6, "The largest norm that an update may have in the first round (C).")
    quantile: float = param(0.5, 0, 1, "Fraction of the updates that should be shorter than C.")
    rate: float = param(0.2, 0, 2, "How fast C follows the norms of the updates (eta_C).")
    bit_noise: float = param(
        0.0, 0, 100, "Standard deviation of the noise on the bit that says whether the update was shorter than C (sigma_b)."
    )

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            update, state = client(weights, x, y, state)
            step, state = count_step(state, "adaptive_clipping")
            bound = float(state.get(BOUND, self.start))
            shorter = float(norm_of(update).detach() <= bound)
            bit = shorter + self.bit_noise * float(torch.randn((), generator=step_rng(step)))
            return clip_by_norm(update, bound), {**state, BOUND: torch.tensor(self.next_bound(bound, bit), dtype=torch.float64)}

        return send

    def surrogate(self, client: Client, received: Params) -> Client:
        length = float(norm_of(received))
        return change_update(client, lambda update: clip_by_norm(update, length))

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {
            "as long as what arrived": AdaptiveStrategy(
                "known: the guess is shortened to the length of what arrived",
                self.surrogate,
                exact=True,
                errors=exact_errors,
            ),
            "as it is": AdaptiveStrategy("known, but not what the limit was: the guess is not shortened"),
        }

    def next_bound(self, bound: float, bit: float) -> float:
        """Return the norm C to which updates are clipped in the next round, in [1e-12, 1e12].

        Args:
            bound: C of this round.
            bit: the noisy bit that says whether the update of this round had at most the norm C.
        """
        factor = torch.tensor(-self.rate * (bit - self.quantile), dtype=torch.float64).exp()
        return float((bound * factor).clamp(1e-12, 1e12))
