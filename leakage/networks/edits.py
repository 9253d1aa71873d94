"""A network with one step changed, as text."""

from dataclasses import replace

from leakage.networks.grammar import Block, Conv, Step, write


def with_skip(steps: tuple[Step, ...], place: int, skip: bool) -> str:
    """Write the network with the skip of the block at step `place` (from 0) if `skip`, else cut; no other step is changed."""
    step = steps[place]
    return write((*steps[:place], replace(step, skip=skip), *steps[place + 1 :])) if isinstance(step, Block) else write(steps)


def with_filters(steps: tuple[Step, ...], place: int, filters: int) -> str:
    """Write the network with another number of filters in the convolution at step `place` (from 0); no other step is changed."""
    step = steps[place]
    return write((*steps[:place], replace(step, filters=filters), *steps[place + 1 :])) if isinstance(step, Conv) else write(steps)
