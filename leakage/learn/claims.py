"""Recomputes the claims of lessons from the result files that back them, so that no number is typed into a sentence by hand."""

import json
import math
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from leakage.learn.lessons import FOLDER, Claim, Lesson, LessonFigure
from leakage.learn.recordings import short
from leakage.settings import ROOT
from leakage.spec.experiment import SpecError

FOLDS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "first": lambda values: values[0],
    "min": min,
    "max": max,
    "mean": statistics.fmean,
    "median": statistics.median,
    "sum": sum,
    "count": len,
}
STEP = re.compile(r"\[([^\]]+)\]|([^.\[\]]+)")  # of a dotted name: a key in square brackets, or one without dots
FIGURES = FOLDER / "figures.json"
RESULTS = ("benchmarks/results/", "assets/")  # a claim is backed by a file in one of these


class Checked(NamedTuple):
    """A claim (a number that a lesson states), and the number that its result file gives today."""

    lesson: str
    name: str
    file: str
    stated: int | float
    today: int | float

    @property
    def holds(self) -> bool:
        """Whether both numbers agree to the last printed digit."""
        return prints_equal(self.stated, self.today)

    @property
    def words(self) -> str:
        """A sentence that names the lesson, the claim and both numbers."""
        return f"lesson {self.lesson}, claim {self.name}: stated is {self.stated}, {self.file} gives {self.today!r}"


def check(lesson: Lesson, *, root: Path = ROOT) -> list[Checked]:
    """Recompute all numbers that a lesson states from their result files; raise SpecError, with lesson, claim and file, on failure."""
    done = []
    for name, claim in lesson.claims.items():
        try:
            done.append(Checked(lesson.id, name, claim.file, claim.stated, recompute(claim, root=root)))
        except (SpecError, LookupError, TypeError, ValueError, OSError) as error:
            raise SpecError(f"lesson {lesson.id}, claim {name}, {claim.file}: {error}") from None
    return done


def recompute(claim: Claim, *, root: Path = ROOT) -> int | float:
    """Compute the number of a claim from its result file; raise SpecError or LookupError where a row or its number is missing."""
    values = list(flatten([read(row, claim.take) for row in select_rows(claim, root=root)]))
    how, _, bound = claim.fold.partition(":")
    if how == "one" and len(values) != 1:
        raise SpecError(f"expected one row where {claim.where}, found {len(values)}.")
    if not values:
        raise SpecError(f"no row where {claim.where}.")
    if how == "le":
        return len([value for value in values if value <= float(bound)])
    if how == "ge":
        return len([value for value in values if value >= float(bound)])
    if how in ("eq", "share"):
        equal = len([value for value in values if str(value) in bound.split("|")])
        return equal if how == "eq" else 100 * equal / len(values)
    folded = number(values[0] if how == "one" else FOLDS[how](values))
    return folded * claim.scale


def flatten(values: Sequence[Any]) -> Iterator[Any]:
    """Yield every value; if a value is a list, yield its items instead."""
    for value in values:
        yield from value if isinstance(value, list) else [value]


def select_rows(claim: Claim | LessonFigure, *, root: Path = ROOT) -> list[Any]:
    """Select the rows of a result file that a claim or a figure uses; raise SpecError if the file is missing or no result file."""
    if not claim.file.startswith(RESULTS) or ".." in claim.file or not (root / claim.file).is_file():
        raise SpecError(f"{claim.file} is no file in {' or '.join(RESULTS)}.")
    whole = _content(root / claim.file, (root / claim.file).stat().st_mtime_ns)
    rows = read(whole, claim.rows) if claim.rows else [whole]
    return [row for row in rows if all(_has(row, name, value) for name, value in claim.where.items())]


class Drawing(NamedTuple):
    """The content of a figure: x and the values of each row, and the level of its reference line."""

    points: list[tuple[Any, list[float]]]
    level: float | None


