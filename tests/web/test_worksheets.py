"""Worksheets, solutions and the plan: where the answers are, which pictures, and no blank left."""

import base64
import html
import re
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from leakage.learn import recordings
from leakage.learn.lessons import GuessBeat, Lesson, lessons
from leakage.learn.reader_data import DASH, fill_numbers
from leakage.spec.experiment import SpecError
from leakage.web.worksheets import COURSES, PLAN, SCALE, HandoutLinks, handout, handout_names

LINKS = HandoutLinks("../index.html", lambda id: f"here, {id}")
EACH = pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.id)


def words(name: str) -> str:
    """What somebody reads."""
    text = re.sub(r"<style>.*?</style>|<[^>]+>", " ", handout(name, LINKS), flags=re.DOTALL)
    return " ".join(html.unescape(text).split())


def pictures(name: str) -> list[np.ndarray]:
    """Those of a page, pixel for pixel."""
    coded = re.findall(r'src="data:image/webp;base64,([^"]+)"', handout(name, LINKS))
    images = [Image.open(BytesIO(base64.b64decode(one))).convert("RGB") for one in coded]
    return [np.asarray(image)[::SCALE, ::SCALE] for image in images]


def plain(text: str) -> str:
    return " ".join(text.split())


@EACH
@pytest.mark.long
def test_a_worksheet_asks_and_its_solution_answers(lesson: Lesson) -> None:
    sheet, solution = words(lesson.id), words(f"{lesson.id}-solution")
    guess = next(beat for beat in lesson.beats if isinstance(beat, GuessBeat))
    for question, answer in lesson.worksheet:
        assert plain(fill_numbers(question, lesson)) in sheet
        assert plain(fill_numbers(question, lesson)) in solution
        assert plain(fill_numbers(answer, lesson)) in solution
        assert plain(fill_numbers(answer, lesson)) not in sheet
    for option in guess.options:
        assert plain(fill_numbers(option.text, lesson)) in sheet
        assert plain(fill_numbers(option.why, lesson)) not in sheet
        assert plain(fill_numbers(option.why, lesson)) in solution
    assert "(right)" not in sheet
    assert solution.count("(right)") == 1
    assert f"here, {lesson.id}" in sheet
    assert not re.search(r"[{}]|dB dB", sheet + solution)
    assert DASH not in sheet + solution


@EACH
@pytest.mark.long
def test_a_solution_shows_how_the_first_run_ends_and_a_worksheet_what_is_known_at_the_guess(lesson: Lesson) -> None:
    private, *film = recordings.pictures_of(lesson.runs[0])
    (first, last), asked = pictures(f"{lesson.id}-solution"), pictures(lesson.id)
    assert (first[:32, :32] == private[0]).all()
    assert (last[:32, :32] == film[-1][0]).all()
    assert (asked[0] == first).all()
    assert len(asked) == (1 if lesson.id.startswith("01") else 2)
    if lesson.id.startswith("02"):  # it asks where the search will end
        assert not (asked[1] == last).all()


def test_a_batch_is_printed_in_rows() -> None:
    private, *_ = recordings.pictures_of("r03")
    sheet = pictures("03-labels")[0]
    assert sheet.shape == (64, 128, 3)
    assert (sheet[32:, :32] == private[4]).all()


def test_the_plan_has_the_courses_and_leads_to_every_page() -> None:
    plan = handout(PLAN, LINKS)
    assert {f"{name}.html" for name in handout_names()} - set(re.findall(r'href="([^"#]+)"', plan)) == {f"{PLAN}.html"}
    told = words(PLAN)
    minutes = {length: sum(lesson.minutes for lesson in lessons() if lesson.id[:2] in course) for length, course in COURSES.items()}
    assert all(minutes[length] < length for length in COURSES)
    assert " ".join(str(minutes[length]) for length in COURSES) in told
    assert '<a href="02-search-plan.html">In 25&nbsp;min</a>' in plan
    assert plan.count("✓") == sum(len(course) for course in COURSES.values())


def test_the_order_that_the_plan_asks_for_holds_in_every_course() -> None:
    assert "lesson 7, if you teach it, before lesson 8, and lesson 12 last" in words(PLAN)
    for course in COURSES.values():
        assert list(course) == sorted(course)  # the plan lists lessons by their numbers: 2 before 3, 7 before 8
        assert course[0] in ("01", "02")
        assert course == ("02",) or course[-1] == "12"


def test_every_plan_says_how_phones_spare_the_counting_and_where_to_read_on() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "teach.md").read_text()
    assert "\n## With phones\n" in guide
    said = "With phones: open a room first; nothing is counted by hand ( docs/teach.md#with-phones )."
    assert all(said in words(name) for name in (PLAN, "02-search-plan"))


@EACH
def test_minutes_say_whether_they_are_of_a_reader_or_of_a_hall(lesson: Lesson) -> None:
    in_hall = sum(minutes for minutes, _ in lesson.hall)
    said = words(f"{lesson.id}-plan")
    assert f"{lesson.title}: about {in_hall} min in a hall" in said
    assert f"It takes {lesson.minutes} min to read, and about {in_hall} min in a hall" in said
    assert f"in a hall, about {in_hall} min" in words(PLAN)


def test_an_unknown_page_is_refused() -> None:
    with pytest.raises(SpecError, match=r"^There is no page '99-none' to print; expected is one of index, 01-gradient"):
        handout("99-none", LINKS)
