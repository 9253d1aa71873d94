"""The table of a comparison: a line for every variant, naive and adaptive beside each other, and first what a grey picture scores."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

import plotly.graph_objects as go

from leakage.frontend.markup import render
from leakage.results.accuracy_cost import EPSILONS, Cost, epsilon_words, heading, seeds_words
from leakage.results.comparison import Row
from leakage.results.differences import sentence_case
from leakage.results.worst_case import attacker_words, worst_runs
from leakage.spec.words import INAPPLICABLE, NOT_SHOWN, PARTLY, RECOGNIZABLE, SINGLED_OUT
from leakage.ui.common.base_path import base
from leakage.ui.common.figures import against_accuracy

SHARES = {RECOGNIZABLE: 1.0, SINGLED_OUT: 0.75, PARTLY: 0.4}  # how much of a cell's colour
ATTACKERS = ("naive", "adaptive")
DASH = "–"


@dataclass(frozen=True, kw_only=True)
class TableCell:
    """A cell of a table of results.

    `kind`: "heat" is a PSNR, as strongly coloured as `share` from 0 to 1 says, and framed where a protection fools the naive attacker
    alone; "verdict" is coloured by its `word` and explained by `why`; "state" says how a run stands; without one it is plain text.
    `head`: the title of its column, where the cell may stand without a head of the table.
    """

    text: str
    kind: str = ""
    title: str = ""
    below: str = ""
    span: int = 1
    share: float = 0.0
    framed: bool = False
    word: str = ""
    why: str = ""
    head: str = ""

    @property
    def unknown(self) -> bool:
        """Whether there is nothing to read in it."""
        return self.text in ("", DASH) and not self.below


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of the table: what it says, how it is read, and what stands in it for a grey picture, as `grey` and `digits` tell.

    `each`: there is one for every attacker; else one for the variant, whoever attacks. `long`: its title may take several lines.
    """

    what: str
    read: Callable[[Row], TableCell]
    each: bool = True
    long: bool = False
    grey: str = ""
    digits: int = 0


VERDICT = Column(
    what="Could the picture be picked out of a line-up, and is it better than pictures that know nothing?", read=lambda row: verdict(row)
)
SCORES = {  # title -> its column
    "PSNR": Column(
        what="How close the stolen picture is, in decibels: higher leaks more.",
        read=lambda row: TableCell(text=number(row.psnr, 1)),
        grey="psnr",
        digits=1,
    ),
    "SSIM": Column(
        what="How alike the shapes are, up to 1: higher leaks more.",
        read=lambda row: TableCell(text=number(row.ssim, 2)),
        grey="ssim",
        digits=2,
    ),
    "LPIPS": Column(
        what="How different it looks, 0 for equal: lower leaks more.",
        read=lambda row: TableCell(text=number(row.lpips, 2)),
        grey="lpips",
        digits=2,
    ),
    "Rank": Column(
        what="Place of the private picture in a line-up of 100: 1 leaks most.",
        read=lambda row: TableCell(text=number(row.rank, 0)),
        grey="rank",
    ),
    "Label": Column(
        what="Classes that the attacker found out: the share that is right.",
        read=lambda row: TableCell(text=DASH if row.label_accuracy is None else f"{row.label_accuracy:.0%}"),
    ),
}
NOTE = """“–”: not measured, or not defined. Accuracy: of that model trained with this protection by one short recipe for all, where
that was measured, and blank where the model attacked here is another; in more rounds some catch up, see “Precomputed results”.
Privacy budget (epsilon): of differential privacy at delta 1e-5 or less, where a protection gives one, for one
picture or for all of one phone, as its threat model table says; ∞: it bounds nothing. Where the phone does
nothing that could be imitated, one run stands for both attackers."""
MATRIX_NOTE = f"""PSNR in decibels: higher leaks more. Coloured: {RECOGNIZABLE}; paler: {SINGLED_OUT}, {PARTLY}; not coloured: {NOT_SHOWN},
which is no proof of safety. Framed: only the naive attacker shows nothing."""
WORST_NOTE = "Every variant is judged by the best of all that attacked it. What none of them shows may be shown by another."
Arms = dict[str, dict[str, Row]]  # title -> attacker -> its run


