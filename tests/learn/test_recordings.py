"""The recordings: each has today's planned experiment, and its pictures and numbers agree; and how they are made."""

import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from small_problems import CATALOG

from leakage.data.images import Pixels, read
from leakage.learn import grids, recorded_refusals, recordings
from leakage.learn.expectations import contradictions
from leakage.learn.grids import Cell
from leakage.learn.lessons import Expectation, lessons
from leakage.learn.planned import plan, planned_grid, planned_run
from leakage.learn.recorded_refusals import load_refusal
from leakage.learn.recordings import RunRecording
from leakage.runs.endings import why_refused
from leakage.settings import ROOT
from leakage.spec.experiment import Experiment, SpecError, parse_as
from leakage.spec.words import CUT_SHORT, VERDICTS

RUNS = pytest.mark.parametrize("name", plan().runs)
RECORDED_GRIDS = sorted(file.stem for file in grids.FOLDER.glob("g*.json"))
GRIDS = pytest.mark.parametrize("name", RECORDED_GRIDS)
HALF = 0.5 / 255  # what rounding to 8 bits moves a channel at most
NEAR, CLEAR = 0.1, 35.0  # dB: how near the PSNR of the film must be, up to where rounding is felt


def agrees(shown: Pixels, private: Pixels, told: float, cap: float = 100.0) -> bool:
    """Whether the PSNR of pictures (B, H, W, 3), the mean over them, is the one told but for the rounding of the film.

    Rounding moves the root of the mean squared error by HALF at most.
    """
    errors = [float(np.square((a.astype(float) - b) / 255).mean()) for a, b in zip(shown, private, strict=True)]
    found = sum(min(cap, -10 * math.log10(error)) if error else cap for error in errors) / len(errors)
    if told <= CLEAR:
        return abs(found - told) <= NEAR
    return len(errors) > 1 or abs(math.sqrt(errors[0]) - 10 ** (-told / 20)) <= HALF


def private_pictures(experiment: Experiment) -> Pixels:
    return np.stack([read(picture.source, picture.id, experiment.size, 3) for picture in experiment.pictures])


# ---------------------------------------------------------------- runs


@RUNS
def test_a_run_asks_what_is_planned_today(name: str) -> None:
    """When one does not: `make record`, which records what is not up to date."""
    recording, today = recordings.load(name), planned_run(name).experiment.resolve(CATALOG)
    assert recording.experiment == today
    assert recording.experiment_digest == today.digest()
    assert recording.title == planned_run(name).title


@pytest.mark.parametrize("name", plan().refused)
def test_a_refused_run_asks_what_is_planned_today_and_tells_the_refusal_alone(name: str) -> None:
    recording, planned = load_refusal(name), plan().refused[name]
    assert recording.experiment == planned.experiment.resolve(CATALOG)
    assert (recording.experiment_digest, recording.title) == (recording.experiment.digest(), planned.title)
    end = recording.end
    assert (end.ending, end.answer, end.verdict, end.scores.psnr) == (recording.ending, None, None, None)
    assert why_refused(end.ending).startswith("The phone refused to train this model in round 1: the check New layers")


def test_what_recorded_checks_measure_is_told_as_today() -> None:
    """Else a page tells it twice, beside the pictures as recorded and in the threat model table as today."""
    readings = [*recordings.load("r81").meta_event.checks, *load_refusal("r82").ending.checks]
    assert [reading.check for reading in readings] == ["new_layers", "equal_rows"] * 2
    assert [reading.measures for reading in readings] == [CATALOG.checks.get(reading.check).measures for reading in readings]


@RUNS
def test_a_score_that_the_answer_alone_has_is_stored_once(name: str) -> None:
    recording = recordings.load(name)
    answer = recording.end.answer
    earlier = {column for column, values in recording.columns.items() if any(value is not None for value in values[:answer])}
    assert set(recording.columns) <= earlier | {"step", "seconds", "loss", *recordings.SHOWN}


@RUNS
def test_the_film_begins_with_the_private_pictures_bit_for_bit_and_ends_with_the_answer(name: str) -> None:
    recording, rows = recordings.load(name), recordings.pictures_of(name)
    private = private_pictures(recording.experiment)
    assert (rows[0] == private).all()
    told = recording.end.scores.psnr
    assert told is not None
    assert agrees(rows[-1], private, told)
    assert len(rows) == 1 + len(recording.film.places)
    assert list(recording.film.places) == sorted(set(recording.film.places))
    assert recording.film.places[-1] == recording.end.answer


@RUNS
def test_the_columns_are_whole_and_end_with_the_result(name: str) -> None:
    recording = recordings.load(name)
    count = len(recording.columns["step"])
    assert {len(column) for column in recording.columns.values()} == {count}
    assert {"step", "seconds", "loss", "psnr", "ssim", "rank"} <= set(recording.columns)
    answer, end = recording.end.answer, recording.end
    assert end.scores.psnr is not None
    assert recording.columns["psnr"][answer] == pytest.approx(end.scores.psnr, rel=1e-3)  # four digits are kept
    assert recording.word in (*VERDICTS, CUT_SHORT)
    assert all(0 <= place < count for kind in ("labels", "notes", "verdicts", "views") for place, _ in getattr(recording, kind))
    assert max(recording.seconds, recording.columns["seconds"][-1] or 0) < 600


