"""The differential-privacy budget of one client's uploads: epsilon and delta, the unit that they protect, and the assumption."""

import math
from dataclasses import dataclass

from leakage.engine import accounting
from leakage.engine.core import Params
from leakage.engine.federation import Federation
from leakage.spec.gaussian_privacy import DELTA

COUNTED = "every noisy sum in which a picture takes part is counted, none is left out at random, and the noise stays secret"


@dataclass(frozen=True)
class PrivacyBudget:
    """The (epsilon, delta) of differential privacy of all updates that one client sends, by the first protection that has a guarantee.

    Args:
        epsilon: an upper bound of the budget; infinite where nothing is bounded or the bound is above 200; None where the package that
            computes it (opacus) is not installed
        delta: the probability with which the guarantee may fail
        unit: what the guarantee protects, and on what that depends: "one picture, present or absent"
        uses: how often noise is added, over which the budget adds up: in each local step, or once per round for a sent update
        assumption: what the guarantee assumes; the reason where epsilon is None
    """

    epsilon: float | None
    delta: float
    unit: str
    uses: int
    assumption: str = COUNTED


def privacy_budget(federation: Federation, weights: Params) -> PrivacyBudget | None:
    """Compute the budget of the first protection with a privacy guarantee, over all rounds; None where no protection has a guarantee.

    Args:
        federation: protocol, protections and number of rounds.
        weights: the model's parameters, by name.
    """
    for protection in sorted(federation.protections, key=lambda protection: protection.index):
        defense = protection.defense
        passes = int(getattr(federation.protocol, "epochs", 1)) if defense.stage == "gradient" else 1
        uses, unit = federation.rounds * passes, defense.privacy_unit()
        noise_multiplier = defense.effective_noise_multiplier(len(weights))
        pure = defense.pure_epsilon(sum(value.numel() for value in weights.values()))
        if noise_multiplier is not None:
            try:
                value = accounting.epsilon(noise_multiplier, uses)
            except accounting.AccountantError as error:
                return PrivacyBudget(None, DELTA, unit, uses, str(error))
            return PrivacyBudget(value, DELTA, unit, uses)
        if pure is not None:
            return PrivacyBudget(pure * uses, 0.0, unit, uses)
    return None


def budget_sentence(epsilon: float | None, delta: float, unit: str, assumption: str) -> str:
    """Return a sentence that states a privacy budget.

    >>> budget_sentence(4.387, 1e-5, "one picture", "every upload is counted")
    'Privacy budget: epsilon 4.39 at delta 1e-05, for one picture; every upload is counted.'
    """
    if epsilon is None:
        return f"Privacy budget at delta {delta:g}, for {unit}: not computed. {assumption}"
    value = "above 200, which bounds nothing," if math.isinf(epsilon) else f"{epsilon:.2f}"
    return f"Privacy budget: epsilon {value} at delta {delta:g}, for {unit}; {assumption}."