def arms_of(rows: Sequence[Row]) -> Arms:
    """The runs of each arm by attacker, in the order of the arms."""
    arms: Arms = {}
    for row in rows:
        arms.setdefault(row.title, {})[row.attacker] = row
    return arms


def table(rows: Sequence[Row]) -> str:
    """The table as HTML, with what is known so far."""
    return _table(rows, arms_of(rows), _attackers(rows), {})


def worst_table(rows: Sequence[Row]) -> str:
    """A line for every variant as HTML: what the best of all its attackers found, and which one that was."""
    told = "The attack that shows most, what it knows, and how many were tried."
    finder = Column(what=told, read=lambda row: _finder(row, rows))
    return _table(rows, {title: {"both": row} for title, row in worst_runs(rows).items()}, ["both"], {"Found by": finder})


def _table(rows: Sequence[Row], arms: Arms, heard: Sequence[str], more: dict[str, Column]) -> str:
    """What protection costs stands beside the verdict, before everything that needs explaining."""
    costs = Column(what="How good a model gets behind it.", read=lambda row: accuracy(row.cost), each=False, long=True)
    columns = {"Verdict": VERDICT, heading([row.cost for row in rows]): costs, **SCORES, **more}
    if any(one is not None for row in rows for one in row.cost.epsilons(row.epsilon)):
        columns |= {name: _epsilon(place, what) for place, (name, what) in enumerate(EPSILONS.items())}
    return render(
        "ui/compare/table.html.jinja",
        base=base(),
        attackers=heard,
        columns=columns,
        greys=[
            TableCell(text=_grey(column, [row.grey for row in rows]), span=len(heard) if column.each else 1, head=name)
            for name, column in columns.items()
        ],
        lines=[_line(title, found, heard, columns) for title, found in arms.items()],
    )


def _epsilon(place: int, what: str) -> Column:
    """One of the columns of `EPSILONS`."""
    return Column(
        what=what, read=lambda row: TableCell(text=epsilon_words(row.cost.epsilons(row.epsilon)[place], 1)), each=False, long=True
    )


def _finder(row: Row, rows: Sequence[Row]) -> TableCell:
    """The attack, by whom, of how many tries; nobody while nothing is known."""
    tried = [one for one in rows if one.arm == row.arm and not one.inapplicable]
    ended = sum(one.answered or one.shows for one in tried)
    count = f"{ended} of {len(tried)} answered" if ended < len(tried) else f"best of {len(tried)}"
    if row.verdict is None:
        return TableCell(text=DASH, below=count if tried else "no attack applies")
    return TableCell(text=row.attack, below="; ".join(filter(None, [attacker_words(row), count])))


def _attackers(rows: Sequence[Row]) -> list[str]:
    return [attacker for attacker in ATTACKERS if any(row.attacker == attacker for row in rows)] or ["both"]


def _grey(column: Column, greys: Sequence[dict[str, float]]) -> str:
    """What a grey picture scores; the lowest and the highest where the variants have different pictures."""
    values = sorted(grey[column.grey] for grey in greys if column.grey in grey)
    ends = dict.fromkeys(number(value, column.digits) for value in (values[:1] + values[-1:]))
    return " to ".join(ends) or (DASH if column.grey else "")


def _line(title: str, found: dict[str, Row], heard: Sequence[str], columns: dict[str, Column]) -> dict[str, Any]:
    return {
        "title": sentence_case(title),
        "runs": ",".join(dict.fromkeys(row.run for row in found.values())),
        "cells": [it for name, column in columns.items() for it in _cells(name, column, found, heard)],
    }


def _cells(name: str, column: Column, found: dict[str, Row], heard: Sequence[str]) -> list[TableCell]:
    """What of one variant stands in a column; on a narrow screen, where there is no head of the table, with its title before it."""
    if not column.each:
        promised = max(found.values(), key=lambda row: row.epsilon is not None)
        return [replace(column.read(promised), head=name)]
    if "both" in found:
        return [replace(column.read(found["both"]), span=len(heard), head=name)]
    cells = {attacker: column.read(found[attacker]) if attacker in found else TableCell(text=DASH) for attacker in heard}
    return [replace(it, head=f"{name}, {attacker}") for attacker, it in cells.items()]


