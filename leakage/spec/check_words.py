"""What the phones check of the received model, and what their checks found, in words. No torch."""

from collections.abc import Sequence
from math import inf
from typing import Protocol, TypeVar

from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment

Row = tuple[str, str, str]  # a tag such as "knows", a subject, and the fact about this subject


class FoundByCheck(Protocol):
    """The part of `CheckFacts` (runs/event_parts.py) that the threat model table reads: what one check found in one round."""

    @property
    def check(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def number(self) -> float | None: ...

    @property
    def threshold(self) -> float: ...

    @property
    def tripped(self) -> bool: ...

    @property
    def round(self) -> int: ...


Found = TypeVar("Found", bound=FoundByCheck)


def check_rows(experiment: Experiment, known: Catalog, readings: Sequence[FoundByCheck]) -> list[Row]:
    """Return a row of the threat model table for each check of the phones: what it measures, its threshold, and what it found.

    Args:
        experiment: the experiment.
        known: the plug-ins.
        readings: what the checks found; empty before the run has told it.
    """
    rows: list[Row] = []
    for part in experiment.checks:
        entry = known.checks.get(part.id)
        threshold = float(entry.resolve(part.fields)["threshold"])
        found = telling(readings, part.id)
        what = (
            f"{_outcome(found, refuse=experiment.refuse)}. The check measures {entry.measures}."
            if found
            else f"The check measures {entry.measures}. It trips above {threshold:g}: then the phone "
            f"{'sends nothing' if experiment.refuse else 'sends its update all the same, and the page shows what was found'}."
        )
        rows.append(("checks", f"The phone checks: {entry.short}", what))
    return rows


def telling(readings: Sequence[Found], check: str) -> Found | None:
    """Return what tells most of a check: the first round in which it tripped, else that of its largest number; None without a reading.

    A check that trips always has a number or is infinite; one that does not trip and has no number is not defined here.
    """
    own = [reading for reading in readings if reading.check == check]
    tripped = next((reading for reading in own if reading.tripped), None)
    return tripped or max(own, key=lambda reading: -inf if reading.number is None else reading.number, default=None)


def number_words(reading: FoundByCheck) -> str:
    """Return the number of a reading as text: whole from 1,000 on, else with three digits."""
    if reading.number is None:
        return "infinite" if reading.tripped else "not defined here"
    return f"{reading.number:,.0f}" if abs(reading.number) >= 1000 else f"{reading.number:.3g}"


def summary(readings: Sequence[FoundByCheck]) -> str:
    """Return what all checks found in one line, such as "New layers 4 above 0 in round 1"; "" if there are no checks."""
    found = [telling(readings, check) for check in dict.fromkeys(reading.check for reading in readings)]
    return "; ".join(
        f"{reading.title} {number_words(reading)}{f' above {reading.threshold:g} in round {reading.round}' if reading.tripped else ''}"
        for reading in found
        if reading
    )


def _outcome(reading: FoundByCheck, *, refuse: bool) -> str:
    numbers = f"{number_words(reading)} (threshold {reading.threshold:g})"
    if not reading.tripped:
        return f"{numbers}: it did not trip" if reading.number is not None else numbers
    after = "and from then on the phone sent nothing" if refuse else "and the phone sent its update all the same"
    return f"{numbers}: it tripped in round {reading.round}, {after}"
