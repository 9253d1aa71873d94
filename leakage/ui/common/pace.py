"""How long something takes on this machine as it stands, in words."""

from leakage.results.durations import duration
from leakage.runs.estimates import LOADED, load_now


def about(seconds: float) -> str:
    """What takes so many seconds on an idle machine, and whether others use it now."""
    load = load_now()
    return f"about {duration(seconds * load)} on this machine{' while others use it' if load > LOADED else ''}"
