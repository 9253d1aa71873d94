"""Pages to print for those who teach: of every lesson a worksheet, its solution and its course in a hall, and a plan for the whole."""

import base64
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from PIL import Image

from leakage.data.images import Pixels
from leakage.frontend.markup import render
from leakage.learn import recordings
from leakage.learn.lessons import GuessBeat, Lesson, lessons
from leakage.learn.reader_data import filled, first_beat_with_run, stop_row
from leakage.spec.experiment import SpecError

STYLE = Path(__file__).with_suffix(".css")
PLAN = "index"  # the name of the plan, which leads to all the others
SOLUTION = "-solution"  # after the id of the lesson
HALL = "-plan"  # likewise
KEYS = {"guess": "→, then Shift + 1 to 4, v, r", "takeaway": "→, then b", "play": "→, k to play again"}  # what is pressed at a beat
LETTERS = "ABCD"
SCALE = 8  # printed dots per pixel: a printer that smooths then smooths edges only
ACROSS = 4  # pictures of a batch side by side
COURSES = {  # minutes of a course -> its lessons
    25: ("02",),
    45: ("02", "08", "12"),
    90: ("02", "03", "04", "07", "08", "12"),
    180: tuple(f"{number:02}" for number in range(1, 13)),
}


class HandoutLinks(NamedTuple):
    """Where these pages lie: how they link to the lessons, and what is printed as the address of one."""

    reader: str  # the address of the page Learn, seen from a handout
    printed: Callable[[str], str]


class PrintedPicture(NamedTuple):
    """A picture, or those of a batch, as an address that holds it; none where the attacker has nothing yet."""

    address: str
    words: str
    many: bool


def names() -> list[str]:
    """What can be printed: the plan first."""
    return [PLAN, *(f"{lesson.id}{end}" for lesson in lessons() for end in ("", SOLUTION, HALL))]


def handout(name: str, links: HandoutLinks) -> str:
    """The plan, a worksheet or a solution as HTML that loads nothing. Raises SpecError when there is none of that name."""
    if name not in names():
        raise SpecError(f"There is no page {name!r} to print; expected is one of {', '.join(names())}.")
    if name == PLAN:
        return plan(links)
    lesson = next(one for one in lessons() if one.id == name.removesuffix(SOLUTION).removesuffix(HALL))
    if name.endswith(HALL):
        return hall_plan(lesson, links)
    return worksheet(lesson, links, solution=name.endswith(SOLUTION))


def worksheet(lesson: Lesson, links: HandoutLinks, *, solution: bool) -> str:
    """The three questions of a lesson, a guess to make before, and two pictures; as a solution with what is right, and why."""
    beats = [beat for beat in lesson.beats if isinstance(beat, GuessBeat)]
    pictures = list(_pictures(lesson, solution=solution))
    return render(
        "web/worksheet.html.jinja",
        style=_style(),
        lesson=lesson,
        number=int(lesson.id[:2]),
        count=len(lessons()),
        solution=solution,
        other=f"{lesson.id}{'' if solution else SOLUTION}.html",
        guesses=[(filled(beat.text, lesson), [_option(lesson, beat, at) for at in range(len(beat.options))]) for beat in beats],
        pictures=pictures,
        run=recordings.load(beat.plays[0]).title if solution and (beat := first_beat_with_run(lesson)) else "",  # it may tell the answer
        many=any(picture.many for picture in pictures),
        questions=[(filled(question, lesson), filled(answer, lesson)) for question, answer in lesson.worksheet],
        takeaway=filled(lesson.beats[-1].text, lesson),
        caveat=filled(lesson.caveat, lesson),
        reader=f"{links.reader}#{lesson.id}",
        printed=links.printed(lesson.id),
    )