def accuracy(cost: Cost) -> TableCell:
    """How good a model gets, with what its seeds can tell; where it is blank, why."""
    if cost.accuracy is None:
        return TableCell(text=DASH, title=cost.blank)
    each = ", ".join(f"{one:.1%}" for one in cost.accuracies)
    return TableCell(text=f"{cost.accuracy:.1%}", title=f"{seeds_words([len(cost.accuracies)])}: {each}", below=cost.difference)


def matrix(rows: Sequence[Row]) -> str:
    """Protections down, attacks across, as HTML: the PSNR of each attacker, coloured by the verdict; how a run stands until it has one."""
    stacks, attacks = (list(dict.fromkeys(words)) for words in ([row.protection for row in rows], [row.attack for row in rows]))
    heard = _attackers(rows)
    found = {(row.protection, row.attack, row.attacker): row for row in rows}

    def cells(stack: str, attack: str) -> list[TableCell]:
        mine = {attacker: found.get((stack, attack, attacker)) for attacker in (*heard, "both")}
        if mine["both"]:
            return [_cell(mine["both"], span=len(heard))]
        naive, knowing = mine.get("naive"), mine.get("adaptive")
        fooled = naive is not None and naive.failed and knowing is not None and knowing.shows
        return [_cell(mine[attacker], framed=fooled and attacker == "adaptive") for attacker in heard]

    lines = [
        {"title": sentence_case(stack), "refused": "", "cells": [it for attack in attacks for it in cells(stack, attack)]}
        for stack in stacks
    ]
    return render("ui/compare/matrix.html.jinja", attackers=heard, attacks=attacks, lines=lines)


def _cell(row: Row | None, *, framed: bool = False, span: int = 1) -> TableCell:
    if row is None:
        return TableCell(text=DASH, span=span)
    if row.psnr is None or row.verdict is None:
        return replace(verdict(row), span=span)
    shown = SHARES.get(row.verdict, 0.0)
    return heat(row.psnr, shown, title=f"{row.name}: {row.verdict}. {row.words}", below=_cut(row), framed=framed, span=span)


def heat(psnr: float, share: float, *, title: str, below: str = "", framed: bool = False, span: int = 1) -> TableCell:
    """A cell with a PSNR, coloured by `share`."""
    return TableCell(text=f"{psnr:.1f}", kind="heat", share=share, title=title, below=below, framed=framed, span=span)


def verdict(row: Row) -> TableCell:
    """The verdict as a coloured word, or how the run stands."""
    if row.inapplicable:
        return TableCell(text=INAPPLICABLE, kind="state", title=row.ended)
    if row.verdict is None:
        return TableCell(text=row.ended, kind="state")
    return TableCell(text=row.verdict, kind="verdict", word=row.verdict, why=row.words or "", below=_cut(row))


def _cut(row: Row) -> str:
    """Of an attack that did not come to its own answer: how it ended."""
    return "" if row.answered else row.ended


def number(value: float | None, digits: int) -> str:
    """A number as it stands in the table."""
    return DASH if value is None else f"{value:z.{digits}f}"


def leakage_against_accuracy(rows: Sequence[Row], *, scene: str) -> go.Figure | None:
    """Leakage against accuracy of every protection whose accuracy is known; None while there are not two.

    Leakage: the PSNR that the strongest attacker reaches, over seeds and the like the mean. `scene`: the model and the data of both axes.
    """
    costs = {row.protection: row.cost for row in rows if row.accuracy is not None}
    points = []
    for protection, cost in costs.items():
        attackers: dict[tuple[str, str, str], list[float]] = {}
        for row in rows:
            if row.protection == protection and row.psnr is not None and (row.answered or row.shows):
                attackers.setdefault((row.attacker, row.attack, row.answer), []).append(row.psnr)
        if attackers:
            points.append((cost.accuracies, max(map(mean, attackers.values())), protection))
    if len(points) < 2:
        return None
    above = heading([cost for cost in costs.values()])
    return against_accuracy(points, rows[0].grey.get("psnr"), x=f"{above} (%)", y=f"what leaks of {scene} (dB)")
