"""A lesson as data: beats, claims that result files back, and the texts around them; a file each in assets/lessons. No torch."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

from leakage.settings import ROOT
from leakage.spec.experiment import Base, SpecError, parse_as

FOLDER = ROOT / "assets" / "lessons"
LONGEST = 60  # words of a beat, which take half a minute to read aloud
TOKEN = re.compile(r"\{([^{}]+)\}")
Stop = Annotated[str, Field(pattern=r"^(first|step [1-9]\d*|answer|answer, labels hidden)$")]


# ---------------------------------------------------------------- claims and figures


class Claim(Base):
    """A number that is computed from rows of a result file."""

    model_config = ConfigDict(populate_by_name=True)

    file: str
    """The path of the result file."""
    rows: str
    """The list of rows in the file, by dotted name; empty: the file itself is the only row."""
    where: dict[str, JsonValue]
    """Dotted names and the values that selected rows have there, null if missing; "a*b" is a product."""
    take: str
    """The value that is read in each selected row, by dotted name; a list gives all its values."""
    fold: str = Field(pattern=r"^(one|first|min|max|mean|median|sum|count|[lg]e:[-+.e\d]+|(eq|share):.+)$")
    """How the values become a number.

    one (there is exactly one), first, min, max, mean, median, sum, count; le:0.01 counts values up to 0.01, ge:20 counts values from 20 on,
    eq:word counts equal values, eq:word|other those that are equal to one of them, and share:word is how many percent these are.
    """
    scale: float = 1
    stated: int | float = Field(alias="is")
    """The printed number, `is` in the file: it must agree to the last digit."""
    unit: Literal["", "dB", "%"] = ""


class LessonFigure(Base):
    """Curves from a result file: every row gives x and a value for each y; `line` is the level of a reference line."""

    file: str
    rows: str
    where: dict[str, JsonValue] = {}
    x: str
    x_title: str
    y: tuple[str, ...] = Field(min_length=1)
    y_titles: tuple[str, ...] = Field(min_length=1)
    y_scale: float = 1
    y_unit: str = ""
    line: str = ""
    line_title: str = ""


# ---------------------------------------------------------------- beats


class Beat(Base):
    """A beat of a lesson: one of the screens that a reader goes through. These fields are common to all kinds of beats."""

    kind: str
    text: str
    note: str = ""
    """For the teacher."""
    requires: str = Field(default="", pattern=r"^(\w+:\w+)?$")
    """A plug-in, kind:id, without which the beat is left out."""

    @property
    def plays(self) -> tuple[str, ...]:
        """The names of the recorded runs that this screen of the lesson plays."""
        return ()


class TextBeat(Beat):
    """A beat of text alone."""

    kind: Literal["text"]


class PlayBeat(Beat):
    """A beat that plays one or two recorded runs as animations, until the frame `stop`."""

    kind: Literal["play"]
    runs: tuple[str, ...] = Field(min_length=1, max_length=2)
    stop: Stop = "answer"

    @property
    def plays(self) -> tuple[str, ...]:
        """The names of the recorded runs that this screen of the lesson plays."""
        return self.runs


class Option(Base):
    """One of the answers that a reader can choose to a question, and why it is right or wrong."""

    text: str
    right: bool
    why: str


class GuessBeat(Beat):
    """A question that the reader answers before the lesson goes on."""

    kind: Literal["guess"]
    options: tuple[Option, ...] = Field(min_length=2, max_length=4)


class RevealBeat(Beat):
    """The answer to the question of the previous GuessBeat, with recorded runs or a figure."""

    kind: Literal["reveal"]
    runs: tuple[str, ...] = Field(default=(), max_length=2)
    stop: Stop = "answer"
    figure: LessonFigure | None = None

    @property
    def plays(self) -> tuple[str, ...]:
        """The names of the recorded runs that this screen of the lesson plays."""
        return self.runs


class TryBeat(Beat):
    """A beat in which the reader changes settings (the knobs of a recorded grid) and sees the recorded result.

    `plot` lets a class collect its results as dots in a diagram; `words` gives knobs other names.
    """

    kind: Literal["try"]
    grid: str
    plot: bool = False
    words: dict[str, str] = {}


class FigureBeat(Beat):
    """A beat with a figure."""

    kind: Literal["figure"]
    figure: LessonFigure


class TakeawayBeat(Beat):
    """The sentence to remember of a lesson."""

    kind: Literal["takeaway"]


AnyBeat = Annotated[
    TextBeat | PlayBeat | GuessBeat | RevealBeat | TryBeat | FigureBeat | TakeawayBeat,
    Field(discriminator="kind"),
]


# ---------------------------------------------------------------- lessons

HALL = {  # kind of beat ("opening": the first beat) -> minutes in front of a hall, and what the teacher does
    "opening": (4, "Ask who knows the topic; say the text in your own words."),
    "text": (1, "Say the text in your own words."),
    "play": (4, "Let it run in silence; the key k plays it again."),
    "guess": (
        7,
        "One minute alone, on paper. Count hands with Shift and the digit. Two minutes in pairs, then press v and count again. "
        "The key r shows the answer.",
    ),
    "reveal": (3, "Ask what the owner of the phone would say."),
    "try": (2, "Let the hall choose a value, and guess before you press it."),
    "figure": (2, "Read the axes aloud first."),
    "takeaway": (4, "Let somebody read it aloud. Then key b (black screen), worksheet, solution; b and Esc at the end."),
}


class Expectation(Base):
    """The bounds `least` and `most` that a lesson's text assumes of a score of the recorded run `run`.

    If `over` names another recorded run, they bound the score's difference from that run's score.
    """

    run: str
    over: str = ""
    score: str = "psnr"
    least: float | None = None
    most: float | None = None


class Lesson(Base):
    """A lesson; the number with which its id begins gives its position."""

    id: str = Field(pattern=r"^\d\d-[a-z-]+$")
    title: str
    minutes: int = Field(ge=5, le=15)
    beats: tuple[AnyBeat, ...] = Field(min_length=3)
    claims: dict[str, Claim]
    expects: tuple[Expectation, ...] = ()
    caveat: str
    source: tuple[str, ...] = Field(min_length=1)
    worksheet: tuple[tuple[str, str], ...] = Field(min_length=3, max_length=3)

    @property
    def notes(self) -> str:
        """The notes of all beats, for the teacher."""
        return " ".join(beat.note for beat in self.beats if beat.note)

    @property
    def hall(self) -> tuple[tuple[int, str], ...]:
        """For each beat, its minutes in front of a hall (a guess has two votes, with discussion between) and what the teacher does."""
        return tuple(HALL["opening" if not index else beat.kind] for index, beat in enumerate(self.beats))

    @property
    def runs(self) -> list[str]:
        """The names of the recorded runs that the lesson plays, each once, in order."""
        return list(dict.fromkeys(name for beat in self.beats for name in beat.plays))

    @property
    def grids(self) -> list[str]:
        """The names of the grids that the lesson offers to try."""
        return [beat.grid for beat in self.beats if isinstance(beat, TryBeat)]

    @property
    def figures(self) -> list[LessonFigure]:
        """The figures that the lesson draws."""
        return [beat.figure for beat in self.beats if isinstance(beat, FigureBeat | RevealBeat) and beat.figure]

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each text of the lesson, by its position in the file, and the text."""
        yield "title", self.title
        for index, beat in enumerate(self.beats):
            yield f"beats.{index}.text", beat.text
            yield f"beats.{index}.note", beat.note
            for number, option in enumerate(beat.options if isinstance(beat, GuessBeat) else ()):
                yield f"beats.{index}.options.{number}.text", option.text
                yield f"beats.{index}.options.{number}.why", option.why
        yield "caveat", self.caveat
        for index, (question, answer) in enumerate(self.worksheet):
            yield f"worksheet.{index}.question", question
            yield f"worksheet.{index}.answer", answer


def parse_lesson(text: str | bytes, name: str) -> Lesson:
    """Parse a lesson from JSON; raise SpecError, with the lesson and the first wrong field, if it is not valid."""
    try:
        return parse_as(text, Lesson, "a lesson")
    except SpecError as error:
        raise SpecError(f"lesson {name}: {error}") from None


@cache
def lessons() -> tuple[Lesson, ...]:
    """Return all lessons in their order, read once; raise SpecError if a file is not valid."""
    return tuple(parse_lesson(file.read_bytes(), file.stem) for file in sorted(FOLDER.glob("[0-9][0-9]-*.json")))


def find_lesson(id: str) -> Lesson:
    """Return the lesson of that id; raise SpecError if there is none."""
    found = [lesson for lesson in lessons() if lesson.id == id]
    if not found:
        raise SpecError(f"There is no lesson {id!r}; expected is one of {', '.join(lesson.id for lesson in lessons())}.")
    return found[0]