def hall_plan(lesson: Lesson, links: HandoutLinks) -> str:
    """How a lesson is held in front of a hall, beat by beat: from which minute, what is pressed, seen and said. About 25 minutes."""
    begins = [sum(minutes for minutes, _ in lesson.hall[:place]) for place in range(len(lesson.beats) + 1)]
    return render(
        "web/hall_plan.html.jinja",
        style=_style(),
        lesson=lesson,
        number=int(lesson.id[:2]),
        minutes=begins[-1],
        beats=[
            {
                "when": f"{begins[place]} to {begins[place + 1]}",
                "keys": KEYS.get(beat.kind, "→") if place else "f, s",
                "kind": beat.kind,
                "sees": filled(beat.text, lesson),
                "notes": f"{filled(beat.note, lesson)} {lesson.hall[place][1]}".strip(),
                "right": [LETTERS[at] for at, one in enumerate(beat.options) if one.right] if isinstance(beat, GuessBeat) else [],
            }
            for place, beat in enumerate(lesson.beats)
        ],
        reader=f"{links.reader}#{lesson.id}/1?present",
    )


def _option(lesson: Lesson, beat: GuessBeat, at: int) -> dict[str, Any]:
    option = beat.options[at]
    return {"letter": LETTERS[at], "text": filled(option.text, lesson), "why": filled(option.why, lesson), "right": option.right}


def _pictures(lesson: Lesson, *, solution: bool) -> Iterator[PrintedPicture]:
    """Of the first run of a lesson: what is private, and what the attacker has when the guess is asked; in a solution the answer."""
    beat = first_beat_with_run(lesson)
    if beat is None:
        return
    recording, (private, *film) = recordings.load(beat.plays[0]), recordings.pictures_of(beat.plays[0])
    several = len(private) > 1
    yield PrintedPicture(_address(private), "The private pictures" if several else "The private picture", several)
    halt = len(film) - 1 if solution else stop_row(beat.stop, [recording.columns["step"][place] for place in recording.film.places])
    if halt is None:
        yield PrintedPicture("", "The attacker has nothing yet", several)
        return
    step = recording.columns["step"][recording.film.places[halt]]
    when = "in the end" if halt == len(film) - 1 else f"after {step:g} steps"
    yield PrintedPicture(_address(film[halt]), f"What the attacker sees {when}", several)


def _address(pictures: Pixels) -> str:
    """Pictures uint8 (B, H, W, 3) in rows, enlarged, as a data address."""
    rows = -(-len(pictures) // ACROSS)
    padded = np.full((rows * min(ACROSS, len(pictures)), *pictures.shape[1:]), 255, np.uint8)
    padded[: len(pictures)] = pictures
    whole = np.concatenate([np.concatenate([*row], axis=1) for row in padded.reshape(rows, -1, *pictures.shape[1:])])
    file = BytesIO()
    Image.fromarray(whole.repeat(SCALE, axis=0).repeat(SCALE, axis=1)).save(file, "WEBP", lossless=True, quality=50, method=2)
    return "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode()


def _style() -> Markup:
    return Markup(STYLE.read_text())


def _plan_of(course: tuple[str, ...]) -> str:
    """The page with the minutes of a course; nothing where it has several lessons, each with a page of its own."""
    return "".join(f"{lesson.id}{HALL}.html" for lesson in lessons() if course == (lesson.id[:2],))


def plan(links: HandoutLinks) -> str:
    """The page for teachers: lessons and their minutes, courses, what to install, what to do in the room."""
    return render(
        "web/plan.html.jinja",
        style=_style(),
        lessons=[
            {
                "id": lesson.id,
                "number": int(lesson.id[:2]),
                "title": lesson.title,
                "minutes": lesson.minutes,
                "in_hall": sum(minutes for minutes, _ in lesson.hall),
                "courses": [lesson.id[:2] in course for course in COURSES.values()],
            }
            for lesson in lessons()
        ],
        courses=[
            {
                "minutes": minutes,
                "plan": _plan_of(course),
                "of_lessons": sum(lesson.minutes for lesson in lessons() if lesson.id[:2] in course),
            }
            for minutes, course in COURSES.items()
        ],
        solution=SOLUTION,
        hall=HALL,
        reader=links.reader,
    )
