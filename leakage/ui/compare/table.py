"""The table of a comparison: a row for a grey picture and for every variant, with the naive and the adaptive attacker side by side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leakage.frontend.markup import render
from leakage.results.accuracy_cost import EPSILONS, Cost, epsilon_words, heading, seeds_words
from leakage.results.comparison import Row
from leakage.results.differences import HONEST, sentence_case
from leakage.results.worst_case import attacker_words, worst_runs
from leakage.spec.words import INAPPLICABLE, NOT_SHOWN, PARTLY, RECOGNIZABLE, REFUSED, SINGLED_OUT
from leakage.ui.common.base_path import base

STRENGTHS = {RECOGNIZABLE: 1.0, SINGLED_OUT: 0.75, PARTLY: 0.4}  # verdict -> how strongly its cell is coloured
ATTACKERS = ("naive", "adaptive")
DASH = "–"


@dataclass(frozen=True, kw_only=True)
class TableCell:
    """A cell of a table of results."""

    text: str
    kind: str = ""
    """One of "heat" (a coloured PSNR), "verdict", "state" (how a run stands), or empty for plain text."""
    title: str = ""
    """The tooltip."""
    below: str = ""
    """A second, small line."""
    span: int = 1
    """The number of columns that the cell takes."""
    share: float = 0.0
    """Of a "heat" cell: how strongly it is coloured, from 0 to 1."""
    framed: bool = False
    """Of a "heat" cell: whether it is framed, because the protection fools the naive attacker alone."""
    word: str = ""
    """Of a "verdict" cell: the verdict, which decides the colour."""
    why: str = ""
    """Of a "verdict" cell: the reason, as a tooltip."""
    head: str = ""
    """The title of the column, for a screen that is too narrow for a head of the table."""

    @property
    def unknown(self) -> bool:
        """Whether the cell says nothing."""
        return self.text in ("", DASH) and not self.below


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of the table."""

    what: str
    """The tooltip of its title."""
    read: Callable[[Row], TableCell]
    """Makes the cell of a row."""
    each: bool = True
    """Whether there is a cell for each attacker; else one cell for the variant."""
    long: bool = False
    """Whether the title may take several lines."""
    grey: str = ""
    """The score of a grey picture that the column shows, by its name; empty for none."""
    digits: int = 0
    """The digits after the point of that score."""


def score_column(name: str, digits: int, what: str) -> Column:
    """Return the column of a score such as PSNR, which is also shown for a grey picture as a baseline.

    Args:
        name: the score's name, an attribute of `Row`.
        digits: the number of digits after the point.
        what: the explanation of the column.
    """
    return Column(what=what, read=lambda row: TableCell(text=number(getattr(row, name), digits)), grey=name, digits=digits)


VERDICT = Column(
    what="Could somebody pick the private picture out of a line-up? And is the attacker's picture better than pictures "
    "made without a gradient?",
    read=lambda row: verdict(row),
)
SCORES = {  # title -> column
    "PSNR": score_column(
        "psnr", 1, "How close the attacker's picture is to the private picture, in decibels (PSNR): a higher number leaks more."
    ),
    "SSIM": score_column("ssim", 2, "How alike edges and contrast in the two pictures are, up to 1 (SSIM): a higher number leaks more."),
    "LPIPS": score_column("lpips", 2, "How different the two pictures look, 0 for equal pictures (LPIPS): a lower number leaks more."),
    "Rank": score_column("rank", 0, "Place of the private picture in a line-up of 100 pictures: place 1 leaks most."),
    "Label": Column(
        what="The fraction of the pictures' classes (labels) that the attacker found out.",
        read=lambda row: TableCell(text=DASH if row.label_accuracy is None else f"{row.label_accuracy:.0%}"),
    ),
}
NOTE = (
    "A dash (–) means: not measured, or not defined. The accuracy is that of the model that the table names, after a short training with "
    "the protection of the row. The training is the same for all protections. The accuracy is blank if it was not measured, if another "
    "model is attacked here, or if the server changes the model: the phones then train another one. With more rounds of training some "
    "protections lose less accuracy, see “Precomputed results”. The privacy budget (epsilon) limits what can be learned about one picture, "
    "or about all pictures of one phone (differential privacy; delta, the small slack of this limit, is at most 0.00001). The sign ∞ means "
    "that the privacy budget bounds nothing. If the phone does nothing that an attacker could imitate, one run stands for both attackers."
)
MATRIX_NOTE = (
    "How close the attacker's picture is, in decibels (PSNR): a higher number leaks more. A full colour means: "
    f"{RECOGNIZABLE}. A paler colour means: {SINGLED_OUT}, or {PARTLY}. No colour means: {NOT_SHOWN}, which is no proof "
    "of safety. A frame means that only the adaptive attacker shows something."
)
WORST_NOTE = (
    "Every attacker tries each row, and the attacker that shows most of the pictures counts. An attacker that was not tried may show more."
)
Variants = dict[str, dict[str, Row]]  # title -> attacker -> the row of its run


