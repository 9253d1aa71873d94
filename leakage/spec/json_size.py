"""How many values a file of JSON holds: of too many a page would think for seconds before it could refuse them."""

from typing import Any


def more_values_than(most: float, raw: dict[str, Any]) -> bool:
    """Whether there are more values in it than that, at any depth.

    >>> [more_values_than(most, {"a": 1, "b": [2, {"c": 3}]}) for most in (4, 5)]
    [True, False]
    """
    count, left = 0, list[Any]([raw])
    while left and count <= most:
        part = left.pop()
        inside = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        count += len(inside)
        left += inside
    return count > most
