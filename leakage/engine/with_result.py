"""An iterator over a generator that keeps the generator's return value."""

from collections.abc import Generator, Iterator
from typing import Generic, TypeVar

Y = TypeVar("Y")
R = TypeVar("R")


class WithResult(Generic[Y, R]):
    """Iterate over what a generator yields; after the loop `result` is what it returned.

    >>> def count():
    ...     yield 1
    ...     return "done"
    >>> counted = WithResult(count())
    >>> list(counted), counted.result
    ([1], 'done')
    """

    result: R

    def __init__(self, generator: Generator[Y, None, R]) -> None:
        self._generator = generator

    def __iter__(self) -> Iterator[Y]:
        self.result = yield from self._generator
