"""What the phones of a room get of a lesson before the class is there: over every beat of every lesson."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leakage.learn.lessons import lessons
from leakage.learn.reader_data import reader_lesson
from leakage.rooms.guest_lesson import guest_lesson
from leakage.rooms.outline import Outline
from leakage.rooms.room import Room
from leakage.spec import catalog

IDS = [lesson.id for lesson in lessons()]


@pytest.fixture(scope="module")
def whole(written: Path) -> dict[str, dict[str, Any]]:
    known = catalog.read(written)
    return {id: reader_lesson(id, known) for id in IDS}


def walk(lesson: dict[str, Any]) -> Iterator[tuple[Room, dict[str, Any]]]:
    """Every beat of a class that reveals no answer before it goes on, with what phones get there."""
    room = Room("KRT4P", "k" * 24, Outline.of(lesson), beat=1, now=0.0)
    for beat in range(1, room.outline.beats + 1):
        room.lead(beat)
        yield room, guest_lesson(lesson, room)


def secrets_told(lesson: dict[str, Any], room: Room, told: dict[str, Any]) -> list[str]:
    """What a guest may not know yet, as far as it is in the lesson that phones get: computed from the whole lesson."""
    found, text = [], json.dumps(told, ensure_ascii=False)
    here = lesson["beats"][: room.beat]
    for number, beat in enumerate(lesson["beats"], 1):
        if number > room.beat and json.dumps(beat["text"], ensure_ascii=False)[1:-1] in text:
            found.append(f"the text of beat {number}")
        for option in beat.get("options", ()):
            if number >= room.beat and json.dumps(option["why"], ensure_ascii=False)[1:-1] in text:
                found.append(f"why, of beat {number}")
    found += [f"right, of beat {room.beat}" for option in told["beats"][-1].get("options", ()) if "right" in option]
    for name, run in told["runs"].items():
        stops = [beat.get("stop", "answer") for beat in here if name in beat.get("runs", ())]
        if not stops:
            found.append(f"run {name}")
        if any(stop.startswith("answer") for stop in stops):
            continue
        last = max((int(stop.split()[1]) for stop in stops if stop != "first"), default=0)
        found += [f"{name}: {field}" for field in ("result", "messages") if run.get(field)]
        found += [f"{name}: a step after {last}" for step in run["columns"]["step"] if step > last]
        found += [f"{name}: {column}" for column, values in run["columns"].items() if len(values) != len(run["columns"]["step"])]
        count = len(run["columns"]["step"])
        found += [f"{name}: {field}" for field in ("verdicts", "notes", "labels", "views") for place, _ in run[field] if place >= count]
    found += ["the caveat"] if told["caveat"] and room.beat < len(lesson["beats"]) else []
    found += [f"grid {name}" for name in told["grids"] if name not in [beat.get("grid") for beat in here]]
    return found


@pytest.mark.parametrize("id", IDS)
def test_no_phone_gets_an_answer_a_later_beat_or_a_result_before_its_time(whole: dict[str, dict[str, Any]], id: str) -> None:
    for room, told in walk(whole[id]):
        assert secrets_told(whole[id], room, told) == [], f"at beat {room.beat}"
        assert len(told["beats"]) == room.beat


def test_all_beats_of_all_lessons_are_walked(whole: dict[str, dict[str, Any]]) -> None:
    assert sum(len(lesson["beats"]) for lesson in whole.values()) == sum(len(list(walk(lesson))) for lesson in whole.values()) >= 87


def test_a_planted_answer_is_found(whole: dict[str, dict[str, Any]]) -> None:
    lesson = whole["07-noise"]
    question = next(number for number, beat in enumerate(lesson["beats"], 1) if beat.get("options"))
    room, told = next((room, told) for room, told in walk(lesson) if room.beat == question)
    told["beats"][-1]["options"][0]["right"] = True
    assert secrets_told(lesson, room, told) == [f"right, of beat {question}"]


def test_pictures_beside_a_guess_come_with_the_beat_of_their_run_alone(whole: dict[str, dict[str, Any]]) -> None:
    came = [{name for name, run in told["runs"].items() if run["views"]} for _, told in walk(whole["09-solve"])]
    assert came == [set(), {"r17"}, set(), {"r18"}, set(), set(), set()]


@pytest.mark.parametrize("id", IDS)
def test_a_latecomer_gets_a_small_lesson_at_every_beat(whole: dict[str, dict[str, Any]], id: str) -> None:
    sizes = [len(gzip.compress(json.dumps(told).encode())) for _, told in walk(whole[id])]
    assert max(sizes) < 40_000, "with page, script and style a first view stays below 80 kB"


@pytest.mark.parametrize("id", IDS)
def test_an_answer_that_was_shown_comes_with_its_reasons(whole: dict[str, dict[str, Any]], id: str) -> None:
    for room, _ in walk(whole[id]):
        if room.outline.options(room.beat):
            room.reveal()
            options = guest_lesson(whole[id], room)["beats"][room.beat - 1]["options"]
            assert sum(option["right"] for option in options) == 1
            assert all(option["why"] for option in options)
            return


def test_an_answer_that_was_shown_brings_the_run_that_the_hall_plays_on(whole: dict[str, dict[str, Any]]) -> None:
    lesson = whole["02-search"]  # its run halts at step 20, a question follows, and the beat after that plays the run to its end
    ends = {}
    for room, told in walk(lesson):
        if room.beat == 3:
            ends["asked"] = len(told["beats"]), told["runs"]["r02"]["columns"]["step"][-1], told["runs"]["r02"]["result"]
            room.reveal()
            shown = guest_lesson(lesson, room)
            ends["shown"] = len(shown["beats"]), shown["runs"]["r02"]["columns"]["step"][-1], shown["runs"]["r02"]["result"]
    whole_run = lesson["runs"]["r02"]
    assert ends == {"asked": (3, 20, None), "shown": (4, whole_run["columns"]["step"][-1], whole_run["result"])}


def test_at_the_end_phones_have_the_lesson_without_notes_and_links(whole: dict[str, dict[str, Any]]) -> None:
    for lesson in whole.values():
        *_, (_, told) = walk(lesson)
        assert [beat["text"] for beat in told["beats"]] == [beat["text"] for beat in lesson["beats"]]
        assert told["runs"].keys() == lesson["runs"].keys()
        assert not any(run["lab"] for run in told["runs"].values())
        assert not any(cell["lab"] for grid in told["grids"].values() for cell in grid["cells"])
        assert not any({"note", "hall_note"} & beat.keys() for beat in told["beats"])
