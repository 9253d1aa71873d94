"""The outline of a lesson, as a room needs it: how many options each question has, and the grid of each beat to try."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leakage.rooms.room_errors import NO_BEAT, RoomError


@dataclass(frozen=True)
class Outline:
    """The beats of a lesson; they count from 1.

    `option_counts` has the number of options of each beat, `grids` the name and the number of cells of its grid.
    """

    id: str
    option_counts: tuple[int, ...]
    grids: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, lesson: Mapping[str, Any]) -> "Outline":
        """Return the outline of a lesson as the reader gets it (`leakage.learn.reader_data.reader_lesson`)."""
        beats, grids = lesson["beats"], lesson["grids"]
        names = [beat.get("grid", "") for beat in beats]
        return cls(
            id=lesson["id"],
            option_counts=tuple(len(beat.get("options", ())) for beat in beats),
            grids=tuple((name, len(grids[name]["cells"]) if name else 0) for name in names),
        )

    @property
    def beats(self) -> int:
        """The number of beats."""
        return len(self.option_counts)

    def checked(self, beat: int) -> int:
        """Return `beat`; raise RoomError if the lesson has no such beat."""
        if not 1 <= beat <= self.beats:
            raise RoomError(NO_BEAT.format(beat, self.beats), 422)
        return beat

    def options(self, beat: int) -> int:
        """Return the number of options of a beat's question; 0 if it asks nothing."""
        return self.option_counts[beat - 1]

    def cells(self, beat: int) -> int:
        """Return the number of cells of a beat's grid; 0 if it has none."""
        return self.grids[beat - 1][1]

    def grid(self, beat: int) -> str:
        """Return the name of a beat's grid; empty if it has none."""
        return self.grids[beat - 1][0]
