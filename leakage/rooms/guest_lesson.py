"""A lesson as the phones of a room may see it: as far as the class has come, without the answers that have not been shown."""

from collections.abc import Mapping
from typing import Any

from leakage.rooms.room import Room

CHANGES = ("labels", "notes", "verdicts", "views")  # lists of (place in the columns, what holds from there on)


def guest_lesson(lesson: Mapping[str, Any], room: Room) -> dict[str, Any]:
    """Return what the phones of a room may know of its lesson now.

    Args:
        lesson: The whole lesson (`leakage.learn.reader_data.reader_lesson`).
        room: The room that goes through this lesson.

    Returns:
        The lesson with the beats that the class has been at, their grids, and their runs up to the step at which the latest of these beats
        stops them. A question whose answer has been shown brings the beat that answers it, if that is the next one: the hall shows its run
        or figure beside the answer, and phones do so too. Options of a question without an answer have only their text. There are no notes
        for teachers and no links to the Lab, which phones may not open. `all` is the number of all beats. Pictures beside a run's guess
        (`views`) come with the beat that shows the run and not again: phones keep them, and they are most of the bytes that a latecomer
        would wait for.
    """
    beats = [_beat(beat, answered=room.knows_answer(number)) for number, beat in enumerate(lesson["beats"][: _seen(lesson, room)], 1)]
    shown_now, stops = beats[-1].get("runs", ()), dict[str, list[str]]()
    for beat in beats:
        for run in beat.get("runs", ()):
            stops.setdefault(run, []).append(beat.get("stop", "answer"))
    return {
        **{field: lesson[field] for field in ("id", "title", "minutes")},
        "all": len(lesson["beats"]),
        "beats": beats,
        "caveat": lesson["caveat"] if room.furthest == len(lesson["beats"]) else "",
        "source": lesson["source"],
        "notes": "",
        "runs": {name: _until(lesson["runs"][name], stops[name], with_views=name in shown_now) for name in stops},
        "grids": {name: _without_links(lesson["grids"][name]) for beat in beats if (name := beat.get("grid"))},
    }


def _seen(lesson: Mapping[str, Any], room: Room) -> int:
    """Return how many beats phones may know."""
    following = lesson["beats"][room.furthest : room.furthest + 1]
    return room.furthest + (room.knows_answer(room.furthest) and any(beat["kind"] == "reveal" for beat in following))


def _beat(beat: Mapping[str, Any], *, answered: bool) -> dict[str, Any]:
    shown = {field: value for field, value in beat.items() if field not in ("note", "hall", "hall_note")}
    if "options" in shown and not answered:
        shown["options"] = [{"text": option["text"]} for option in shown["options"]]
    return shown


def _until(run: Mapping[str, Any], stops: list[str], *, with_views: bool) -> dict[str, Any]:
    """Return a recorded run up to the furthest of the places at which beats stop it; whole if one plays it to its end."""
    shown = {**run, "lab": None}
    if not with_views and run.get("views"):
        shown["views"] = []
    if "columns" not in run or any(stop.startswith("answer") for stop in stops):
        return shown
    bounds = [int(stop.removeprefix("step ")) for stop in stops if stop.startswith("step ")]
    steps = run["columns"]["step"]
    count = sum(1 for step in steps if bounds and step <= max(bounds))
    shown["columns"] = {name: column[:count] for name, column in run["columns"].items()}
    shown["film"] = {**run["film"], "places": [place for place in run["film"]["places"] if place < count]}
    shown |= {field: [change for change in run[field] if change[0] < count] for field in CHANGES}
    return shown | {"messages": [], "result": None}


def _without_links(grid: Mapping[str, Any]) -> dict[str, Any]:
    return {**grid, "cells": [{**cell, "lab": None} for cell in grid["cells"]]}
