"""The museum of papers as data: numbers that papers print, ours from result files, and the rule that compares them. No torch."""

import math
from functools import cache
from typing import Annotated, Literal

from pydantic import Field, JsonValue, model_validator

from leakage.learn.lessons import Claim
from leakage.settings import ROOT
from leakage.spec.experiment import Base, parse_as

FILE = ROOT / "assets" / "papers.json"
Name = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9.]+)*$")]
Verdict = Literal["reproduced", "same conclusion", "stronger", "explained", "differs", "overturned", "held so far", ""]
Unit = Literal["MSE", "RMSE", "PSNR", "SSIM", "count", "share", "accuracy", "condition", "distance"]
UNITS = {"mse": "MSE", "mse_norm": "MSE", "rmse255": "RMSE", "psnr": "PSNR", "ssim": "SSIM"}  # of a score in a result file


# ---------------------------------------------------------------- rules: how a verdict follows from the numbers


class NumberRule(Base):
    """Compares two numbers: *reproduced* if they are close enough for their unit; else *stronger*, *explained* or *differs*."""

    kind: Literal["number"]
    cause: Name | None = None
    """The row of a second run, without what made ours differ. If its number is close to the same published one, or better, the verdict is
    *explained*."""


class OrderRule(Base):
    """Asks whether a named order of rows holds in the paper and here: *same conclusion*, else *differs*."""

    kind: Literal["order"]
    order: Name


class StatementRule(Base):
    """Tests what the paper states in words against our numbers: *reproduced*, else *differs*."""

    kind: Literal["statement"]
    relation: Literal["less than", "more than", "no less than", "at most"]
    than: Claim | float
    margin: float = Field(default=0, ge=0)
    """By how much ours must be less, or more."""


class ProtectionRule(Base):
    """Tests a claim of protection: *overturned* if at least half of our runs succeed, *held so far* if none does, else *differs*.

    If no run succeeds without the protection either, nothing was tested: there is no verdict.
    """

    kind: Literal["protection"]
    successes: Claim
    runs: Claim
    unprotected: Claim | None = None
    """How many runs of the same attack succeed without the protection; None if that is known from the rows beside it."""
    measure: str
    """What counts as a success: the verdict of a run, or the paper's own measure."""


class DropRule(Base):
    """Compares how many points of accuracy a protection costs: *reproduced* if both drops are within one point, else *differs*."""

    kind: Literal["drop"]
    published_without: float
    without: Claim


class ReferenceRule(Base):
    """The row only stands beside others, as what it measures is not the paper's claim: it has no verdict."""

    kind: Literal["reference"]


Rule = Annotated[NumberRule | OrderRule | StatementRule | ProtectionRule | DropRule | ReferenceRule, Field(discriminator="kind")]


# ---------------------------------------------------------------- rows, tables, papers


class PaperRow(Base):
    """One number of a paper beside ours."""

    id: Name
    what: str
    short: str = ""
    """Its name in the chart of its table; empty: `what`."""
    published: float | None = None
    printed: str = ""
    """What the paper says in words where it prints no number."""
    unit: Unit
    ours: Claim
    mean: Claim | None = None
    """The mean of all runs, where `ours` is their median."""
    grey: Claim | None = None
    """What a grey picture scores in the same runs."""
    runs: Claim
    """How many runs are behind our number."""
    rule: Rule
    verdict: Verdict
    """The verdict of the rule when the file was written: it must be the same today."""
    why: str = ""
    run: Name | None = None
    """A recorded run that shows the row."""
    experiment: dict[str, JsonValue] | None = None
    """Settings with which the Lab computes one picture of the row, as JSON."""
    seconds: float | None = None
    """The processor seconds that such a run took."""
    options: str = ""
    """The options with which the command computes the row, such as "--steps 400"; empty: without any it computes this row, too."""

    @model_validator(mode="after")
    def _is_whole(self) -> "PaperRow":
        if self.published is None and not self.printed and self.rule.kind != "reference":
            raise ValueError(f"{self.id}: a verdict needs what the paper published.")
        if self.published is None and self.rule.kind in ("number", "drop"):
            raise ValueError(f"{self.id}: the rule {self.rule.kind} compares with a published number.")
        score = UNITS.get(self.ours.take.rsplit(".", 1)[-1])
        if score and self.rule.kind == "number" and not self.ours.fold.startswith(("le:", "ge:")) and score != self.unit:
            raise ValueError(f"{self.id}: {self.ours.take} is compared as {self.unit}, it is {score}.")
        if self.run and self.experiment:
            raise ValueError(f"{self.id}: it has a recorded run and an experiment; one is enough.")
        return self


