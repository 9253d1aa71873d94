"""Pages to print for teachers: for every lesson a worksheet, its solution and a plan for a lecture hall; and a plan of all lessons."""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from PIL import Image

from leakage.data.images import Pixels, saved
from leakage.frontend.markup import render
from leakage.learn import recordings
from leakage.learn.lessons import GuessBeat, Lesson, lessons
from leakage.learn.reader_data import fill_numbers, first_beat_with_run, stop_row
from leakage.spec.experiment import SpecError

STYLE = Path(__file__).with_suffix(".css")
PLAN = "index"  # the name of the plan of all lessons, which links to all other pages
SOLUTION = "-solution"  # ends the name of a solution, after the id of its lesson
HALL = "-plan"  # ends the name of a plan for a lecture hall, after the id of its lesson
KEYS = {"guess": "→, then Shift + 1 to 4, v, r", "takeaway": "→, then b", "play": "→, k to play again"}  # by the kind of beat
LETTERS = "ABCD"
SCALE = 8  # printed dots per pixel, so that a printer that smooths pictures blurs only their edges
ACROSS = 4  # pictures of a batch in a row
COURSES = {  # minutes of a course: the numbers of its lessons
    25: ("02",),
    45: ("02", "08", "12"),
    90: ("02", "03", "04", "07", "08", "12"),
    180: tuple(f"{number:02}" for number in range(1, 13)),
}


class HandoutLinks(NamedTuple):
    """The addresses that a printed page shows."""

    reader: str
    """The address of the page Learn, as a page to print links to it."""
    printed: Callable[[str], str]
    """Given the id of a lesson, returns its address in the form in which a page prints it."""


class PrintedPicture(NamedTuple):
    """A picture, or the pictures of a batch, on a worksheet."""

    address: str
    """The picture as a data: URL; empty while the attacker has nothing."""
    caption: str
    many: bool
    """Whether these are the pictures of a batch."""


def handout_names() -> list[str]:
    """Return the names of all pages to print; the plan of all lessons is the first."""
    return [PLAN, *(f"{lesson.id}{end}" for lesson in lessons() for end in ("", SOLUTION, HALL))]


def handout(name: str, links: HandoutLinks) -> str:
    """Return a page to print as HTML that loads no other file.

    Args:
        name: One of `handout_names()`.
        links: The addresses that the page shows.

    Raises:
        SpecError: If there is no page of that name.
    """
    if name not in (names := handout_names()):
        raise SpecError(f"There is no page {name!r} to print; expected is one of {', '.join(names)}.")
    if name == PLAN:
        return plan(links)
    id = name.removesuffix(SOLUTION).removesuffix(HALL)
    lesson = next(lesson for lesson in lessons() if lesson.id == id)
    if name.endswith(HALL):
        return hall_plan(lesson, links)
    return worksheet(lesson, links, solution=name.endswith(SOLUTION))


def worksheet(lesson: Lesson, links: HandoutLinks, *, solution: bool) -> str:
    """Return a worksheet as HTML: guesses to make before the lesson, two pictures and three questions; a `solution` adds the answers."""
    beats = [beat for beat in lesson.beats if isinstance(beat, GuessBeat)]
    pictures = list(_printed_pictures(lesson, solution=solution))
    return render(
        "web/worksheet.html.jinja",
        style=_style(),
        lesson=lesson,
        number=int(lesson.id[:2]),
        count=len(lessons()),
        solution=solution,
        other=f"{lesson.id}{'' if solution else SOLUTION}.html",
        guesses=[(fill_numbers(beat.text, lesson), [_option(lesson, beat, index) for index in range(len(beat.options))]) for beat in beats],
        pictures=pictures,
        run=recordings.load(beat.plays[0]).title if solution and (beat := first_beat_with_run(lesson)) else "",  # may reveal the answer
        many=any(picture.many for picture in pictures),
        questions=[(fill_numbers(question, lesson), fill_numbers(answer, lesson)) for question, answer in lesson.worksheet],
        takeaway=fill_numbers(lesson.beats[-1].text, lesson),
        caveat=fill_numbers(lesson.caveat, lesson),
        reader=f"{links.reader}#{lesson.id}",
        printed=links.printed(lesson.id),
    )


