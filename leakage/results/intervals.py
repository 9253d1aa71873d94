"""Confidence intervals of a few runs: Wilson's of a success rate, Student's of a mean, Welch's of a difference. No torch."""

from collections.abc import Sequence
from math import floor, sqrt
from statistics import mean, stdev, variance

Z = 1.959964  # quantile of the normal distribution, for 95 %
T = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622)  # of Student's, 1 to 9 degrees of freedom
FEWEST = 3  # seeds; with fewer no spread is reported


def wilson(successes: int, tries: int, *, z: float = Z) -> tuple[float, float]:
    """Return the interval that contains the true success rate with 95 % confidence, inside [0, 1].

    (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n). Source: Wilson 1927, "Probable inference".

    Raises:
        ValueError: there is no try, or not 0 <= successes <= tries.

    >>> tuple(round(end, 3) for end in wilson(8, 10))
    (0.49, 0.943)
    """
    if not 0 <= successes <= tries or tries < 1:
        raise ValueError(f"wilson: expected 0 <= successes <= tries and at least one try, got {successes} of {tries}. Run more seeds.")
    p, spread = successes / tries, z * z / tries
    middle, half = p + spread / 2, z * sqrt(p * (1 - p) / tries + spread / (4 * tries))
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))


def success_words(successes: Sequence[bool]) -> str:
    """Describe how many of the tries succeeded, with the 95 % interval of the success rate.

    >>> success_words([True] * 8 + [False] * 2)
    '8 of 10 (80 %; with 95 % confidence between 49 % and 94 %)'
    """
    count, tries = sum(successes), len(successes)
    low, high = wilson(count, tries)
    percentage = f"{100 * count / tries:.0f} %"
    return f"{count} of {tries} ({percentage}; with 95 % confidence between {100 * low:.0f} % and {100 * high:.0f} %)"


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the interval that contains the mean with 95 % confidence, for 2 to 10 values of a normal distribution.

    mean -+ t s / sqrt(n). Source: Student 1908, "The probable error of a mean".

    Raises:
        ValueError: there are fewer than 2 or more than 10 values.

    >>> tuple(round(end, 2) for end in mean_interval([20.0, 22.0, 24.0]))
    (17.03, 26.97)
    """
    if not 2 <= len(values) <= len(T) + 1:
        raise ValueError(f"mean_interval: expected 2 to {len(T) + 1} values, got {len(values)}.")
    half = T[len(values) - 2] * stdev(values) / sqrt(len(values))
    return mean(values) - half, mean(values) + half


def difference_interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Return the interval that contains mean(first) - mean(second) with 95 % confidence.

    Each sequence has at least 2 values of a normal distribution. The variances may differ. Degrees of freedom are rounded down, and limited
    to 9: the interval is rather too wide than too narrow.
    Source: Welch 1947, "The generalization of Student's problem when several different population variances are involved".

    Raises:
        ValueError: a sequence has fewer than 2 values.

    >>> tuple(round(end, 2) for end in difference_interval([20.0, 22.0, 24.0], [10.0, 12.0, 14.0]))
    (5.47, 14.53)
    """
    if min(len(first), len(second)) < 2:
        raise ValueError(f"difference_interval: expected at least 2 values of each, got {len(first)} and {len(second)}.")
    middle = mean(first) - mean(second)
    parts = [(variance(values) / len(values), len(values) - 1) for values in (first, second)]
    spread = sum(part for part, _ in parts)
    if spread == 0:
        return middle, middle
    freedom = spread**2 / sum(part**2 / degrees for part, degrees in parts)
    half = T[min(floor(freedom + 1e-9), len(T)) - 1] * sqrt(spread)
    return middle - half, middle + half
