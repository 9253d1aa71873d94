"""A recorded grid, two files NAME.json and NAME.webp: the numbers and the final pictures of all what-ifs of a lesson, computed beforehand.

The film has a row for each batch of private pictures, then one for the answer of each cell; smaller batches leave the rest of a row black.
"""

from functools import cache
from typing import Literal, NamedTuple

import numpy as np

from leakage.data.images import Pixels, tiles
from leakage.learn.planned import PlannedGrid
from leakage.learn.recordings import SMALLEST, Film, Played, grey_of, read, short_or_none, webp
from leakage.runs.events import MetaEvent
from leakage.settings import ROOT
from leakage.spec.experiment import Base

FOLDER = ROOT / "assets" / "lessons" / "grids"
SCORES = ("psnr", "mse", "ssim", "rank", "identified", "label_accuracy")


class Cell(Base):
    """The recorded result for one choice of the knobs (settings that a reader changes): labels, scores, verdict, and rows of the film."""

    choice: tuple[int, ...]
    """The index of the value of each knob."""
    experiment_digest: str
    private: int = 0
    """The row of the film with the private pictures, of which the first `batch` count."""
    answer: int = 0
    """The row of the film with the reconstructions, of which the first `batch` count."""
    batch: int
    seconds: float
    scores: dict[str, float | None]
    """psnr, mse, ssim, rank, identified, label_accuracy, and grey: the PSNR of a plain grey picture."""
    labels: tuple[int, ...]
    """The labels that the attacker predicted, in the order of its pictures."""
    truth: tuple[int, ...]
    """The true labels."""
    word: str
    """The word of the verdict."""
    why: str
    """The numbers that explain the verdict."""


class GridRecording(Base):
    """The recording of a grid: the results of all choices of a lesson's knobs, with the layout of the film of their pictures."""

    format: Literal[2]
    title: str
    engine: str
    knobs: tuple[tuple[str, tuple[str, ...]], ...]
    """The name of each knob, and the labels of its values."""
    numbers: tuple[tuple[float | None, ...], ...]
    """The positions of these values on an axis; None for a value without a position."""
    class_names: tuple[str, ...]
    film: Film
    """The size of the film's pictures; its indices are not used."""
    cells: tuple[Cell, ...]
    """All cells, in the order of `PlannedGrid.cells`."""


class CellPlayed(NamedTuple):
    """A cell of a grid (the result for one choice of knobs) with its pictures, uint8 (B, H, W, C), and the names of the classes."""

    cell: Cell
    private: Pixels
    answer: Pixels
    class_names: tuple[str, ...]

    def at(self, choice: tuple[int, ...]) -> "CellPlayed":
        """Return a copy of the cell with another choice of the knobs, and the same answer and pictures."""
        return self._replace(cell=self.cell.model_copy(update={"choice": choice}))


def cell_of(choice: tuple[int, ...], run: Played) -> CellPlayed:
    """Return the cell of a grid that a finished run gives for this choice: the index of each knob's value."""
    meta = next(event for event in run.events if isinstance(event, MetaEvent))
    assert run.end.verdict is not None
    assert run.end.answer is not None
    scores = {name: short_or_none(getattr(run.end.scores, name)) for name in SCORES} | {"grey": short_or_none(grey_of(meta))}
    cell = Cell(
        choice=choice,
        experiment_digest=run.experiment.digest(),
        batch=meta.truth.batch,
        seconds=round((run.end.seconds or 0) * run.work_fraction, 2),
        scores=scores,
        labels=run.end.labels,
        truth=tuple(picture.label for picture in meta.truth.pictures),
        word=run.end.verdict.word,
        why=run.end.verdict.why,
    )
    return CellPlayed(
        cell, tiles(run.private, meta.truth.batch), tiles(run.pictures[run.end.answer], meta.truth.batch), meta.truth.class_names
    )


def record_grid(grid: PlannedGrid, played: list[CellPlayed], *, engine: str) -> tuple[GridRecording, bytes]:
    """Return the recording of a grid, and the film (one picture with a row for each batch of pictures) as WebP.

    Args:
        grid: the plan of the grid.
        played: all cells with their pictures, in the order of `PlannedGrid.cells`.
        engine: the version of the code that computed them.
    """
    widest = max(cell.cell.batch for cell in played)
    private = list({_row(cell.private, widest).tobytes(): _row(cell.private, widest) for cell in played}.values())
    row_of = {row.tobytes(): index for index, row in enumerate(private)}
    cells = [
        cell.cell.model_copy(update={"private": row_of[_row(cell.private, widest).tobytes()], "answer": len(private) + number})
        for number, cell in enumerate(played)
    ]
    recording = GridRecording(
        format=2,
        title=grid.title,
        engine=engine,
        knobs=tuple((knob.name, tuple(value.label for value in knob.values)) for knob in grid.knobs),
        numbers=tuple(tuple(value.number for value in knob.values) for knob in grid.knobs),
        class_names=played[0].class_names,
        film=Film(side=played[0].private.shape[1], batch=widest, places=()),
        cells=tuple(cells),
    )
    return recording, webp(np.concatenate([*private, *(_row(cell.answer, widest) for cell in played)]), method=SMALLEST)


def _row(pictures: Pixels, widest: int) -> Pixels:
    """Place pictures (B, H, W, C) side by side, (H, widest * W, 3), black where there is none."""
    rgb = np.repeat(pictures, 3, axis=3) if pictures.shape[3] == 1 else pictures
    whole = np.zeros((widest, *rgb.shape[1:]), np.uint8)
    whole[: len(rgb)] = rgb
    return np.concatenate([*whole], axis=1)


@cache
def load_grid(name: str) -> GridRecording:
    """Return the recorded grid of that name; raise SpecError if it is missing or damaged."""
    return read(FOLDER, name, GridRecording, "a recorded grid")
