"""Recorded runs as runs of the store: what the Lab shows before a user presses Run."""

import hashlib
import time
from collections.abc import Iterator
from typing import Any

from leakage.data.images import Pixels, sheet
from leakage.learn import recorded_refusals
from leakage.learn.planned import plan
from leakage.learn.recorded_refusals import RefusalRecording, load_refusal
from leakage.learn.recordings import FOLDER, RunRecording, load, pictures_of
from leakage.runs.events import FrameEvent, MetaEvent, NoteEvent
from leakage.runs.notes import RECORDED, RECORDINGS
from leakage.runs.store import Run, Store
from leakage.spec.aliases import LAB_RUN
from leakage.spec.prepared import prepared
from leakage.spec.words import MEANING

OWNER = "recorded"  # of runs that no user may delete
VERSION = "recorded"  # of no engine, so that Run on the same settings computes them and does not return the recording


OF_A_FRAME = ("step", "seconds", "loss")  # columns that are not scores


def restore_all(store: Store) -> None:
    """Put the recorded runs of the Lab, its presets, Compare and its stories into the store; raise SpecError if one is missing."""
    if (earlier := store.note(RECORDED)) not in (None, LAB_RUN):
        store.drop(earlier, OWNER)
    for name in dict.fromkeys([LAB_RUN, *prepared().recordings]):
        restore(store, name)
    store.put_note(RECORDED, LAB_RUN)


def restore(store: Store, name: str) -> None:
    """Put a recorded run into the store as a finished run with the recording's name as its id, unless the same is there already.

    Raises:
        SpecError: the recording is missing or damaged.
    """
    refused = name in plan().refused
    files = [recorded_refusals.FOLDER / f"{name}.json"] if refused else [FOLDER / f"{name}.{kind}" for kind in ("json", "webp")]
    content = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    stored = store.note(RECORDINGS) or {}
    if stored.get(name) == content and store.get(name):
        return
    store.drop(name, OWNER)  # it may be of an earlier version, or incomplete
    if refused:
        _restore_refusal(store, name)
    else:
        _restore_run(store, name)
    store.put_note(RECORDINGS, {**stored, name: content})


def _restore_refusal(store: Store, name: str) -> None:
    recording = load_refusal(name)
    store.add(_run(name, recording), {})
    store.finish(name, "done", result=recording.end)


def _restore_run(store: Store, name: str) -> None:
    recording, (private, *film) = load(name), pictures_of(name)
    colours = recording.meta_event.truth.channels
    store.add(_run(name, recording), {"private.png": sheet(private[..., :colours])})
    store.add_event(name, MetaEvent.model_validate({**recording.meta, "private": f"/api/runs/{name}/private.png"}))
    for text in recording.messages:
        store.add_event(name, NoteEvent(text=text))
    shown: dict[int, Pixels] = dict(zip(recording.film.places, film, strict=True))
    numbers = [
        store.add_frame(name, frame, sheet(shown[index][..., :colours])) if index in shown else store.add_event(name, frame)
        for index, frame in enumerate(frames(recording))
    ]
    assert recording.end.answer is not None
    store.finish(name, "done", result=recording.end.model_copy(update={"answer": numbers[recording.end.answer]}))


def _run(name: str, recording: RunRecording | RefusalRecording) -> Run:
    return Run(
        id=name,
        owner=OWNER,
        grp=None,
        kind="attack",
        digest=recording.experiment_digest,
        version=VERSION,
        experiment=recording.experiment.model_dump_json(),
        shareable=True,
        estimate=None,
        created=time.time(),
        status="running",
    )


def frames(recording: RunRecording) -> Iterator[FrameEvent]:
    """Yield the frames of a recorded run as events, without pictures; the frame of the final reconstruction has all scores."""
    columns, end = recording.columns, recording.end
    changes: dict[str, dict[int, Any]] = {
        "labels": dict(recording.labels),
        "note": dict(recording.notes),
        "verdict": {
            index: {**verdict, "meaning": MEANING[str(verdict["word"])], "rule": recording.rule} for index, verdict in recording.verdicts
        },
    }
    current: dict[str, Any] = {}
    for index in range(len(columns["step"])):
        current |= {name: values[index] for name, values in changes.items() if index in values}
        now: dict[str, Any] = {name: columns[name][index] for name in OF_A_FRAME} | {"views": dict(recording.views).get(index)}
        now["scores"] = {name: values[index] for name, values in columns.items() if name not in OF_A_FRAME}
        if index == end.answer:
            now |= {"scores": end.scores, "verdict": end.verdict}
        yield FrameEvent.model_validate({**current, **now})