@RUNS
def test_no_address_of_the_machine_that_recorded_is_left(name: str) -> None:
    text = (recordings.FOLDER / f"{name}.json").read_text()
    assert "/api/" not in text
    assert "/home" not in text
    assert "/tmp" not in text


def test_recordings_stay_small() -> None:
    sizes = {name: sum((recordings.FOLDER / f"{name}.{end}").stat().st_size for end in ("json", "webp")) for name in plan().runs}
    assert {name: size for name, size in sizes.items() if size > 160_000} == {}
    assert sum(sizes.values()) + sum(file.stat().st_size for file in grids.FOLDER.iterdir()) < 4_000_000
    assert {file.stem for file in recordings.FOLDER.iterdir()} == set(plan().runs)
    assert {file.name for file in recorded_refusals.FOLDER.iterdir()} == {f"{name}.json" for name in plan().refused}


def test_recordings_show_what_their_lessons_say() -> None:
    assert list(contradictions(lessons(), {name: recordings.load(name) for name in plan().runs})) == []


def test_a_recording_that_contradicts_its_lesson_is_named_with_what_was_found() -> None:
    noisy, averaged = recordings.load("r09"), recordings.load("r10")
    lesson = next(lesson for lesson in lessons() if Expectation(run="r10", over="r09", least=5) in lesson.expects)
    assert list(contradictions((lesson,), {"r09": noisy, "r10": averaged})) == []
    assert list(contradictions((lesson,), {"r10": averaged})) == [], "what cannot be compared yet is left open"
    assert list(contradictions((lesson,), {"r09": noisy, "r10": noisy})) == [
        "lesson 07-noise says psnr of r10 above that of r09: at least 5; recorded was 0.00"
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where runs are read from instead."""
    monkeypatch.setattr(recordings, "FOLDER", tmp_path)
    recordings.load.cache_clear()
    yield tmp_path
    recordings.load.cache_clear()


def test_a_recording_is_read_as_it_was_written_and_a_missing_or_damaged_one_is_named(folder: Path) -> None:
    file = ROOT / "assets" / "lessons" / "runs" / "r01.json"
    with pytest.raises(SpecError, match=r"^r01 has not been recorded: run `make record ARGS='--only r01'`\.$"):
        recordings.load("r01")
    recording, film = parse_as(file.read_bytes(), RunRecording, "a recorded run"), file.with_suffix(".webp").read_bytes()
    recordings.write(folder, "r01", recording, film)
    assert recordings.load("r01") == recording
    assert (recordings.pictures_of("r01")[0] == private_pictures(recording.experiment)).all()
    with pytest.raises(SpecError, match="This film is 32 pixels wide, expected are 2 pictures of 32"):
        recordings.rows_of(film, 32, 2)
    (folder / "r01.json").write_text(json.dumps({"format": 2}))
    recordings.load.cache_clear()
    with pytest.raises(SpecError, match=r"^r01\.json: title: field required"):
        recordings.load("r01")


def test_a_film_keeps_its_ends_bit_for_bit_and_a_batch_on_the_way_coarsely() -> None:
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 256, (2, 32, 32, 3), dtype=np.uint8) for _ in range(3)]
    kept = recordings.rows_of(recordings.film(rows), 32, 2)
    assert (kept[0] == rows[0]).all()
    assert (kept[2] == rows[2]).all()
    assert (kept[1] == rows[1] & recordings.COARSE).all()
    alone = recordings.rows_of(recordings.film([row[:1] for row in rows]), 32, 1)
    assert (alone[1] == rows[1][:1]).all()


# ---------------------------------------------------------------- grids


@GRIDS
def test_a_grid_answers_every_choice_as_it_is_asked_today(name: str) -> None:
    recording, grid = grids.load_grid(name), planned_grid(name)
    assert [cell.choice for cell in recording.cells] == grid.cells()
    assert [cell.experiment_digest for cell in recording.cells] == [
        grid.experiment(choice).resolve(CATALOG).digest() for choice in grid.cells()
    ]
    assert recording.knobs == tuple((knob.name, tuple(value.label for value in knob.values)) for knob in grid.knobs)


@GRIDS
def test_the_cells_of_a_grid_show_their_pictures(name: str) -> None:
    recording, grid = grids.load_grid(name), planned_grid(name)
    rows = recordings.rows_of((grids.FOLDER / f"{name}.webp").read_bytes(), recording.film.side, recording.film.batch)

    def wrong(cell: Cell) -> bool:
        private = private_pictures(grid.experiment(cell.choice))
        told = cell.scores["psnr"]
        assert told is not None
        same = (rows[cell.private][: cell.batch] == private).all() and not rows[cell.private][cell.batch :].any()
        return not same or not agrees(rows[cell.answer][: cell.batch], private, told) or len(cell.truth) != cell.batch

    assert [cell.choice for cell in recording.cells if wrong(cell)] == []
    assert {cell.word for cell in recording.cells} <= {*VERDICTS, CUT_SHORT}
    assert len(rows) == len({cell.private for cell in recording.cells}) + len(recording.cells)
