"""How long something takes on this machine as it stands, in words."""

import math

from leakage.results.durations import duration
from leakage.runs.estimates import LOADED, load_now


def about(seconds: float, *, limit: float = math.inf) -> str:
    """How long that takes now which takes so many seconds on an idle machine; where it is stopped at a limit, that too."""
    load = load_now()
    words = f"about {duration(seconds * load)} on this machine"
    words += f" while others use it ({duration(seconds)} when it is idle)" if load > LOADED else ""
    return words + (f", and {duration(limit)} at most: its time limit" if seconds * load > limit else "")
