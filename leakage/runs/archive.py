"""A finished run as JSON and back: how the recorded run travels in `assets/`."""

import base64
import dataclasses
from collections.abc import Mapping
from typing import Any

from leakage.runs.events import AttackEnd, FrameEvent, MetaEvent, NoteEvent, RunEvent
from leakage.runs.notes import RECORDED
from leakage.runs.store import Run, Store

KEPT: Mapping[str, type[RunEvent]] = {kind.kind_name(): kind for kind in (MetaEvent, NoteEvent, FrameEvent)}
OWNER = "recorded"  # holds what nobody may delete
# Another version than any engine's: pressing Run on the same settings must run, not answer with the recording.
AS_NEW: Mapping[str, Any] = {"owner": OWNER, "version": "recorded", "status": "running", "worker": None, "result": None, "finished": None}


def export(store: Store, run: str) -> dict[str, Any]:
    """The row, the events (contact sheets in base64) and the files of a finished run."""
    found = store.get(run)
    assert found is not None
    events = [event for event in store.events([run], 0) if event["kind"] in KEPT]
    for event in events:
        if event.pop("picture", False):
            event["png"] = base64.b64encode(store.frame(run, event["seq"]) or b"").decode()
    files = {name: base64.b64encode(data).decode() for name, data in store.files(run).items()}
    return {"run": dataclasses.asdict(found), "events": events, "files": files}


def restore(store: Store, exported: dict[str, Any]) -> str:
    """Add an exported run to the store, unless it is there already; answers its id. Events get new sequence numbers."""
    run = Run(**exported["run"])
    if store.note(RECORDED) == run.id and store.get(run.id):
        return run.id
    store.drop(run.id, OWNER)  # an earlier try that was interrupted
    files = {name: base64.b64decode(data) for name, data in exported["files"].items()}
    store.add(dataclasses.replace(run, **AS_NEW), files)
    numbers: dict[int, int] = {}
    for event in exported["events"]:
        if "png" in event:
            numbers[event["seq"]] = store.add_frame(run.id, FrameEvent.model_validate(event), base64.b64decode(event["png"]))
        else:
            store.add_event(run.id, KEPT[event["kind"]].model_validate(event))
    end = run.outcome(AttackEnd)
    assert end is not None
    store.finish(run.id, run.status, result=end.model_copy(update={"answer": numbers[end.answer]}))
    store.put_note(RECORDED, run.id)
    return run.id
