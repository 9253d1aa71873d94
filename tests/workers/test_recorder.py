"""The recorder: recordings that contradict their lesson are not written, interrupted ones continue, changes are named."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_problems import CATALOG

from leakage.__main__ import main
from leakage.data.images import sheet
from leakage.learn import grids, recorded_refusals, recordings
from leakage.learn.lessons import Expectation, Lesson, find_lesson
from leakage.learn.planned import Knob, PlannedGrid, Value, plan, planned_run
from leakage.learn.recorded_refusals import load_refusal
from leakage.learn.recordings import Played
from leakage.runs.events import FrameEvent
from leakage.spec.aliases import LAB_RUN
from leakage.spec.experiment import Experiment, Part, SpecError
from leakage.workers import plugin_catalog, recorder

pytestmark = pytest.mark.usefixtures("catalog_is_written")
ALONE, TWO = ([{"source": "gallery", "id": id} for id in ids] for ids in (("coffee",), ("rocket", "coffee")))
NOISE = [{"id": "gaussian_noise", "fields": {"scale": 0.1}}]
GRID = PlannedGrid(
    title="One picture and two, with and without noise",
    base={"model": {"id": "mlp", "fields": {"width": 16}}, "attack": {"id": "linear_layer"}},
    knobs=(
        Knob(name="pictures", values=(Value(label="1", put={"pictures": ALONE}), Value(label="2", put={"pictures": TWO}))),
        Knob(name="noise", values=(Value(label="none", number=0), Value(label="0.1", number=0.1, put={"defenses": NOISE}))),
    ),
)


class Counting(ThreadPoolExecutor):
    """Plays in this process, and counts what it was given."""

    def __init__(self) -> None:
        super().__init__(1)
        self.given = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.given += 1
        return super().submit(fn, *args, **kwargs)


@pytest.fixture(scope="module")
def catalog_is_written() -> None:
    plugin_catalog.write(recorder.settings().catalog)


@pytest.fixture(scope="module")
def division() -> Played:
    """The first run of the lessons, played."""
    plugin_catalog.write(recorder.settings().catalog)
    return recorder.play_whole(planned_run("r01").experiment)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where runs and grids are written to instead."""
    monkeypatch.setattr(recordings, "FOLDER", tmp_path)
    monkeypatch.setattr(grids, "FOLDER", tmp_path)
    for kept in (recordings.load, grids.load_grid):
        kept.cache_clear()
    yield tmp_path
    for kept in (recordings.load, grids.load_grid):
        kept.cache_clear()


def claiming(least: float) -> tuple[Lesson]:
    """A lesson that says how near the first run comes at least."""
    return (find_lesson("01-gradient").model_copy(update={"expects": (Expectation(run="r01", least=least),)}),)


@pytest.mark.long
def test_a_recording_is_written_unless_it_contradicts_its_lesson(division: Played, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "lessons", lambda: claiming(101))
    refused = recorder.keep_run("r01", division, "today")
    assert refused == ["r01: lesson 01-gradient says psnr of r01: at least 101; recorded was 100.00"]
    assert list(folder.iterdir()) == []
    monkeypatch.setattr(recorder, "lessons", lambda: claiming(100))
    assert recorder.keep_run("r01", division, "today") == []
    written = recordings.load("r01")
    assert (written.engine, written.word, written.grey) == ("today", "recognizable", pytest.approx(10.89, abs=0.01))
    assert written.end.answer == len(written.columns["step"]) - 1
    assert recorder.up_to_date("r01", CATALOG)


def test_what_ends_otherwise_than_its_recording_is_told(division: Played, folder: Path) -> None:
    made, film = recordings.record("A title", division, engine="today")
    recordings.write(folder, "r01", made, film)
    assert recorder.compare("r01", division) == []
    scores = {**made.result["scores"], "psnr": 99.98}  # a closed form: every hundredth of a dB counts
    recordings.write(folder, "r01", made.model_copy(update={"result": {**made.result, "scores": scores}}), film)
    recordings.load.cache_clear()
    assert recorder.compare("r01", division) == ["r01: recorded were 99.98 dB, recognizable; today it is 100.00 dB, recognizable"]
    assert recorder.differences("r02", recorder.CLOSE, (50.0, "recognizable"), (48.1, "recognizable")) == []
    assert len(recorder.differences("r02", recorder.CLOSE, (50.0, "recognizable"), (50.0, "partly"))) == 1


