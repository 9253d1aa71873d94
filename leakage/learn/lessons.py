"""A lesson as data: beats, claims that result files back, and what is written beside them; one file each in assets/lessons. No torch."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

from leakage.settings import ROOT
from leakage.spec.experiment import Base, SpecError, parse_as

FOLDER = ROOT / "assets" / "lessons"
LONGEST = 60  # words of a beat: what is read aloud in half a minute
TOKEN = re.compile(r"\{([^{}]+)\}")
Stop = Annotated[str, Field(pattern=r"^(first|step [1-9]\d*|answer|answer, labels hidden)$")]


# ---------------------------------------------------------------- claims and figures


class Claim(Base):
    """A number that rows of a result file back.

    rows   the list in the file, by dotted name; empty: the file itself is the only row
    where  dotted names and what they are in the rows that count, null where they are missing; "a*b" is a product
    take   what is read in each of them, by dotted name; of a list every value
    fold   how many become one: one (there is exactly one), first, min, max, mean, median, sum,
           count; le:0.01 counts those up to it, eq:word equal ones
    stated  what is printed, as `is` in the file: the last digit counts
    """

    model_config = ConfigDict(populate_by_name=True)

    file: str
    rows: str
    where: dict[str, JsonValue]
    take: str
    fold: str = Field(pattern=r"^(one|first|min|max|mean|median|sum|count|le:[-+.e\d]+|eq:.+)$")
    scale: float = 1
    stated: int | float = Field(alias="is")
    unit: Literal["", "dB", "%"] = ""


class LessonFigure(Base):
    """Curves from a result file: every row gives x and one value for each y; `line` is a level that all are held against."""

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
    """What all kinds share. `requires`: a plug-in, kind:id, without which the beat is left out; `note`: for the person who teaches."""

    kind: str
    text: str
    note: str = ""
    requires: str = Field(default="", pattern=r"^(\w+:\w+)?$")

    @property
    def plays(self) -> tuple[str, ...]:
        """The recorded runs that this beat plays."""
        return ()


class TextBeat(Beat):
    """Words alone."""

    kind: Literal["text"]


class PlayBeat(Beat):
    """One or two recorded runs, which play until `stop`."""

    kind: Literal["play"]
    runs: tuple[str, ...] = Field(min_length=1, max_length=2)
    stop: Stop = "answer"

    @property
    def plays(self) -> tuple[str, ...]:
        """The recorded runs that this beat plays."""
        return self.runs


class Option(Base):
    """One answer to choose, and why it is right or wrong."""

    text: str
    right: bool
    why: str


class GuessBeat(Beat):
    """A question before anything moves on."""

    kind: Literal["guess"]
    options: tuple[Option, ...] = Field(min_length=2, max_length=4)


class RevealBeat(Beat):
    """The answer to the guess before it."""

    kind: Literal["reveal"]
    runs: tuple[str, ...] = Field(default=(), max_length=2)
    stop: Stop = "answer"
    figure: LessonFigure | None = None

    @property
    def plays(self) -> tuple[str, ...]:
        """The recorded runs that this beat plays."""
        return self.runs


class TryBeat(Beat):
    """A grid of what-ifs; `plot` lets a class collect its dots, `words` gives knobs other names."""

    kind: Literal["try"]
    grid: str
    plot: bool = False
    words: dict[str, str] = {}


class FigureBeat(Beat):
    """Curves."""

    kind: Literal["figure"]
    figure: LessonFigure


class TakeawayBeat(Beat):
    """What is left when the rest is forgotten."""

    kind: Literal["takeaway"]


AnyBeat = Annotated[
    TextBeat | PlayBeat | GuessBeat | RevealBeat | TryBeat | FigureBeat | TakeawayBeat,
    Field(discriminator="kind"),
]


# ---------------------------------------------------------------- lessons

HALL = {  # by kind of beat, and of the first: minutes in front of a hall, and what to do there
    "opening": (4, "Ask who has met it before; say it in your own words."),
    "text": (1, "Say it in your own words."),
    "play": (4, "Let it run without a word; k plays it again."),
    "guess": (
        7,
        "One minute alone, on paper. Count hands with Shift and the digit. Two minutes with the neighbour, then v and count again. "
        "r shows the answer.",
    ),
    "reveal": (3, "Ask what the owner of the phone would say."),
    "try": (2, "Let the hall choose a value, and guess before you press it."),
    "figure": (2, "Read the axes aloud first."),
    "takeaway": (4, "Let somebody read it aloud. Then b, the worksheet and its solution; b and Esc at the end."),
}


class Expectation(Base):
    """What a recording must show, or the lesson is wrong: a score of `run`, or how far it lies above that of `over`, is within bounds."""

    run: str
    over: str = ""
    score: str = "psnr"
    least: float | None = None
    most: float | None = None


class Lesson(Base):
    """A lesson; its place among the others is the number before its id."""

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
        """Those of all beats, for the person who teaches."""
        return " ".join(beat.note for beat in self.beats if beat.note)

    @property
    def hall(self) -> tuple[tuple[int, str], ...]:
        """Of each beat: its minutes in front of a hall, where a guess has two votes and talk between them, and what to do there."""
        return tuple(HALL["opening" if not place else beat.kind] for place, beat in enumerate(self.beats))

    @property
    def runs(self) -> list[str]:
        """The recorded runs that it plays, each once, in order."""
        return list(dict.fromkeys(name for beat in self.beats for name in beat.plays))

    @property
    def grids(self) -> list[str]:
        """The grids that it tries."""
        return [beat.grid for beat in self.beats if isinstance(beat, TryBeat)]

    @property
    def figures(self) -> list[LessonFigure]:
        """What it draws."""
        return [beat.figure for beat in self.beats if isinstance(beat, FigureBeat | RevealBeat) and beat.figure]

    def texts(self) -> Iterator[tuple[str, str]]:
        """Every text that somebody reads, with where it stands."""
        yield "title", self.title
        for place, beat in enumerate(self.beats):
            yield f"beats.{place}.text", beat.text
            yield f"beats.{place}.note", beat.note
            for number, option in enumerate(beat.options if isinstance(beat, GuessBeat) else ()):
                yield f"beats.{place}.options.{number}.text", option.text
                yield f"beats.{place}.options.{number}.why", option.why
        yield "caveat", self.caveat
        for place, (question, answer) in enumerate(self.worksheet):
            yield f"worksheet.{place}.question", question
            yield f"worksheet.{place}.answer", answer


def parse_lesson(text: str | bytes, name: str) -> Lesson:
    """A lesson from JSON. Raises SpecError naming the lesson and the first field that is wrong."""
    try:
        return parse_as(text, Lesson, "a lesson")
    except SpecError as error:
        raise SpecError(f"lesson {name}: {error}") from None


@cache
def lessons() -> tuple[Lesson, ...]:
    """All lessons, in their order, read once. Raises SpecError."""
    return tuple(parse_lesson(file.read_bytes(), file.stem) for file in sorted(FOLDER.glob("[0-9][0-9]-*.json")))


def find_lesson(id: str) -> Lesson:
    """The lesson of that id. Raises SpecError."""
    found = [one for one in lessons() if one.id == id]
    if not found:
        raise SpecError(f"There is no lesson {id!r}; expected is one of {', '.join(one.id for one in lessons())}.")
    return found[0]