class Table(Base):
    """A table, a figure or a section of a paper."""

    item: str
    title: str
    about: str = ""
    """What differs here from the paper's setting."""
    chart: str = ""
    """The title of the axis of a chart that draws published numbers beside ours; empty: there is none."""
    rows: tuple[PaperRow, ...] = ()


class Order(Base):
    """An order of rows by their numbers, from the smallest to the largest."""

    words: str
    rows: tuple[Name, ...] = Field(min_length=2)


class Erratum(Base):
    """A mistake in a paper or in its code."""

    where: str
    says: str
    known: str
    """How we know: a test, a command, or the formula with both numbers."""


class Gap(Base):
    """A table or figure of which nothing has been measured here."""

    what: str
    reason: str
    estimate: str
    """How long it would take, and on what."""
    command: str


class Paper(Base):
    """A paper, what it claims, and its tables."""

    id: Name
    title: str
    authors: str
    year: int | None = None
    claim: str
    tables: tuple[Table, ...]
    orders: dict[Name, Order] = {}
    errata: tuple[Erratum, ...] = ()
    missing: tuple[Gap, ...] = ()

    @property
    def rows(self) -> tuple[PaperRow, ...]:
        """All rows of all tables."""
        return tuple(row for table in self.tables for row in table.rows)

    @model_validator(mode="after")
    def _names_exist(self) -> "Paper":
        rows = {row.id: row for row in self.rows}
        for row in self.rows:
            if isinstance(row.rule, OrderRule) and row.id not in getattr(self.orders.get(row.rule.order), "rows", ()):
                raise ValueError(f"{row.id}: it is not in the order {row.rule.order}.")
            if isinstance(row.rule, NumberRule) and row.rule.cause:
                if not (cause := rows.get(row.rule.cause)):
                    raise ValueError(f"{row.id}: there is no row {row.rule.cause}.")
                if (cause.published, cause.unit, cause.rule) != (row.published, row.unit, NumberRule(kind="number")):
                    raise ValueError(f"{row.id}: its cause, {cause.id}, needs the same published number and unit, and no cause of its own.")
        if unknown := {id for order in self.orders.values() for id in order.rows} - set(rows):
            raise ValueError(f"{self.id}: an order has rows that do not exist: {', '.join(sorted(unknown))}.")
        return self


class Museum(Base):
    """The content of papers.json."""

    papers: tuple[Paper, ...]

    @model_validator(mode="after")
    def _ids_are_unique(self) -> "Museum":
        ids = [paper.id for paper in self.papers] + [row.id for paper in self.papers for row in paper.rows]
        if twice := {id for id in ids if ids.count(id) > 1}:
            raise ValueError(f"these names are used twice: {', '.join(sorted(twice))}.")
        return self


def script_of(row: PaperRow) -> str:
    """Return the path of the script that writes the result file of a row: it has the file's name."""
    return f"benchmarks/published/{row.ours.file.rsplit('/', 1)[-1].removesuffix('.json')}.py"


def command_of(row: PaperRow) -> str:
    """Return the command that computes a row."""
    return f"python {script_of(row)} {row.options}".rstrip()


@cache
def museum() -> Museum:
    """Return the content of papers.json, read once; raise SpecError if the file is not valid."""
    return parse_as(FILE.read_bytes(), Museum, "a museum", most=math.inf)
