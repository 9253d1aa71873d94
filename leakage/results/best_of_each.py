"""Of several values with one key, the best."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def best_of_each(pairs: Iterable[tuple[Key, Value]], rank: Callable[[Value], Any]) -> dict[Key, Value]:
    """Return for every key the value of the highest rank, the first of equals; keys stand in the order of their first pair.

    >>> best_of_each([("a", 1), ("b", 5), ("a", 3)], rank=lambda value: value)
    {'a': 3, 'b': 5}
    """
    best: dict[Key, Value] = {}
    for key, value in pairs:
        if key not in best or rank(value) > rank(best[key]):
            best[key] = value
    return best
