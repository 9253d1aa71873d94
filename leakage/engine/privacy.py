"""What differential privacy bounds of one client's uploads: the budget, whom it is about, and what it assumes."""

import math
from dataclasses import dataclass

from leakage.engine import accounting
from leakage.engine.core import Params
from leakage.engine.federation import Federation
from leakage.spec.gaussian_privacy import DELTA

COUNTED = "every noisy sum in which a picture takes part is counted, none is left out at random, and the noise stays secret"


@dataclass(frozen=True)
class PrivacyBudget:
    """The (epsilon, delta) of differential privacy that one client's uploads keep, by the first protection that promises any.

    Args:
        epsilon: the budget, an upper bound; infinite where nothing is bounded or it is above 200; None where the package that computes it
            (opacus) is not installed
        delta: how often the guarantee may fail
        unit: whom it is about, and what that depends on: "one picture, present or absent"
        uses: how many noisy sums it adds up
        assumption: what it takes for granted
    """

    epsilon: float | None
    delta: float
    unit: str
    uses: int
    assumption: str = COUNTED


def privacy_budget(federation: Federation, weights: Params) -> PrivacyBudget | None:
    """That of the first protection that promises one, in all that this client has sent; None where none does."""
    for own in sorted(federation.protections, key=lambda own: own.place):
        passes = int(getattr(federation.protocol, "epochs", 1)) if own.defense.stage == "gradient" else 1
        uses, unit = federation.rounds * passes, own.defense.privacy_unit()
        noise_multiplier = own.defense.effective_noise_multiplier(len(weights))
        pure = own.defense.pure_epsilon(sum(value.numel() for value in weights.values()))
        if noise_multiplier is not None:
            try:
                value = accounting.epsilon(noise_multiplier, uses)
            except accounting.AccountantError as error:
                return PrivacyBudget(None, DELTA, unit, uses, str(error))
            return PrivacyBudget(value, DELTA, unit, uses)
        if pure is not None:
            return PrivacyBudget(pure * uses, 0.0, unit, uses)
    return None


def budget_words(epsilon: float | None, delta: float, unit: str, assumption: str) -> str:
    """A budget in one sentence.

    >>> budget_words(4.387, 1e-5, "one picture", "every upload is counted")
    'Privacy budget: epsilon 4.39 at delta 1e-05, for one picture; every upload is counted.'
    """
    if epsilon is None:
        return f"Privacy budget at delta {delta:g}, for {unit}: not computed. {assumption}"
    value = "above 200, which bounds nothing," if math.isinf(epsilon) else f"{epsilon:.2f}"
    return f"Privacy budget: epsilon {value} at delta {delta:g}, for {unit}; {assumption}."
