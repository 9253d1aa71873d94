"""The lessons as data for the reader: numbers in their sentences, existing films, cells that lead to the Lab."""

import re
from io import BytesIO
from urllib.parse import parse_qs

import numpy as np
import pytest
from PIL import Image
from small_problems import CATALOG

from leakage.learn import recordings
from leakage.learn.lab_link import lab_query
from leakage.learn.lessons import Lesson, lessons
from leakage.learn.planned import plan, planned_grid
from leakage.learn.reader_data import fill_numbers, reader_index, reader_lesson, stop_row, thumbnail
from leakage.spec.experiment import Experiment, Part, Picture, SpecError

IDS = [lesson.id for lesson in lessons()]
RECORDED = {file.stem for file in recordings.FOLDER.glob("*.json")}


def lesson_of(number: str) -> Lesson:
    return next(lesson for lesson in lessons() if lesson.id.startswith(number))


@pytest.mark.parametrize("id", IDS)
def test_a_lesson_is_read_without_a_blank_left_in_it(id: str) -> None:
    read = reader_lesson(id, CATALOG)
    options = [option for beat in read["beats"] for option in beat.get("options", ())]
    texts = [*(beat["text"] for beat in read["beats"]), *(option[name] for option in options for name in ("text", "why"))]
    for text in [*texts, read["caveat"], read["notes"]]:
        assert not re.search(r"[{}]", text), text
        assert not re.search(r"dB dB|% ?%", text), text


def test_a_claim_is_printed_with_its_unit_and_a_recording_with_its_digits() -> None:
    lesson = lesson_of("02")
    recording = recordings.load("r02")
    assert fill_numbers("{n} of ten at {mean}; {r02.psnr} dB", lesson) == f"10 of ten at 54.7 dB; {recording.end.scores.psnr:.1f} dB"
    assert fill_numbers("{r99.psnr} dB", lesson) == "– dB"  # not recorded: no number


def test_the_index_tells_of_every_lesson_its_first_question() -> None:
    index = reader_index(CATALOG)
    assert [one["id"] for one in index] == IDS
    assert index[1]["question"] == "Where will the search end?"
    assert all(one["beats"] == len(reader_lesson(one["id"], CATALOG)["beats"]) for one in index)
    assert all(one["thumbnail"] for one in index if set(lesson_of(one["id"][:2]).runs) <= RECORDED)


def test_a_beat_that_needs_a_plugin_waits_for_it() -> None:
    lesson = lesson_of("02")
    waiting = lesson.beats[0].model_copy(update={"requires": "attack:nobody"})
    there = lesson.beats[0].model_copy(update={"requires": "attack:idlg"})
    changed = lesson.model_copy(update={"beats": (waiting, there, *lesson.beats[1:])})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("leakage.learn.lessons.lessons", lambda: (changed,))
        assert len(reader_lesson(lesson.id, CATALOG)["beats"]) == len(lesson.beats)
        assert len(reader_lesson(lesson.id, None)["beats"]) == len(lesson.beats) - 1  # nothing is known yet


def test_a_thumbnail_asks_instead_of_telling() -> None:
    picture = thumbnail("02-search")
    assert picture is not None
    with Image.open(BytesIO(picture)) as image:
        both = np.array(image.convert("RGB"))
    rows = recordings.pictures_of("r02")
    recording = recordings.load("r02")
    steps = [recording.columns["step"][place] for place in recording.film.places]
    assert both.shape == (32, 64, 3)
    assert (both[:, :32] == rows[0][0]).all()
    halt = stop_row("step 20", steps)
    assert halt is not None
    assert (both[:, 32:] == rows[halt + 1][0]).all()
    assert not (both[:, 32:] == rows[-1][0]).all()


def test_a_beat_stops_where_it_says() -> None:
    steps = [1.0, 10.0, 20.0, 30.0]
    assert [stop_row(stop, steps) for stop in ("first", "step 9", "step 20", "step 999", "answer", "answer, labels hidden")] == [
        None,
        0,
        2,
        3,
        3,
        3,
    ]


def test_an_unknown_lesson_is_refused() -> None:
    with pytest.raises(SpecError, match="no lesson '99-none'"):
        reader_lesson("99-none", None)


# ---------------------------------------------------------------- links into the Lab


def test_a_link_says_what_differs_from_the_defaults_and_nothing_else() -> None:
    assert lab_query(Experiment(), CATALOG) == "v=1"
    noisy = Experiment(
        pictures=(Picture(id="chelsea"), Picture(id="coffee")),
        defenses=(Part(id="gaussian_noise", fields={"scale": 0.01}),),
        aggregation=Part(id="secure_aggregation", fields={"clients": 2}),
        rounds=16,
        seed=3,
    )
    assert parse_qs(lab_query(noisy, CATALOG) or "") == {
        "v": ["1"],
        "pictures": ["gallery:chelsea,gallery:coffee"],
        "batch": ["2"],
        "defense": ["gaussian_noise"],
        "gaussian_noise.scale": ["0.01"],
        "aggregation": ["secure_aggregation"],
        "phones": ["2"],
        "rounds": ["16"],
        "seed": ["3"],
    }


@pytest.mark.parametrize(
    "experiment",
    [
        Experiment(precision="float64"),
        Experiment(pictures=(Picture(source="upload", id="mine"),)),
        Experiment(defenses=(Part(id="pruning"), Part(id="gaussian_noise"))),
    ],
    ids=["float64", "upload", "two protections"],
)
def test_what_the_lab_has_no_widgets_for_gets_no_link(experiment: Experiment) -> None:
    assert lab_query(experiment, CATALOG) is None


@pytest.mark.parametrize("name", plan().grids)
def test_every_cell_of_a_grid_is_another_experiment(name: str) -> None:
    grid = planned_grid(name)
    links = [lab_query(grid.experiment(cell), CATALOG) for cell in grid.cells()]
    assert len(set(links)) in (1, len(links))  # each its own, or none where the Lab has no widgets
    assert (None in links) == (len(set(links)) == 1)