@pytest.mark.long
def test_a_grid_that_was_interrupted_plays_only_what_is_missing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "planned_grid", lambda _name: GRID)
    with Counting() as workers:
        assert recorder.keep_grid(workers, "g01", "today") == []
        assert workers.given == 4
        next((recorder.settings().home / "recording").glob("*-today.cell")).unlink()
        assert recorder.keep_grid(workers, "g01", "today") == []
        assert workers.given == 5
    made = grids.load_grid("g01")
    assert [cell.choice for cell in made.cells] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [cell.batch for cell in made.cells] == [1, 1, 2, 2]
    assert made.film.batch == 2
    assert [cell.private for cell in made.cells] == [0, 0, 1, 1]
    assert [cell.answer for cell in made.cells] == [2, 3, 4, 5]
    psnr = [cell.scores["psnr"] or 0 for cell in made.cells]
    assert psnr[0] > 90 > psnr[1], "one division, and the same with noise"
    assert [cell.experiment_digest for cell in made.cells] == [GRID.experiment(choice).resolve(CATALOG).digest() for choice in GRID.cells()]


def test_an_unknown_name_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    assert main(["record", "--only", "r99"]) == 1
    assert caplog.messages[-1].startswith("There is nothing to record by the name of 'r99'; expected are r01, r02,")


def test_a_run_that_cannot_be_played_is_told(folder: Path) -> None:
    with Counting() as workers:
        wrong = planned_run("r01").experiment.model_copy(update={"attacked_round": 2})
        (found,) = [outcome for _, outcome in recorder.play_all(workers, {"r01": wrong})]
    assert isinstance(found, SpecError)
    assert str(found).startswith("attacked_round: allowed is 1 to 1")
    assert list(folder.iterdir()) == []


@pytest.mark.processes
@pytest.mark.long
def test_the_recordings_are_played_again_and_compared() -> None:
    """Through processes of their own, as `make record ARGS=--check` does; one that is a closed form."""
    recorder.record(["r01"], check=True, jobs=1)


@pytest.mark.slow
def test_the_run_that_the_lab_opens_with_is_what_the_engine_computes_today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKAGE_STEP", "autograd")  # as recordings are made
    recording, today = recordings.load(LAB_RUN), recorder.play_whole(planned_run(LAB_RUN).experiment)
    # L-BFGS ends when it has settled; threads and processors round differently on the way.
    assert recorder.compare(LAB_RUN, today) == []
    assert today.end.labels == recording.end.labels
    assert today.end.note["start"] == recording.end.note["start"]


@pytest.mark.long
def test_the_claims_are_recomputed_by_a_command(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    assert main(["learn", "--claims"]) == 0
    words = caplog.messages[-1].split()
    assert words[0] == words[2]
    assert int(words[0]) >= 81


def test_a_film_leaves_out_pictures_that_equal_the_answer_and_with_one_picture_the_others_too(division: Played) -> None:
    frames = [event for event in division.events if isinstance(event, FrameEvent)]
    assert [division.pictures[frame.seq] == division.pictures[division.end.answer or 0] for frame in frames] == [True, True]
    recorded = recordings.record("a closed form", division, engine="")[0]
    assert recorded.film.places == (1,)
    answer = next(frame for frame in frames if frame.seq == division.end.answer)
    assert answer.scores.cosine is not None
    assert "cosine" not in recorded.columns  # only the answer has it: the result keeps it
    changed = division._replace(pictures={**division.pictures, frames[0].seq: sheet(np.zeros((1, 32, 32, 3), np.uint8))})
    assert recordings.record("another picture first", changed, engine="")[0].film.places == (0, 1)
    assert recordings.record("one picture", changed, engine="", pictures=1)[0].film.places == (1,)


def test_a_run_that_the_phone_refused_has_no_pictures_to_record() -> None:
    asked = Experiment(server=Part(id="imprint"), checks=(Part(id="new_layers"),), attack=Part(id="bins"))
    with pytest.raises(
        SpecError, match=r"no pictures to record: The phone refused to train this model in round 1.*Plan this run under `refused`\.$"
    ):
        recorder.play_whole(asked)


def test_a_refused_run_is_recorded_with_its_refusal_and_compared(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_refusals, "FOLDER", folder / "refused")
    load_refusal.cache_clear()
    planned = plan().refused["r82"]
    ending = recorder.play_refused(planned.experiment)
    assert (ending.how, [(found.check, found.tripped) for found in ending.checks]) == (
        "refused",
        [("new_layers", True), ("equal_rows", True)],
    )
    assert not recorder.up_to_date("r82", CATALOG)
    recorder.keep_refusal("r82", ending, CATALOG)
    assert recorder.up_to_date("r82", CATALOG)
    assert [file.name for file in (folder / "refused").iterdir()] == ["r82.json"]
    assert load_refusal("r82").ending == ending
    assert recorder.compare_refusal("r82", ending) == []
    other = ending.model_copy(update={"words": "The phone refused."})
    assert recorder.compare_refusal("r82", other) == [f"r82: recorded was {ending.words!r}; today it is 'The phone refused.'"]
    load_refusal.cache_clear()


def test_a_run_that_no_phone_refuses_is_no_refusal() -> None:
    with pytest.raises(SpecError, match="No phone refused this run"):
        recorder.play_refused(plan().refused["r82"].experiment.model_copy(update={"refuse": False}))
