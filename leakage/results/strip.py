"""A strip: the pictures of attacks at some of their steps in rows, the private pictures first and the answer last.

It has the form of figure 1 of the report on DLG and iDLG against ADMM, which shows the pictures at iterations 0, 10, 20, 40, ... 280.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from PIL import Image, ImageDraw

from leakage.data.images import Pixels, saved
from leakage.results.lettering import (
    ATTACKER,
    INK,
    PRIVATE,
    SOFT,
    TONES,
    WELL,
    LetterStyle,
    decibels,
    enlarged,
    font_of,
    in_font,
    wrapped,
    write_line,
)

MAX_BYTES, MAX_PIXELS = 1_900_000, 12_000_000
WIDTHS = ((3000, 0), (1800, 0), (1400, 0), (1000, 0), (1000, 256), (1000, 64))  # pixels and colours (0: all), tried in order
USUAL = 1800  # pixels; only the pictures of large batches, which would be shrunk, make a strip wider
NARROWEST = 960  # pixels
EDGE, GAP, INNER = 30, 14, 3  # pixels: around all, between columns, between the pictures of a batch
HEAD, SPACE = 34, 20  # pixels: of a line above a row, between its name and its outcome
NAMES = font_of(24)
ONE, SHEET = 256, 420  # the largest width of a single picture and of a batch, in pixels
OPTIONS: dict[str, dict[str, Any]] = {"png": {"optimize": True}, "webp": {"lossless": True, "quality": 50}}


class StripCell(NamedTuple):
    """The reconstructions after `step` steps, uint8 (B, H, W, 1 or 3), and their mean PSNR in dB."""

    pictures: Pixels
    step: int
    psnr: float | None


@dataclass(frozen=True)
class StripRow:
    """An attack on a strip."""

    name: str
    """What tells the attack from those of the other rows; its attack and protections if it is alone."""
    outcome: str
    """The verdict, or how the run ended or stands."""
    word: str | None
    """The word of the verdict, which decides on the colour of the outcome."""
    private: Pixels | None
    """The private pictures, uint8 (B, H, W, 1 or 3); None before the run begins."""
    cells: Sequence[StripCell | str]
    """For each column the result at a step, or words in its place, which may be empty."""
    answer: StripCell | None
    finished: bool
    """Whether the answer is final."""
    missing: str
    """Why there are no pictures between the private ones and the answer; empty if there are."""


@dataclass(frozen=True)
class Strip:
    """The content of a strip. All rows have the same number of cells."""

    title: str
    """The title above all rows; may be empty."""
    rows: Sequence[StripRow]
    notes: Sequence[str]
    """Sentences below the pictures."""
    settings: str
    """The settings that all rows share, in a line."""


def encode(strip: Strip, kind: str) -> bytes:
    """Draw a strip as "png" or as lossless "webp", of less than 2 MB: a strip of many pictures is narrower, at last in fewer colours."""
    data = b""
    for wide, colours in WIDTHS:
        layout = _Layout(strip, wide)
        if (wide > USUAL and not layout.shrinks(USUAL)) or (layout.width * layout.height > MAX_PIXELS and wide > WIDTHS[-1][0]):
            continue
        page = _drawn(layout)
        if colours:
            page = page.quantize(colours, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        data = saved(page, kind.upper(), **OPTIONS[kind])
        if len(data) <= MAX_BYTES:
            break
    return data


class _Layout:
    """The places of all that a strip shows, for a page of at most `wide` pixels; all lengths are in pixels."""

    def __init__(self, strip: Strip, wide: int) -> None:
        self.strip, self.wide = strip, wide
        shown = [cell for row in strip.rows for cell in (row.private, row.answer.pictures if row.answer else None) if cell is not None]
        self.shapes = {(len(pictures), pictures.shape[1]) for pictures in shown}
        self.count = 2 + max(max(len(row.cells), bool(row.missing)) for row in strip.rows)
        self.cell = max(_sheet_width(*shape, self.room(wide, shape[0])) for shape in self.shapes)
        self.width = max(NARROWEST if wide > NARROWEST else wide, 2 * EDGE + self.count * (self.cell + GAP) - GAP)
        inside = self.width - 2 * EDGE
        self.title = wrapped(in_font(strip.title), inside, font_of(32).getlength) if strip.title else []
        self.notes = [line for note in strip.notes for line in wrapped(in_font(note), inside, font_of(20).getlength)]
        self.settings = wrapped(in_font(strip.settings), inside, font_of(18).getlength) if strip.settings else []
        self.tops = [EDGE - 8 + 42 * len(self.title) + (14 if self.title else 0)]
        for row in strip.rows:
            self.tops.append(self.tops[-1] + HEAD * len(self.head(row)) + 6 + self.tall(row) + 70)
        self.notes_top = self.tops[-1] + 6
        self.settings_top = self.notes_top + 28 * len(self.notes) + (14 if self.notes else 0)
        self.height = self.settings_top + (26 * len(self.settings) + 24 if self.settings else 8)

    def room(self, wide: int, batch: int) -> int:
        """Return the width that a column may have."""
        return max(8, min(ONE if batch == 1 else SHEET, (wide - 2 * EDGE + GAP) // self.count - GAP))

    def shrinks(self, wide: int) -> bool:
        """Return whether pictures would be shrunk on a page of this width."""
        return any(shape[1] > _side(*shape, self.room(wide, shape[0])) for shape in self.shapes)

    def side(self, pictures: Pixels) -> int:
        """Return the side of each picture of a column as drawn."""
        return _side(len(pictures), pictures.shape[1], self.room(self.wide, len(pictures)))

    def tall(self, row: StripRow) -> int:
        """Return the height of the pictures of a row, or of the sentence in their place if it is taller."""
        pictures = row.answer.pictures if row.answer else row.private
        lines = 0 if pictures is None else -(-len(pictures) // _across(len(pictures)))
        sheet = 0 if pictures is None else lines * (self.side(pictures) + INNER) - INNER
        return max(sheet, 26 * len(self.missing(row)) + 24 if row.missing else 0)

    def head(self, row: StripRow) -> list[tuple[str, str]]:
        """Return the lines above a row; each is a part of its name, and what follows of its outcome."""
        inside, outcome = self.width - 2 * EDGE, in_font(row.outcome)
        *above, last = wrapped(in_font(row.name), inside, NAMES.getlength)
        if NAMES.getlength(last) + SPACE + NAMES.getlength(outcome) <= inside:
            return [*((line, "") for line in above), (last, outcome)]
        return [*((line, "") for line in (*above, last)), *(("", line) for line in wrapped(outcome, inside, NAMES.getlength))]

    def missing(self, row: StripRow) -> list[str]:
        """Return the lines of the sentence between the private pictures and the answer."""
        return wrapped(in_font(row.missing), self.left(self.count - 1) - GAP - self.left(1) - 24, font_of(20).getlength)

    def left(self, column: int) -> int:
        """Return the x at which a column begins."""
        return EDGE + column * (self.cell + GAP)


def _across(batch: int) -> int:
    """Return how many pictures of a batch stand side by side: a sheet is at least as tall as it is wide."""
    return math.isqrt(batch)


def _side(batch: int, original: int, room: int) -> int:
    """Return the side of a picture when drawn: enlarged by a whole factor if a sheet then fits into the width `room`, else shrunk."""
    space = (room - (_across(batch) - 1) * INNER) // _across(batch)
    return original * (space // original) or max(1, space)


def _sheet_width(batch: int, original: int, room: int) -> int:
    return _across(batch) * (_side(batch, original, room) + INNER) - INNER


def _drawn(layout: _Layout) -> Image.Image:
    strip = layout.strip
    page = Image.new("RGB", (layout.width, layout.height), "white")
    pen = ImageDraw.Draw(page)
    for number, words in enumerate(layout.title):
        write_line(pen, (EDGE, EDGE - 8 + 42 * number), words, LetterStyle(32, INK, bold=True))
    for row, top in zip(strip.rows, layout.tops[:-1], strict=True):
        _draw_row(page, layout, row, top)
    for number, words in enumerate(layout.notes):
        write_line(pen, (EDGE, layout.notes_top + 28 * number), words, LetterStyle(20, INK))
    if layout.settings:
        pen.rectangle((0, layout.settings_top - 2, layout.width, layout.height), fill=WELL)
    for number, words in enumerate(layout.settings):
        write_line(pen, (EDGE, layout.settings_top + 10 + 26 * number), words, LetterStyle(18, SOFT))
    return page


def _draw_row(page: Image.Image, layout: _Layout, row: StripRow, top: int) -> None:
    """Draw the title of a row, its pictures, and their captions."""
    pen, head, last = ImageDraw.Draw(page), layout.head(row), layout.count - 1
    for number, (name, outcome) in enumerate(head):
        end = write_line(pen, (EDGE, top + HEAD * number), name, LetterStyle(24, INK, bold=True)) + SPACE if name else EDGE
        write_line(pen, (end, top + HEAD * number), outcome, LetterStyle(24, TONES.get(row.word or "", SOFT)))
    top += HEAD * len(head) + 6
    below = top + layout.tall(row)

    def caption(column: int, lines: Sequence[str], colour: str, *, bold: bool = False) -> None:
        wide = layout.cell + (EDGE if column == last else GAP) - 4
        for number, words in enumerate(lines):
            write_line(pen, (layout.left(column), below + 6 + 24 * number), words, LetterStyle(20, colour, bold=bold), wide=wide)

    if row.private is not None:
        _draw_sheet(page, layout, row.private, (layout.left(0), top), PRIVATE)
        caption(0, ["private"], PRIVATE, bold=True)
    for column, cell in enumerate(row.cells, 1):
        if isinstance(cell, str):
            write_line(pen, (layout.left(column), top + 4), cell, LetterStyle(20, SOFT))
        else:
            _draw_sheet(page, layout, cell.pictures, (layout.left(column), top), SOFT)
            caption(column, [f"step {cell.step}", decibels(cell.psnr)], INK)
    if row.answer:
        words = f"{'answer' if row.finished else 'best so far'}, step {row.answer.step}"
        _draw_sheet(page, layout, row.answer.pictures, (layout.left(last), top), ATTACKER)
        caption(last, [words, decibels(row.answer.psnr)], ATTACKER, bold=True)
    if row.missing:
        left = layout.left(1)
        pen.rectangle((left, top, layout.left(last) - GAP, below), fill=WELL)
        for number, words in enumerate(layout.missing(row)):
            write_line(pen, (left + 12, top + 12 + 26 * number), words, LetterStyle(20, SOFT))


def _draw_sheet(page: Image.Image, layout: _Layout, pictures: Pixels, at: tuple[int, int], colour: str) -> None:
    """Draw the pictures of a column, each with an outline around it."""
    side, across = layout.side(pictures), _across(len(pictures))
    for index, picture in enumerate(pictures):
        x, y = at[0] + index % across * (side + INNER), at[1] + index // across * (side + INNER)
        ImageDraw.Draw(page).rectangle((x - 1, y - 1, x + side, y + side), outline=colour)
        page.paste(enlarged(picture, side), (x, y))
