"""A table of variants and checks as plain data: what each check of the received model measured, and where it raised an alarm."""

from collections.abc import Sequence
from dataclasses import dataclass

from leakage.results.comparison import Row
from leakage.results.differences import sentence_case
from leakage.results.worst_case import worst_runs
from leakage.runs.event_parts import CheckFacts
from leakage.spec.check_words import number_words, telling
from leakage.spec.words import INAPPLICABLE, REFUSED

ALARM, FALSE_ALARM = "alarm", "false alarm"
UNDEFINED = "not defined"
NOTE = (
    "Each check computes one number before the phone sends anything. A number above the threshold is an alarm. A false alarm is an alarm "
    "although the server is honest: a check that often raises one is of little use. A check is not a proof: another change may pass it."
)


@dataclass(frozen=True)
class CheckedCell:
    """What one check measured in one variant, in the round that tells most."""

    number: str
    """The number as text; UNDEFINED where the check is not defined, "" where nothing is known yet."""
    alarm: str
    """ALARM or FALSE_ALARM, with the round if it is not the first; "" without an alarm."""


@dataclass(frozen=True)
class CheckedLine:
    """A variant of a comparison with what its checks measured."""

    title: str
    """The words that tell the variant apart."""
    honest: bool
    """Whether the server is honest."""
    cells: tuple[CheckedCell, ...]
    """A cell for each check of `CheckTable.checks`."""
    best: Row
    """The run of the variant that shows most."""

    @property
    def result_words(self) -> str:
        """What the attack shows: the verdict, or why there is none."""
        return self.best.verdict or (REFUSED if self.best.refused else INAPPLICABLE if self.best.inapplicable else self.best.ended)


@dataclass(frozen=True)
class CheckTable:
    """What the checks of a comparison measured, with a line for each variant."""

    checks: tuple[CheckFacts, ...]
    """A reading of each check, for its title, its threshold and what it measures."""
    lines: tuple[CheckedLine, ...]

    @property
    def sentences(self) -> list[str]:
        """Sentences on false alarms, and on servers that no other check notices, as far as runs have told what their checks found."""
        known = [line for line in self.lines if any(cell.number for cell in line.cells)]
        honest, cheating = [line for line in known if line.honest], [line for line in known if not line.honest]
        false = {index for index, _ in enumerate(self.checks) if any(line.cells[index].alarm for line in honest)}
        missed = [line.title for line in cheating if not any(cell.alarm for index, cell in enumerate(line.cells) if index not in false)]
        words = []
        if honest:
            words.append(f"False alarms with an honest server: {', '.join(self.checks[index].title for index in sorted(false)) or 'none'}.")
        if cheating:
            besides = " by a check without false alarms" if false else ""
            words.append(f"Servers that were not noticed{besides}: {', '.join(missed) or 'none'}.")
        return words


def check_table(rows: Sequence[Row]) -> CheckTable | None:
    """Return the table of variants and checks; None if no run has told yet what its checks found.

    Args:
        rows: the results of a comparison.
    """
    checks = {(reading.check, reading.threshold): reading for row in rows for reading in row.readings}
    if not checks:
        return None
    found = {row.arm: row.readings for row in reversed(rows) if row.readings}
    lines = [
        CheckedLine(
            title=sentence_case(arm),
            honest=not row.server,
            cells=tuple(_cell(found.get(arm, ()), *check, honest=not row.server) for check in checks),
            best=row,
        )
        for arm, row in worst_runs(rows).items()
    ]
    return CheckTable(checks=tuple(checks.values()), lines=tuple(lines))


def _cell(readings: Sequence[CheckFacts], check: str, threshold: float, *, honest: bool) -> CheckedCell:
    reading = telling([each for each in readings if each.threshold == threshold], check)
    if reading is None:
        return CheckedCell("", "")
    number = number_words(reading) if reading.number is not None or reading.tripped else UNDEFINED
    late = f" in round {reading.round}" if reading.round > 1 else ""
    return CheckedCell(number, (FALSE_ALARM if honest else ALARM) + late if reading.tripped else "")
