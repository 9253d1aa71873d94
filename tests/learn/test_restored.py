"""Recorded runs in a store: all their events, under permanent names, played at once."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from small_problems import CATALOG

from leakage.data.images import read, tiles
from leakage.learn import recordings, restored
from leakage.learn.recorded_refusals import load_refusal
from leakage.learn.recordings import load, pictures_of
from leakage.runs import notes
from leakage.runs.events import AttackEnd
from leakage.runs.service import Service
from leakage.runs.store import Store
from leakage.settings import Settings
from leakage.spec.aliases import EARLIER_RUNS, LAB_RUN
from leakage.spec.experiment import Experiment, parse
from leakage.spec.prepared import prepared


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store.db")
    yield made
    made.close()


@pytest.mark.parametrize("name", [LAB_RUN, "r03", "r17", "r19"])  # one picture, eight, a recursion with views, a failed attack
def test_a_recording_becomes_a_run_with_all_that_was_told(store: Store, name: str) -> None:
    restored.restore(store, name)
    recording, run, frames = load(name), store.get(name), store.frames(name)
    meta = recording.meta_event
    assert run is not None
    assert (run.status, run.owner, parse(run.experiment)) == ("done", restored.OWNER, recording.experiment)
    private = {"private": f"/api/runs/{name}/private.png"}
    assert store.meta(name) == meta.model_copy(
        update={"truth": meta.truth.model_copy(update=private), "run": name, "seq": store.meta(name).seq}
    )
    assert [frame.step for frame in frames] == list(recording.columns["step"])
    assert [frame.scores.psnr for frame in frames[:-1]] == list(recording.columns["psnr"][:-1])
    end = run.outcome(AttackEnd)
    assert end is not None
    answer = frames[recording.end.answer]
    assert (end.answer, end.verdict, end.scores) == (answer.seq, recording.end.verdict, recording.end.scores)
    assert (answer.scores, answer.verdict) == (recording.end.scores, recording.end.verdict)
    for place, verdict in recording.verdicts:
        assert frames[place].verdict is None or frames[place].verdict.word in (verdict["word"], recording.word)
    private, *film = pictures_of(name)
    kept = {frame.seq: place for place, frame in enumerate(frames) if store.frame(name, frame.seq)}
    assert list(kept.values()) == list(recording.film.places)
    for (seq, _place), row in zip(kept.items(), film, strict=True):
        assert (tiles(store.frame(name, seq) or b"", meta.truth.batch) == row[..., : meta.truth.channels]).all()
    assert (tiles(store.files(name)["private.png"], meta.truth.batch) == private[..., : meta.truth.channels]).all()


def test_a_recorded_refusal_becomes_a_run_that_has_its_refusal_alone(store: Store) -> None:
    restored.restore(store, "r82")
    run, recording = store.get("r82"), load_refusal("r82")
    assert run is not None
    assert (run.status, run.owner, run.digest, parse(run.experiment)) == (
        "done",
        restored.OWNER,
        recording.experiment_digest,
        recording.experiment,
    )
    end = run.outcome(AttackEnd)
    assert end is not None
    assert (end.ending, end.answer, end.verdict) == (recording.ending, None, None)
    assert (store.meta("r82"), store.frames("r82"), store.files("r82")) == (None, [], {})


def test_the_lab_opens_with_a_picture_that_was_found(store: Store) -> None:
    restored.restore_all(store)
    run = store.get(LAB_RUN)
    assert run is not None
    assert parse(run.experiment).resolve(CATALOG) == Experiment().resolve(CATALOG)
    assert store.note(notes.RECORDED) == LAB_RUN
    end = run.outcome(AttackEnd)
    assert end is not None
    assert end.verdict is not None
    assert end.verdict.word == "recognizable"
    private = tiles(store.files(LAB_RUN)["private.png"], 1)[0]
    assert (private == read("gallery", "astronaut", 32, 3)).all()
    answer = tiles(store.frame(LAB_RUN, end.answer) or b"", 1)[0]
    assert np.abs(answer.astype(int) - private).mean() < 2  # of 255; at 40 dB and better the mean error is below 2.55


def test_the_recordings_of_a_preset_are_of_its_two_experiments(store: Store) -> None:
    restored.restore_all(store)
    for preset in prepared().presets:
        digests = [run.digest for name in preset.recorded if (run := store.get(name))]
        assert digests == [experiment.resolve(CATALOG).digest() for experiment in preset.pair], preset.name


def test_the_recordings_of_a_story_are_there_when_compare_opens_it(store: Store) -> None:
    restored.restore_all(store)
    for story in prepared().compare.stories:
        assert [run.status for name in story.recorded if (run := store.get(name))] == ["done"] * len(story.recorded) != []


def test_links_to_the_recorded_run_of_earlier_versions_lead_to_todays(store: Store, tmp_path: Path) -> None:
    restored.restore_all(store)
    service = Service(store, Settings(home=tmp_path, slots=1, store_mb=4096, memory_mb=0))
    for earlier in EARLIER_RUNS:
        assert service.look(earlier) == store.get(LAB_RUN)


def test_what_is_there_stays_and_a_new_recording_replaces_it(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restored.restore(store, "r01")
    before = store.get("r01")
    restored.restore(store, "r01")
    assert store.get("r01") == before
    for file in recordings.FOLDER.glob("r01.*"):
        shutil.copy(file, tmp_path)
    raw = json.loads((tmp_path / "r01.json").read_text())
    raw["columns"]["loss"][-1] = 0.125
    (tmp_path / "r01.json").write_text(json.dumps(raw))
    for module in (recordings, restored):
        monkeypatch.setattr(module, "FOLDER", tmp_path)
    load.cache_clear()
    restored.restore(store, "r01")
    load.cache_clear()
    assert store.frames("r01")[-1].loss == 0.125
    assert len(store.frames("r01")) == len(raw["columns"]["step"])
