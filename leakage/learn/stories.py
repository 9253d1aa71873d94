"""The data of the front door: the film that asks what noise will become, and twelve stories with their lessons and runs. No torch."""

from functools import cache
from typing import Any

import numpy as np
from pydantic import Field, field_validator

from leakage.data.images import Pixels
from leakage.learn import recordings
from leakage.learn.lab_link import lab_query
from leakage.learn.lessons import FOLDER, Stop
from leakage.learn.planned import planned_run
from leakage.learn.reader_data import stop_row
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Base, SpecError, parse_as

FILE = FOLDER / "stories.json"
LONGEST = 6  # words of a title
LAYERS = 8  # of the update, at most, are drawn
SIDE = 2  # pictures in a row and in a column of a story about a batch


class Story(Base):
    """A card on the first page (the front door): a title, the beat of a lesson that it links to, and the recorded run that it shows."""

    title: str
    line: str
    lesson: str
    beat: int = Field(ge=1)
    """The number of the beat, from 1 as in addresses."""
    run: str

    @field_validator("title")
    @classmethod
    def _short(cls, title: str) -> str:
        if len(title.split()) > LONGEST:
            raise ValueError(f"at most {LONGEST} words are allowed")
        return title


class FrontDoor(Base):
    """The content of stories.json: the film and the stories of the first page (the front door)."""

    film: str
    """The name of the recorded run that the film shows."""
    stop: Stop
    """The frame at which the film halts."""
    why: str
    """The id of the lesson that explains the film."""
    teach: str
    """The id of the lesson of the teacher's guide."""
    stories: tuple[Story, ...] = Field(min_length=12, max_length=12)


@cache
def front_door() -> FrontDoor:
    """Return the content of stories.json, read once; raise SpecError if the file is not valid."""
    return parse_as(FILE.read_bytes(), FrontDoor, "a file of stories")


def door_data(known: Catalog | None, *, data: str, learn: str, lab: str | None, handouts: str, own: str | None = None) -> dict[str, Any]:
    """Return the data of the first page (the front door), as reader/door.js draws it: "film", "links" and "stories".

    Args:
        known: the installed plug-ins; None while they are not known.
        data: the address of the folder with films and thumbnails.
        learn: the address of the page Learn.
        lab: the address of the Lab; None if there is no Lab.
        handouts: the address of the folder with the pages to print.
        own: the address of the script with which visitors attack their own picture; None if there is none.

    Raises:
        SpecError: the recorded run that the film shows is missing or damaged.
    """
    door = front_door()
    run = recordings.load(door.film)
    steps = [run.columns["step"][index] for index in run.film.places]
    received: Any = run.meta["received"]
    return {
        "film": {
            "address": f"{data}/runs/{door.film}.webp",
            "side": run.film.side,
            "steps": steps,
            "halt": stop_row(door.stop, steps) or 0,
            "entries": received["entries"],
            "layers": received["layers"][:LAYERS],
            "seconds": run.seconds,
        },
        "links": {"why": f"{learn}#{door.why}/1", "learn": learn, "teach": f"{handouts}/{door.teach}-plan.html", "lab": lab or ""},
        "own": own,
        "stories": [
            {
                "title": story.title,
                "line": story.line,
                "href": f"{learn}#{story.lesson}/{story.beat}",
                "lab": _lab(story, known, lab),
                "thumbnail": f"{data}/stories/{story.run}.webp",
            }
            for story in door.stories
        ],
    }


def _lab(story: Story, known: Catalog | None, lab: str | None) -> str | None:
    """Return the address that opens the story's experiment in the Lab; None without a Lab, or if the Lab cannot show the experiment."""
    query = lab_query(planned_run(story.run).experiment, known) if lab is not None else None
    return f"{lab}?{query}" if query else None


@cache
def story_picture(run: str) -> bytes:
    """Return the picture of a story as WebP: a run's private picture beside its reconstruction; for a batch from 4 on, four of each.

    Raises:
        SpecError: no story has this run.
    """
    if run not in {story.run for story in front_door().stories}:
        raise SpecError(f"There is no story of {run!r}.")
    rows = recordings.pictures_of(run)
    return recordings.webp(np.concatenate([_tiled(rows[0]), _tiled(rows[-1])], axis=1))


def _tiled(pictures: Pixels) -> Pixels:
    """Return a batch (B, H, W, C) as one picture: its first picture, or, from four on, the first four in a square."""
    if len(pictures) < SIDE * SIDE:
        first: Pixels = pictures[0]
        return first
    rows = [np.concatenate([*pictures[SIDE * row : SIDE * (row + 1)]], axis=1) for row in range(SIDE)]
    return np.concatenate(rows)
