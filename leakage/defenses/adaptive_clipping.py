"""Adaptive clipping: the longest that an update may be follows the lengths of the updates."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import changed, clip_by_norm, counted, none_added
from leakage.engine.core import AdaptiveStrategy, Client, ClientState, Defense, Params, StepRng, Update, param
from leakage.engine.matching import flatten

BOUND = "adaptive_clipping.bound"  # what the client's state holds of it: C


@dataclass(frozen=True, kw_only=True)
class AdaptiveClipping(Defense):
    """Delta min(1, C / ||Delta||) is sent, and beside it the bit b = [||Delta|| <= C] + N(0, bit_noise^2).

    Then C <- C exp(-rate (b - quantile)): it comes to lie where a share `quantile` of the updates is shorter. Noise on the sum is the
    server's, which it adds afterwards (central DP): against the server the clipping is all there is, and a direction that stays.
    An attacker who knows it needs no C: where an update was shortened, C is the length of what arrived; else the update is whole.
    Unlike the paper: the mean of b is taken over this phone alone; in a training every phone has a C of its own.
    Source: Andrew et al. 2021, algorithm 1, equation in section 2.1; Flower's defaults (initial_clipping_norm 0.1).
    """

    title = "Shortened updates with a limit that follows them (adaptive clipping)"
    short = "Adaptive clipping"
    plain = "An update that is too long is shortened before it is sent; what counts as too long follows the updates of earlier rounds."
    hint = "Like any shortening it keeps the direction, so it hides next to nothing. Without noise it promises nothing."
    stage = "update"
    source = "https://arxiv.org/abs/1905.03871"

    start: float = param(0.1, 1e-6, 1e6, "The longest that an update may be in the first round (C).")
    quantile: float = param(0.5, 0, 1, "The share of the updates that is to be shorter than C.")
    rate: float = param(0.2, 0, 2, "How fast C follows (eta_C).")
    bit_noise: float = param(0.0, 0, 100, "Deviation of the noise on the bit that says whether the update was shorter (sigma_b).")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            update, state = client(weights, x, y, state)
            step, state = counted(state, "adaptive_clipping")
            bound = float(state.get(BOUND, self.start))
            shorter = float(flatten(update).detach().norm() <= bound)
            bit = shorter + self.bit_noise * float(torch.randn((), generator=step_rng(step)))
            return clip_by_norm(update, bound), {**state, BOUND: torch.tensor(self.moved(bound, bit), dtype=torch.float64)}

        return send

    def surrogate(self, client: Client, received: Params) -> Client:
        length = float(flatten(received).norm())
        return changed(client, lambda update: clip_by_norm(update, length))

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {
            "as long as what arrived": AdaptiveStrategy(
                "known: the guess is shortened to the length of what arrived",
                self.surrogate,
                exact=True,
                errors=none_added,
            ),
            "as it is": AdaptiveStrategy("known, but not what the limit was: the guess is not shortened"),
        }

    def moved(self, bound: float, bit: float) -> float:
        """C of the next round, within what a float32 can hold."""
        factor = torch.tensor(-self.rate * (bit - self.quantile), dtype=torch.float64).exp()
        return float((bound * factor).clamp(1e-12, 1e12))
