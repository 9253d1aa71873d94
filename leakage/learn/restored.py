"""Recorded runs as runs of a store: what the Lab shows before anybody has pressed Run, on the same stage as every other."""

import hashlib
import time
from collections.abc import Iterator
from typing import Any

from leakage.data.images import Pixels, sheet
from leakage.learn.recordings import FOLDER, RunRecording, load, pictures_of
from leakage.runs.events import FrameEvent, MetaEvent, NoteEvent
from leakage.runs.notes import RECORDED, RECORDINGS
from leakage.runs.store import Run, Store
from leakage.spec.aliases import LAB_RUN
from leakage.spec.prepared import prepared
from leakage.spec.words import MEANING

OWNER = "recorded"  # holds what nobody may delete
VERSION = "recorded"  # no engine's: pressing Run on the same settings runs them, and is not answered with the recording


OF_A_FRAME = ("step", "seconds", "loss")  # columns that are no scores


def restore_all(store: Store) -> None:
    """Put what the Lab and its presets open with into the store, as it is recorded today. Raises SpecError."""
    if (earlier := store.note(RECORDED)) not in (None, LAB_RUN):
        store.drop(earlier, OWNER)
    for name in dict.fromkeys(
        [LAB_RUN, *(name for preset in prepared().presets for name in preset.recorded), *prepared().compare.recorded]
    ):
        restore(store, name)
    store.put_note(RECORDED, LAB_RUN)


def restore(store: Store, name: str) -> None:
    """Put a recorded run into the store under its name, unless it is there already; frames get new numbers. Raises SpecError."""
    content = hashlib.sha256(b"".join((FOLDER / f"{name}.{kind}").read_bytes() for kind in ("json", "webp"))).hexdigest()
    there = store.note(RECORDINGS) or {}
    if there.get(name) == content and store.get(name):
        return
    recording, (private, *film) = load(name), pictures_of(name)
    colours = recording.meta_event.truth.channels
    store.drop(name, OWNER)  # of an earlier version, or begun and broken off
    run = Run(
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
    store.add(run, {"private.png": sheet(private[..., :colours])})
    store.add_event(name, MetaEvent.model_validate({**recording.meta, "private": f"/api/runs/{name}/private.png"}))
    for text in recording.messages:
        store.add_event(name, NoteEvent(text=text))
    shown: dict[int, Pixels] = dict(zip(recording.film.places, film, strict=True))
    numbers = [
        store.add_frame(name, frame, sheet(shown[place][..., :colours])) if place in shown else store.add_event(name, frame)
        for place, frame in enumerate(frames(recording))
    ]
    assert recording.end.answer is not None
    store.finish(name, "done", result=recording.end.model_copy(update={"answer": numbers[recording.end.answer]}))
    store.put_note(RECORDINGS, {**there, name: content})


def frames(recording: RunRecording) -> Iterator[FrameEvent]:
    """The frames of a recorded run, with what was told of each; the last one, its answer, with all scores."""
    columns, end = recording.columns, recording.end
    changes: dict[str, dict[int, Any]] = {
        "labels": dict(recording.labels),
        "note": dict(recording.notes),
        "verdict": {place: {**told, "meaning": MEANING[str(told["word"])], "rule": recording.rule} for place, told in recording.verdicts},
    }
    held: dict[str, Any] = {}
    for place in range(len(columns["step"])):
        held |= {name: told[place] for name, told in changes.items() if place in told}
        now: dict[str, Any] = {name: columns[name][place] for name in OF_A_FRAME} | {"views": dict(recording.views).get(place)}
        now["scores"] = {name: values[place] for name, values in columns.items() if name not in OF_A_FRAME}
        if place == end.answer:
            now |= {"scores": end.scores, "verdict": end.verdict}
        yield FrameEvent.model_validate({**held, **now})
