"""A recorded grid, `gNN.json` and `gNN.webp`: the numbers and the final pictures of every what-if of a lesson, answered beforehand.

The film has a row for each private batch that occurs, then one for the answer of each cell; smaller batches leave the rest of a row black.
"""

from functools import cache
from typing import Literal, NamedTuple

import numpy as np

from leakage.data.images import Pixels, tiles
from leakage.learn.planned import PlannedGrid
from leakage.learn.recordings import Film, Played, grey_of, kept, read, webp
from leakage.runs.events import MetaEvent
from leakage.settings import ROOT
from leakage.spec.experiment import Base

FOLDER = ROOT / "assets" / "lessons" / "grids"
SCORES = ("psnr", "mse", "ssim", "rank", "identified", "label_accuracy")


class Cell(Base):
    """One answer.

    choice   the place of the value of each knob
    private, answer  rows of the film, of which the first `batch` pictures count
    scores   psnr, mse, ssim, rank, identified, label_accuracy, and grey: the PSNR of a plain grey picture
    labels   that the attacker found, in the order of its pictures; truth: the right ones
    word     what was seen of the private pictures; why: the numbers behind it
    """

    choice: tuple[int, ...]
    experiment_digest: str
    private: int = 0
    answer: int = 0
    batch: int
    seconds: float
    scores: dict[str, float | None]
    labels: tuple[int, ...]
    truth: tuple[int, ...]
    word: str
    why: str


class GridRecording(Base):
    """All cells, in the order of `PlannedGrid.cells`."""

    format: Literal[2]
    title: str
    engine: str
    knobs: tuple[tuple[str, tuple[str, ...]], ...]  # the name of each, and its values as a reader sees them
    numbers: tuple[tuple[float | None, ...], ...]  # where those stand on an axis
    class_names: tuple[str, ...]
    film: Film  # its places are not used
    cells: tuple[Cell, ...]


class CellPlayed(NamedTuple):
    """A cell with its pictures, uint8 (B, H, W, C), and what its classes are called."""

    cell: Cell
    private: Pixels
    answer: Pixels
    class_names: tuple[str, ...]

    def at(self, choice: tuple[int, ...]) -> "CellPlayed":
        """The same as the answer to another choice."""
        return self._replace(cell=self.cell.model_copy(update={"choice": choice}))


def cell_of(choice: tuple[int, ...], run: Played) -> CellPlayed:
    """What is kept of a finished run."""
    meta = next(event for event in run.events if isinstance(event, MetaEvent))
    assert run.end.verdict is not None
    assert run.end.answer is not None
    scores = {name: kept(getattr(run.end.scores, name)) for name in SCORES} | {"grey": kept(grey_of(meta))}
    cell = Cell(
        choice=choice,
        experiment_digest=run.experiment.digest(),
        batch=meta.truth.batch,
        seconds=round((run.end.seconds or 0) * run.share, 2),
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
    """A recording of all cells, in the order of the grid, and its film."""
    widest = max(one.cell.batch for one in played)
    private = list({_row(one.private, widest).tobytes(): _row(one.private, widest) for one in played}.values())
    place_of = {row.tobytes(): place for place, row in enumerate(private)}
    cells = [
        one.cell.model_copy(update={"private": place_of[_row(one.private, widest).tobytes()], "answer": len(private) + number})
        for number, one in enumerate(played)
    ]
    made = GridRecording(
        format=2,
        title=grid.title,
        engine=engine,
        knobs=tuple((knob.name, tuple(value.label for value in knob.values)) for knob in grid.knobs),
        numbers=tuple(tuple(value.number for value in knob.values) for knob in grid.knobs),
        class_names=played[0].class_names,
        film=Film(side=played[0].private.shape[1], batch=widest, places=()),
        cells=tuple(cells),
    )
    return made, webp(np.concatenate([*private, *(_row(one.answer, widest) for one in played)]))


def _row(pictures: Pixels, widest: int) -> Pixels:
    """Pictures (B, H, W, C) side by side, (H, widest * W, 3), black where there is none."""
    rgb = np.repeat(pictures, 3, axis=3) if pictures.shape[3] == 1 else pictures
    whole = np.zeros((widest, *rgb.shape[1:]), np.uint8)
    whole[: len(rgb)] = rgb
    return np.concatenate([*whole], axis=1)


@cache
def load_grid(name: str) -> GridRecording:
    """The recorded grid of that name. Raises SpecError when it is missing or damaged."""
    return read(FOLDER, name, GridRecording, "a recorded grid")
