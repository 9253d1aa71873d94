"""Checks of JSON files: too many values would block a page for seconds; of a repeated name only the last value would count."""

from typing import Any

from leakage.spec.words import short_repr


def more_values_than(most: float, raw: dict[str, Any]) -> bool:
    """Return whether JSON data contains more than `most` values, at any depth.

    >>> [more_values_than(most, {"a": 1, "b": [2, {"c": 3}]}) for most in (4, 5)]
    [True, False]
    """
    count, uncounted = 0, list[Any]([raw])
    while uncounted and count <= most:
        part = uncounted.pop()
        inside = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        count += len(inside)
        uncounted += inside
    return count > most


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object from its pairs of name and value, as a hook for `json.loads`; raise ValueError if a name is repeated.

    >>> each_once([("seed", 1), ("size", 32)])
    {'seed': 1, 'size': 32}
    """
    values = dict[str, Any]()
    for name, value in pairs:
        if name in values:
            raise ValueError(f"{short_repr(name)} stands twice in one object: remove one of the two")
        values[name] = value
    return values
