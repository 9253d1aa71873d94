"""Epsilon of Gaussian noise in closed form: of sums in which a picture always takes part, nothing being sampled. No torch."""

import math

DELTA = 1e-5  # how often the guarantee may fail
LARGEST = 200.0  # above, a number says nothing (e^200)
USEFUL = 10.0  # above, a promise is of no use: one answer may be e^10 = 22,000 times as likely with the picture as without it


def delta_of(epsilon: float, mu: float) -> float:
    """The delta of (epsilon, delta)-differential privacy of a Gaussian mechanism.

    Args:
        epsilon: the budget, at least 0.
        mu: sensitivity over standard deviation; of T sums with noise multiplier sigma sqrt(T) / sigma.

    Returns:
        Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu).

    Source: Balle and Wang 2018, "Improving the Gaussian Mechanism for Differential Privacy", theorem 8.
    """
    far = _log_phi(-mu / 2 - epsilon / mu)
    return _phi(mu / 2 - epsilon / mu) - math.exp(min(0.0, epsilon + far))


def gaussian_epsilon(mu: float, delta: float = DELTA) -> float:
    """The smallest epsilon at this delta; infinite above LARGEST.

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
    """The largest mu whose epsilon is this one; the noise multiplier of T sums is sqrt(T) / mu.

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
    """log Phi(x); far below zero by its asymptotic series."""
    if x > -30:
        return math.log(_phi(x))
    return -x * x / 2 - math.log(-x * math.sqrt(2 * math.pi)) + math.log1p(-1 / x**2 + 3 / x**4)
