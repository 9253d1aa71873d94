"""The front door as data: the film that asks what noise will become, and twelve stories, each with its lesson and its run. No torch."""

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
LAYERS = 8  # of the update, drawn
SIDE = 2  # pictures in a row and in a column, where a story has several


class Story(Base):
    """A card of the front door: the beat of a lesson that tells it, and the recorded run that it shows."""

    title: str
    line: str
    lesson: str
    beat: int = Field(ge=1)  # from 1, as in addresses
    run: str

    @field_validator("title")
    @classmethod
    def _short(cls, title: str) -> str:
        if len(title.split()) > LONGEST:
            raise ValueError(f"at most {LONGEST} words are allowed")
        return title


class FrontDoor(Base):
    """The whole file. `film` is a recorded run, which halts at `stop`; `why` is the lesson that explains it, `teach` that of the guide."""

    film: str
    stop: Stop
    why: str
    teach: str
    stories: tuple[Story, ...] = Field(min_length=12, max_length=12)


@cache
def front_door() -> FrontDoor:
    """All of it, read once. Raises SpecError."""
    return parse_as(FILE.read_bytes(), FrontDoor, "a file of stories")


def door_data(known: Catalog | None, *, data: str, learn: str, lab: str | None, handouts: str, own: str | None = None) -> dict[str, Any]:
    """What reader/door.js draws, as plain data.

    data   the address below which films and thumbnails lie
    learn  the address of the page Learn
    lab    the address of the Lab; None where there is none
    handouts  the folder of the pages to print
    own    where somebody tries their own picture

    Raises SpecError where the film is missing.
    """
    door = front_door()
    run = recordings.load(door.film)
    steps = [run.columns["step"][place] for place in run.film.places]
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
        "links": {"why": f"{learn}#{door.why}/1", "learn": learn, "teach": f"{handouts}/{door.teach}-plan.html", "own": own},
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
    """Where the Lab has the settings of its run."""
    query = lab_query(planned_run(story.run).experiment, known) if lab is not None else None
    return f"{lab}?{query}" if query else None


@cache
def story_picture(run: str) -> bytes:
    """What was private beside what became of it in the end, as WebP; of a batch four of each. Raises SpecError for a run of no story."""
    if run not in {story.run for story in front_door().stories}:
        raise SpecError(f"There is no story of {run!r}.")
    rows = recordings.pictures_of(run)
    return recordings.webp(np.concatenate([_tiled(rows[0]), _tiled(rows[-1])], axis=1))


def _tiled(pictures: Pixels) -> Pixels:
    """The first of them, or the first four as a square."""
    if len(pictures) < SIDE * SIDE:
        one: Pixels = pictures[0]
        return one
    rows = [np.concatenate([*pictures[SIDE * row : SIDE * (row + 1)]], axis=1) for row in range(SIDE)]
    return np.concatenate(rows)
