"""The privacy budget of Gaussian noise in closed form, for sums that always contain the picture (no sampling). No torch."""

import math

DELTA = 1e-5  # the probability that the guarantee fails
LARGEST = 200.0  # the largest epsilon that is computed; above it, e^epsilon means nothing
USEFUL = 10.0  # the largest useful epsilon: one answer may be e^10 = 22,000 times as likely with the picture as without it


def delta_of(epsilon: float, mu: float) -> float:
    """Compute the delta of (epsilon, delta)-differential privacy of a Gaussian mechanism.

    Args:
        epsilon: the budget, at least 0.
        mu: sensitivity over standard deviation; sqrt(T) / sigma for T sums with the noise multiplier sigma.

    Returns:
        Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu).

    Source: Balle and Wang 2018, "Improving the Gaussian Mechanism for Differential Privacy", theorem 8.
    """
    far = _log_phi(-mu / 2 - epsilon / mu)
    return _phi(mu / 2 - epsilon / mu) - math.exp(min(0.0, epsilon + far))


def gaussian_epsilon(mu: float, delta: float = DELTA) -> float:
    """Compute the smallest epsilon at this delta for mu, as in `delta_of`; infinite above LARGEST.

    >>> round(gaussian_epsilon(1.0), 2)
    4.38
    >>> gaussian_epsilon(100.0)
    inf
    """
    if mu == 0:
        return 0.0
    if not math.isfinite(mu) or delta_of(LARGEST, mu) > delta:
        return math.inf
    low, high = 0.0, LARGEST
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle, mu) > delta else (low, middle)
    return high


def mu_of(epsilon: float, delta: float = DELTA) -> float:
    """Compute the largest mu that has this epsilon; the noise multiplier for T sums is sqrt(T) / mu.

    >>> round(gaussian_epsilon(mu_of(8.0)), 6)
    8.0
    """
    low, high = 0.0, LARGEST
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if middle == 0 or delta_of(epsilon, middle) <= delta else (low, middle)
    return low


def _phi(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _log_phi(x: float) -> float:
    """Compute log Phi(x) of the standard normal distribution, below -30 by an asymptotic series."""
    if x > -30:
        return math.log(_phi(x))
    return -x * x / 2 - math.log(-x * math.sqrt(2 * math.pi)) + math.log1p(-1 / x**2 + 3 / x**4)