def by_variant(rows: Sequence[Row]) -> Variants:
    """Group the rows by variant and attacker, in the order of the variants: title of a variant -> attacker -> row."""
    variants: Variants = {}
    for row in rows:
        variants.setdefault(row.title, {})[row.attacker] = row
    return variants


def table(rows: Sequence[Row]) -> str:
    """Return the table as HTML, with the results so far."""
    return _table(rows, by_variant(rows), _attackers(rows), {})


def worst_table(rows: Sequence[Row]) -> str:
    """Return a table as HTML with a row for each variant: the result of its best attacker, and which attacker that was."""
    explanation = "The attack that shows more of the pictures than any other, what its attacker knows, and how many attacks were tried."
    finder = Column(what=explanation, read=lambda row: _finder(row, rows))
    return _table(rows, {title: {"both": row} for title, row in worst_runs(rows).items()}, ["both"], {"Found by": finder})


def _table(rows: Sequence[Row], variants: Variants, attackers: Sequence[str], more: dict[str, Column]) -> str:
    """Return a table as HTML.

    What protection costs stands beside the verdict, before the scores that need explaining.

    Args:
        rows: the results.
        variants: the same, by variant and attacker.
        attackers: the attackers that have columns.
        more: further columns, by title.
    """
    costs = Column(what="The accuracy of a model trained with the protection.", read=lambda row: accuracy(row.cost), each=False, long=True)
    columns = {"Verdict": VERDICT, heading([row.cost for row in rows]): costs, **SCORES, **more}
    if any(epsilon is not None for row in rows for epsilon in row.cost.epsilons(row.epsilon)):
        columns |= {name: _epsilon(index, what) for index, (name, what) in enumerate(EPSILONS.items())}
    return render(
        "ui/compare/table.html.jinja",
        base=base(),
        attackers=attackers,
        columns=columns,
        greys=[
            TableCell(text=_grey(column, [row.grey for row in rows]), span=len(attackers) if column.each else 1, head=name)
            for name, column in columns.items()
        ],
        lines=[_line(title, row_of, attackers, columns) for title, row_of in variants.items()],
    )


def _epsilon(index: int, what: str) -> Column:
    """Return the column of the epsilon (privacy budget) with this index in `Cost.epsilons`; `what` explains it."""
    return Column(
        what=what, read=lambda row: TableCell(text=epsilon_words(row.cost.epsilons(row.epsilon)[index], 1)), each=False, long=True
    )


def _finder(row: Row, rows: Sequence[Row]) -> TableCell:
    """Return the cell that names the best attack, its attacker, and how many attacks were tried; a dash if nothing is known yet."""
    tried = [candidate for candidate in rows if candidate.arm == row.arm and not candidate.untried]
    ended = sum(candidate.answered or candidate.shows for candidate in tried)
    count = f"{ended} of {len(tried)} answered" if ended < len(tried) else f"best of {len(tried)}"
    if row.verdict is None:
        return TableCell(text=DASH, below=count if tried else "the phone sent nothing" if row.refused else "no attack applies")
    return TableCell(text=row.attack, below="; ".join(filter(None, [attacker_words(row), count])))


def _attackers(rows: Sequence[Row]) -> list[str]:
    return [attacker for attacker in ATTACKERS if any(row.attacker == attacker for row in rows)] or ["both"]


def _grey(column: Column, greys: Sequence[dict[str, float]]) -> str:
    """Return the score of a grey picture; the lowest and the highest if the variants have different pictures."""
    values = sorted(grey[column.grey] for grey in greys if column.grey in grey)
    ends = dict.fromkeys(number(value, column.digits) for value in (values[:1] + values[-1:]))
    return " to ".join(ends) or (DASH if column.grey else "")


def _line(title: str, row_of: dict[str, Row], attackers: Sequence[str], columns: dict[str, Column]) -> dict[str, Any]:
    return {
        "title": sentence_case(title),
        "runs": ",".join(dict.fromkeys(row.run for row in row_of.values())),
        "cells": [cell for name, column in columns.items() for cell in _cells(name, column, row_of, attackers)],
    }


