"""What the phones' checks of the received model found, as data for events; the end of a run that a phone refused."""

from collections.abc import Iterable

from leakage.engine.check import CheckReading, RefusedError
from leakage.engine.loading import load
from leakage.runs.endings import refused
from leakage.runs.event_parts import CheckFacts, Ending


def check_facts(readings: Iterable[CheckReading]) -> tuple[CheckFacts, ...]:
    """Return readings as data, each with the words of its check about the number."""
    return tuple(CheckFacts(measures=load("check", reading.check).measures, **vars(reading)) for reading in readings)


def refusal(error: RefusedError) -> Ending:
    """Return the ending of a run in which a phone refused to train the model that it received."""
    return refused(str(error), check_facts(error.readings))