def draw(figure: LessonFigure, *, root: Path = ROOT) -> Drawing:
    """Compute a figure's points from its result file; raise SpecError if the file is missing, LookupError if a value is missing."""
    rows = select_rows(figure, root=root)
    values = [(read(row, figure.x), [short(statistics.fmean(flatten([read(row, y)])) * figure.y_scale) for y in figure.y]) for row in rows]
    return Drawing(values, short(number(read(rows[0], figure.line)) * figure.y_scale) if figure.line else None)


def load_figure(figure: LessonFigure) -> Drawing:
    """Return a figure as `write_figures` wrote it, as an installed package has no result files; raise SpecError if it is missing."""
    figures = _content(FIGURES, FIGURES.stat().st_mtime_ns)
    if figure.digest() not in figures:
        raise SpecError(f"The figure of {figure.file} has not been drawn: run `make learn ARGS=--write`.")
    points, level = figures[figure.digest()]
    return Drawing([(x, y) for x, y in points], level)


def write_figures(lessons: Sequence[Lesson]) -> None:
    """Compute all figures of lessons and write them to FIGURES."""
    figures = {figure.digest(): draw(figure) for lesson in lessons for figure in lesson.figures}
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n")


@cache
def _content(file: Path, _changed: int) -> Any:
    return json.loads(file.read_bytes())


def read(row: Any, name: str) -> Any:
    """Return a value of nested data by a dotted name.

    A number is the index of a list, "a*b" the product of two values, and "mse.[0.0001]" has a key that contains a dot.

    Raises LookupError if the value does not exist.
    """
    if "*" in name:
        return math.prod(read(row, part) for part in name.split("*"))
    for bracketed, plain in STEP.findall(name):
        step = bracketed or plain
        try:
            row = row[int(step)] if isinstance(row, list | tuple) else row[step] if isinstance(row, dict) else getattr(row, step)
        except (LookupError, ValueError, AttributeError):
            raise LookupError(f"it has no {name}.") from None
    return row


def _has(row: Any, name: str, value: Any) -> bool:
    try:
        return bool(read(row, name) == value)
    except LookupError:
        return value is None


def number(value: Any) -> int | float:
    """Return the value if it is a number, else raise SpecError."""
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value
    raise SpecError(f"expected a number, found {value!r}.")


# ---------------------------------------------------------------- printed digits


def prints_equal(stated: int | float, found: int | float) -> bool:
    """Return whether both numbers are equal when printed with the digits of `stated`.

    >>> prints_equal(54.7, 54.6512), prints_equal(54.7, 54.64), prints_equal(7.4e-05, 7.449e-05)
    (True, False, True)
    """
    return as_printed(stated, found) == Decimal(repr(stated))


def as_printed(stated: int | float, found: int | float) -> Decimal:
    """Round `found` to the last digit of `stated`, in the way in which pages round."""
    exponent = Decimal(repr(stated)).as_tuple().exponent
    assert isinstance(exponent, int)
    return Decimal(f"{found:.{max(0, -exponent)}f}")


def corrected(stated: int | float, found: int | float) -> int | float:
    """Return `found` with as many decimals as `stated`, or with as many significant digits if the decimals would all be 0."""
    printed = as_printed(stated, found)
    if not printed and found and stated:
        digits = len(Decimal(repr(stated)).normalize().as_tuple().digits)
        return float(f"{found:.{digits}g}")
    return int(printed) if isinstance(stated, int) else float(printed)


def correct_claims(off: Sequence[Checked], folder: Path = FOLDER) -> Iterator[Path]:
    """Write the recomputed numbers of wrong claims into the files of their lessons, and yield these files.

    Args:
        off: the claims that no longer hold, with today's numbers.
        folder: the folder of the lessons.
    """
    for id in dict.fromkeys(claim.lesson for claim in off):
        file = folder / f"{id}.json"
        raw = json.loads(file.read_text())
        for claim in off:
            if claim.lesson == id:
                raw["claims"][claim.name]["is"] = corrected(claim.stated, claim.today)
        file.write_text(json.dumps(raw, indent=1, ensure_ascii=False) + "\n")
        yield file
