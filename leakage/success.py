"""How often an attack succeeds, with what so few tries can tell: the Wilson confidence interval. No torch."""

from collections.abc import Sequence
from math import sqrt

Z = 1.959964  # of the normal distribution, for 95 %


def wilson(successes: int, tries: int, *, z: float = Z) -> tuple[float, float]:
    """The interval that holds the true success rate with 95 % confidence, inside [0, 1] for any number of tries.

    (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n). Source: Wilson 1927, "Probable inference".

    >>> tuple(round(end, 3) for end in wilson(8, 10))
    (0.49, 0.943)
    """
    if not 0 <= successes <= tries or tries < 1:
        raise ValueError(f"wilson: expected 0 <= successes <= tries and at least one try, got {successes} of {tries}. Run more seeds.")
    p, spread = successes / tries, z * z / tries
    middle, half = p + spread / 2, z * sqrt(p * (1 - p) / tries + spread / (4 * tries))
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))


def success_words(found: Sequence[bool]) -> str:
    """One line for people.

    >>> success_words([True] * 8 + [False] * 2)
    '8 of 10 (80 %; with 95 % confidence between 49 % and 94 %)'
    """
    low, high = wilson(sum(found), len(found))
    share = f"{100 * sum(found) / len(found):.0f} %"
    return f"{sum(found)} of {len(found)} ({share}; with 95 % confidence between {100 * low:.0f} % and {100 * high:.0f} %)"