def _cells(name: str, column: Column, row_of: dict[str, Row], attackers: Sequence[str]) -> list[TableCell]:
    """Return the cells of one variant in a column, each with its title for a narrow screen."""
    if not column.each:
        row_with_epsilon = max(row_of.values(), key=lambda row: row.epsilon is not None)
        return [replace(column.read(row_with_epsilon), head=name)]
    if "both" in row_of:
        return [replace(column.read(row_of["both"]), span=len(attackers), head=name)]
    cells = {attacker: column.read(row_of[attacker]) if attacker in row_of else TableCell(text=DASH) for attacker in attackers}
    return [replace(cell, head=f"{name}, {attacker}") for attacker, cell in cells.items()]


def accuracy(cost: Cost) -> TableCell:
    """Return the cell of an accuracy, with its difference and seeds; a dash with the reason if it is not known."""
    if cost.accuracy is None:
        return TableCell(text=DASH, title=cost.blank)
    each = ", ".join(f"{value:.1%}" for value in cost.accuracies)
    return TableCell(text=f"{cost.accuracy:.1%}", title=f"{seeds_words([len(cost.accuracies)])}: {each}", below=cost.difference)


def matrix(rows: Sequence[Row], *, by_server: bool = False) -> str:
    """Return a table as HTML, protections by attacks: the PSNR of each attacker, coloured by the verdict, or how the run stands.

    Args:
        rows: the results.
        by_server: whether the table is of protections by servers instead.
    """
    apart = len({row.server for row in rows}) > 1 and not by_server

    def place(row: Row) -> tuple[str, str]:
        server = row.server or HONEST
        return f"{row.protection}, {server}" if apart else row.protection, sentence_case(server) if by_server else row.attack

    stacks, attacks = (list(dict.fromkeys(values)) for values in zip(*map(place, rows), strict=True))
    attackers = _attackers(rows)
    row_of = {(*place(row), row.attacker): row for row in rows}

    def cells(stack: str, attack: str) -> list[TableCell]:
        row_by = {attacker: row_of.get((stack, attack, attacker)) for attacker in (*attackers, "both")}
        if row_by["both"]:
            return [_cell(row_by["both"], span=len(attackers))]
        naive, knowing = row_by.get("naive"), row_by.get("adaptive")
        fooled = naive is not None and naive.failed and knowing is not None and knowing.shows
        return [_cell(row_by[attacker], framed=fooled and attacker == "adaptive") for attacker in attackers]

    lines = [
        {"title": sentence_case(stack), "refused": "", "cells": [cell for attack in attacks for cell in cells(stack, attack)]}
        for stack in stacks
    ]
    return render("ui/compare/matrix.html.jinja", attackers=attackers, attacks=attacks, lines=lines)


def _cell(row: Row | None, *, framed: bool = False, span: int = 1) -> TableCell:
    if row is None:
        return TableCell(text=DASH, span=span)
    if row.psnr is None or row.verdict is None:
        return replace(verdict(row), span=span)
    strength = STRENGTHS.get(row.verdict, 0.0)
    return heat(row.psnr, strength, title=f"{row.name}: {row.verdict}. {row.words}", below=_cut(row), framed=framed, span=span)


def heat(psnr: float, share: float, *, title: str, below: str = "", framed: bool = False, span: int = 1) -> TableCell:
    """Return a cell with a PSNR in dB on a coloured ground; `share` is the strength of the colour, from 0 (nothing leaks) to 1."""
    return TableCell(text=f"{psnr:.1f}", kind="heat", share=share, title=title, below=below, framed=framed, span=span)


def verdict(row: Row) -> TableCell:
    """Return a cell with the verdict as a coloured word, or with how the run stands."""
    if row.untried:
        return TableCell(text=INAPPLICABLE if row.inapplicable else REFUSED, kind="state", title=row.ended)
    if row.verdict is None:
        return TableCell(text=row.ended, kind="state")
    return TableCell(text=row.verdict, kind="verdict", word=row.verdict, why=row.words or "", below=_cut(row))


def _cut(row: Row) -> str:
    """Return how an attack ended that did not reach its answer; an empty string for one that did."""
    return "" if row.answered else row.ended


def number(value: float | None, digits: int) -> str:
    """Format a number for the table; a dash for None."""
    return DASH if value is None else f"{value:z.{digits}f}"
