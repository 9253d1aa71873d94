"""Networks of which the convolutions can hand on a picture as it is. No torch."""

from itertools import takewhile

from leakage.networks.grammar import Conv, Linear, parse


def keeps_pictures(text: str, channels: int) -> bool:
    """Return whether a network begins with convolutions that can hand on each picture unchanged to a fully connected layer.

    They have stride 1, a padding that keeps the size, at least as many filters as a picture has channels, and no norm.

    Args:
        text: the network, as `grammar.parse` reads it.
        channels: the number of channels of a picture.

    >>> keeps_pictures("conv 3@12 p1 - linear 500", 3), keeps_pictures("conv 3@12 p1 - max 2 - linear 500", 3)
    (True, False)
    """
    steps = parse(text)
    convolutions = list(takewhile(lambda step: isinstance(step, Conv), steps))
    after = steps[len(convolutions) : len(convolutions) + 1]  # nothing: the linear layer to the outputs
    kept = (
        isinstance(step, Conv) and step.stride == 1 and 2 * step.padding == step.size - 1 and step.filters >= channels and not step.norm
        for step in convolutions
    )
    return bool(convolutions) and all(kept) and all(isinstance(step, Linear) for step in after)
