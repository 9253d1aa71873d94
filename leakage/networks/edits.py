"""A network with one step changed, as text."""

from dataclasses import replace

from leakage.networks.grammar import Block, Conv, Step, write


def with_skip(steps: tuple[Step, ...], index: int, skip: bool) -> str:
    """Return the text of the network in which the block at step `index` (from 0) has a skip if `skip`, else none."""
    step = steps[index]
    return write((*steps[:index], replace(step, skip=skip), *steps[index + 1 :])) if isinstance(step, Block) else write(steps)


def with_filters(steps: tuple[Step, ...], index: int, filters: int) -> str:
    """Return the text of the network in which the convolution at step `index` (from 0) has this number of filters."""
    step = steps[index]
    return write((*steps[:index], replace(step, filters=filters), *steps[index + 1 :])) if isinstance(step, Conv) else write(steps)