def hall_plan(lesson: Lesson, links: HandoutLinks) -> str:
    """Return the plan of a lesson for a lecture hall as HTML: for each beat (a step) minutes, keys to press, text and notes."""
    begins = [sum(minutes for minutes, _ in lesson.hall[:index]) for index in range(len(lesson.beats) + 1)]
    return render(
        "web/hall_plan.html.jinja",
        style=_style(),
        lesson=lesson,
        number=int(lesson.id[:2]),
        minutes=begins[-1],
        beats=[
            {
                "when": f"{begins[index]} to {begins[index + 1]}",
                "keys": KEYS.get(beat.kind, "→") if index else "f, s",
                "kind": beat.kind,
                "sees": fill_numbers(beat.text, lesson),
                "notes": f"{fill_numbers(beat.note, lesson)} {lesson.hall[index][1]}".strip(),
                "right": _right_letters(beat) if isinstance(beat, GuessBeat) else [],
            }
            for index, beat in enumerate(lesson.beats)
        ],
        reader=f"{links.reader}#{lesson.id}/1?present",
    )


def _right_letters(beat: GuessBeat) -> list[str]:
    return [letter for letter, option in zip(LETTERS, beat.options, strict=False) if option.right]


def _option(lesson: Lesson, beat: GuessBeat, index: int) -> dict[str, Any]:
    option = beat.options[index]
    return {
        "letter": LETTERS[index],
        "text": fill_numbers(option.text, lesson),
        "why": fill_numbers(option.why, lesson),
        "right": option.right,
    }


def _printed_pictures(lesson: Lesson, *, solution: bool) -> Iterator[PrintedPicture]:
    """Yield the private pictures of a lesson's first run, then the attacker's reconstruction.

    The reconstruction is that of the step at which the lesson lets the class guess, or the final picture in a `solution`.
    """
    beat = first_beat_with_run(lesson)
    if beat is None:
        return
    recording, (private, *film) = recordings.load(beat.plays[0]), recordings.pictures_of(beat.plays[0])
    several = len(private) > 1
    yield PrintedPicture(_data_address(private), "The private pictures" if several else "The private picture", several)
    frame = len(film) - 1 if solution else stop_row(beat.stop, [recording.columns["step"][row] for row in recording.film.places])
    if frame is None:
        yield PrintedPicture("", "The attacker has nothing yet", several)
        return
    step = recording.columns["step"][recording.film.places[frame]]
    when = "in the end" if frame == len(film) - 1 else f"after {step:g} steps"
    yield PrintedPicture(_data_address(film[frame]), f"What the attacker sees {when}", several)


def _data_address(pictures: Pixels) -> str:
    """Return pictures uint8 (B, H, W, 3) as the data: URL of an enlarged WebP picture, with at most ACROSS pictures in a row."""
    rows = -(-len(pictures) // ACROSS)
    padded = np.full((rows * min(ACROSS, len(pictures)), *pictures.shape[1:]), 255, np.uint8)
    padded[: len(pictures)] = pictures
    whole = np.concatenate([np.concatenate([*row], axis=1) for row in padded.reshape(rows, -1, *pictures.shape[1:])])
    enlarged = Image.fromarray(whole.repeat(SCALE, axis=0).repeat(SCALE, axis=1))
    return "data:image/webp;base64," + base64.b64encode(saved(enlarged, "WEBP", lossless=True, quality=50, method=2)).decode()


def _style() -> Markup:
    return Markup(STYLE.read_text())


def _plan_of(course: tuple[str, ...]) -> str:
    """Return the file name of the plan of a course that has only one lesson; empty for a longer course."""
    return "".join(f"{lesson.id}{HALL}.html" for lesson in lessons() if course == (lesson.id[:2],))


def plan(links: HandoutLinks) -> str:
    """Return the plan of all lessons as HTML: lessons with their minutes, courses, what to install, and advice for the classroom."""
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
