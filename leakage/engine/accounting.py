"""Epsilon: what differential privacy guarantees to one picture in one client's uploads, by opacus' accountant."""

import math
import warnings

from leakage.spec.gaussian_privacy import DELTA, LARGEST

MISSING = 'Epsilon is computed by the package opacus, which is not installed. Run `pip install "gradient-leakage-explorer[privacy]"`.'


class AccountantError(RuntimeError):
    """The package that computes epsilon is not installed."""


def epsilon(sigma: float, steps: int, *, delta: float = DELTA, sample_rate: float = 1.0) -> float:
    """The epsilon of (epsilon, delta)-differential privacy after `steps` noisy sums with noise multiplier `sigma`; an upper bound.

    Local, and per upload: what the server that receives them can tell of one picture, present or absent, whose part of each sum is at
    most C beside noise N(0, sigma^2 C^2). `steps` counts the sums that the picture takes part in: without mini-batches, all local steps
    of all rounds. It is not the central epsilon of a training, which only protects what leaves the server, and which random sampling
    (sample_rate < 1) makes smaller. One picture exchanged for another counts as `epsilon(sigma / 2, steps)`.
    With sample_rate 1, T sums say exactly what one with sigma / sqrt(T) does. The bound is tight to 0.02 (0.01 is the accountant's
    margin). Infinite without noise, and where it would be above about LARGEST, for which the accountant would need gigabytes.
    Needs opacus (else AccountantError), which is imported here and not before: it takes 1 to 2 seconds beside torch and scipy.
    Source: Gopi et al. 2021, "Numerical composition of differential privacy".
    """
    if not (0 <= sigma < math.inf and steps >= 1 and 0 < delta < 1 and 0 < sample_rate <= 1):
        raise ValueError(
            "epsilon: expected sigma >= 0, steps >= 1, delta in (0, 1) and sample_rate in (0, 1]; "
            f"got {sigma}, {steps}, {delta} and {sample_rate}."
        )
    if sigma == 0:
        return math.inf
    try:
        from opacus.accountants import PRVAccountant, RDPAccountant
    except ImportError:
        raise AccountantError(MISSING) from None

    history = [(sigma / math.sqrt(steps), 1.0, 1)] if sample_rate == 1 else [(sigma, sample_rate, steps)]
    rough, tight = RDPAccountant(), PRVAccountant()
    rough.history, tight.history = history, list(history)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # log(1 - sample_rate) is meant to be -inf; RDP's orders need not be the best ones here
        if rough.get_epsilon(delta) > LARGEST:
            return math.inf
        return max(0.0, float(tight.get_epsilon(delta)))
