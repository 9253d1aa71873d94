"""Expected duration in words, with the present load of this machine taken into account."""

import math

from leakage.results.durations import duration
from leakage.runs.estimates import LOADED, load_now


def about(seconds: float, *, limit: float = math.inf) -> str:
    """Return in words how long a computation takes at the present load of this machine.

    Args:
        seconds: How long it takes on an idle machine.
        limit: Its time limit in seconds; the words name it where the computation is expected to reach it.
    """
    load = load_now()
    words = f"about {duration(seconds * load)} on this machine"
    words += f" while others use it ({duration(seconds)} when it is idle)" if load > LOADED else ""
    return words + (f", and {duration(limit)} at most: its time limit" if seconds * load > limit else "")
