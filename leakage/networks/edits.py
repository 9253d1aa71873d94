"""A network with one step changed, as text."""

from dataclasses import replace

from leakage.networks.grammar import Block, Conv, Step, write


def with_skip(steps: tuple[Step, ...], place: int, skip: bool) -> str:
    """Return the network with the skip of one block in place, or cut."""
    step = steps[place]
    return write((*steps[:place], replace(step, skip=skip), *steps[place + 1 :])) if isinstance(step, Block) else write(steps)


def with_filters(steps: tuple[Step, ...], place: int, filters: int) -> str:
    """Return the network with another number of filters in one convolution."""
    step = steps[place]
    return write((*steps[:place], replace(step, filters=filters), *steps[place + 1 :])) if isinstance(step, Conv) else write(steps)
