"""The stories of the front page: short, each with a reachable beat, a recorded run, and a picture of both."""

from io import BytesIO
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from PIL import Image
from small_problems import CATALOG

from leakage.learn import recordings
from leakage.learn.lessons import GuessBeat, find_lesson
from leakage.learn.stories import FILE, LONGEST, FrontDoor, Story, door_data, front_door, story_picture
from leakage.learn.tokens import value_of
from leakage.spec.experiment import SpecError, parse_as

STORIES = front_door().stories


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.title)
def test_a_story_is_short_and_leads_to_a_beat_that_no_open_question_holds_back(story: Story) -> None:
    assert len(story.title.split()) <= LONGEST
    lesson = find_lesson(story.lesson)
    assert story.beat <= len(lesson.beats)
    assert not any(isinstance(beat, GuessBeat) for beat in lesson.beats[: story.beat - 1])
    assert story.run in lesson.runs


@pytest.mark.parametrize("run", sorted({story.run for story in STORIES}))
@pytest.mark.long
def test_a_card_shows_the_private_picture_beside_the_answer(run: str) -> None:
    shown = np.array(Image.open(BytesIO(story_picture(run))).convert("RGB"))
    private, *_, answer = recordings.pictures_of(run)
    side = private.shape[1]
    assert shown.shape[1] == 2 * shown.shape[0]
    assert (shown[:side, :side] == private[0]).all()
    middle = shown.shape[1] // 2
    assert (shown[:side, middle : middle + side] == answer[0]).all()


def test_the_door_tells_addresses_and_numbers_of_the_recording() -> None:
    made = door_data(CATALOG, data="/gle/data", learn="/gle/learn", lab="/gle/", handouts="/gle/learn/worksheets", own="/gle/own.js")
    assert (made["own"], made["links"]["lab"]) == ("/gle/own.js", "/gle/")
    assert made["links"]["teach"] == "/gle/learn/worksheets/02-search-plan.html"
    film, recording = made["film"], recordings.load(front_door().film)
    assert len(film["steps"]) == len(recording.film.places)
    assert front_door().stop == f"step {film['steps'][film['halt']]:g}"
    assert f"{film['entries']:,}" == value_of(f"{front_door().film}.entries", find_lesson("02-search"))
    assert any(f"{film['entries']:,}" in story.title for story in STORIES)  # the one title with a number of ours
    for story, card in zip(STORIES, made["stories"], strict=True):
        assert card["href"] == f"/gle/learn#{story.lesson}/{story.beat}"
        assert card["thumbnail"] == f"/gle/data/stories/{story.run}.webp"
        assert dict(parse_qsl(urlsplit(card["lab"]).query))["v"] == "1"


def test_where_there_is_no_lab_no_card_leads_there() -> None:
    assert {card["lab"] for card in door_data(CATALOG, data="d", learn="l", lab=None, handouts="h")["stories"]} == {None}


def test_a_title_that_is_too_long_is_refused() -> None:
    broken = FILE.read_text().replace("Eight pictures at once", "Eight pictures at once and then some more of them")
    with pytest.raises(SpecError, match="at most 6 words"):
        parse_as(broken, FrontDoor, "a file of stories")


def test_a_run_of_no_story_has_no_picture() -> None:
    with pytest.raises(SpecError, match="no story"):
        story_picture("r21")
