"""How many values somebody's JSON holds, at any depth. No torch."""

from typing import Any


def more_values_than(most: float, raw: dict[str, Any]) -> bool:
    """Whether there are more; it looks no further than that.

    >>> more_values_than(2, {"a": [1, {"b": 2}]}), more_values_than(4, {"a": [1, {"b": 2}]})
    (True, False)
    """
    count, left = 0, list[Any]([raw])
    while left and count <= most:
        part = left.pop()
        inside = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        count += len(inside)
        left += inside
    return count > most
