"""Epsilon: what differential privacy guarantees to one picture in one client's uploads, by opacus' accountant."""

import math
import warnings

from leakage.spec.gaussian_privacy import DELTA, LARGEST

MISSING = 'Epsilon is computed by the package opacus, which is not installed. Run `pip install "gradient-leakage-explorer[privacy]"`.'


class AccountantError(RuntimeError):
    """The package that computes epsilon is not installed."""


def epsilon(noise_multiplier: float, steps: int, *, delta: float = DELTA, sample_rate: float = 1.0) -> float:
    """Return an upper bound on the epsilon of (epsilon, delta)-differential privacy after `steps` noisy sums.

    This is local privacy, for each sent update: it bounds what the server that receives the sums learns about one picture, present or
    absent.
    The part of the picture in each sum has at most norm C, and the noise is N(0, (z C)^2) with z = `noise_multiplier`. It is not the
    central epsilon of a training, which protects only what leaves the server and which random sampling (sample_rate < 1) makes smaller.
    Exchanging one picture for another counts as `epsilon(z / 2, steps)`. With sample_rate 1, T sums reveal exactly as much as one
    sum with z / sqrt(T). The bound is tight to 0.02; 0.01 of it is the accountant's margin.

    Args:
        noise_multiplier: standard deviation of the noise over C.
        steps: the sums that the picture takes part in; without mini-batches, all local steps of all rounds.
        delta: probability that the guarantee fails.
        sample_rate: probability that the picture takes part in a step.

    Returns:
        Epsilon; infinite without noise, and where it would be above about LARGEST: there the accountant would need gigabytes.

    Raises:
        AccountantError: the package opacus is not installed.
        ValueError: an argument is outside its range.

    Source: Gopi et al. 2021, "Numerical composition of differential privacy".
    """
    if not (0 <= noise_multiplier < math.inf and steps >= 1 and 0 < delta < 1 and 0 < sample_rate <= 1):
        raise ValueError(
            "epsilon: expected noise_multiplier >= 0, steps >= 1, delta in (0, 1) and sample_rate in (0, 1]; "
            f"got {noise_multiplier}, {steps}, {delta} and {sample_rate}."
        )
    if noise_multiplier == 0:
        return math.inf
    try:
        from opacus.accountants import PRVAccountant, RDPAccountant  # imported only here: it takes 1 to 2 seconds
    except ImportError:
        raise AccountantError(MISSING) from None

    history = [(noise_multiplier / math.sqrt(steps), 1.0, 1)] if sample_rate == 1 else [(noise_multiplier, sample_rate, steps)]
    rough, tight = RDPAccountant(), PRVAccountant()
    rough.history, tight.history = history, list(history)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # log(1 - sample_rate) is meant to be -inf; RDP's orders need not be the best ones here
        if rough.get_epsilon(delta) > LARGEST:
            return math.inf
        return max(0.0, float(tight.get_epsilon(delta)))
