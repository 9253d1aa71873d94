"""The lessons as data for a reader: numbers filled into the sentences, and runs and grids beside the beats that show them. No torch."""

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from leakage.data import checkpoints
from leakage.learn import recordings
from leakage.learn.claims import load_figure
from leakage.learn.grids import Cell, load_grid
from leakage.learn.lab_link import lab_query
from leakage.learn.lessons import TOKEN, Beat, GuessBeat, Lesson, LessonFigure, PlayBeat, RevealBeat, TryBeat, find_lesson, lessons
from leakage.learn.own_settings import own_settings
from leakage.learn.planned import planned_grid, planned_run
from leakage.learn.tokens import value_of
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, SpecError

DASH = "–"  # in place of a missing number
SHOWN_OF_RUN = ("title", "seconds", "columns", "labels", "notes", "verdicts", "views", "messages", "rule", "result")
SHOWN_OF_META = ("batch", "size", "channels", "pictures", "class_names", "received", "baselines", "steps", "attack", "loss_name", "way")


# ---------------------------------------------------------------- numbers in sentences


def fill_numbers(text: str, lesson: Lesson) -> str:
    """Return a text of a lesson with each {token} replaced by its number (`value_of`), or by a dash if the recording is missing."""

    def value(match: re.Match[str]) -> str:
        try:
            return value_of(match[1], lesson)
        except SpecError:
            return DASH

    return TOKEN.sub(value, text)


# ---------------------------------------------------------------- the index


def reader_index(known: Catalog | None) -> list[dict[str, Any]]:
    """Return a summary of every lesson: title, minutes, number of beats, first question and takeaway."""
    return [
        {
            "id": lesson.id,
            "title": lesson.title,
            "minutes": lesson.minutes,
            "beats": len(_shown_beats(lesson, known)),
            "question": next((fill_numbers(beat.text, lesson) for beat in lesson.beats if isinstance(beat, GuessBeat)), ""),
            "takeaway": fill_numbers(lesson.beats[-1].text, lesson),
            "thumbnail": bool(first_beat_with_run(lesson)),
        }
        for lesson in lessons()
    ]


@cache
def thumbnail(id: str) -> bytes:
    """Return the thumbnail of a lesson as WebP: a private picture beside its reconstruction in the first beat with a recorded run.

    The reconstruction is that of the frame at which the beat stops, or grey if it stops before the first frame. Raises SpecError if the
    lesson has no recorded run.
    """
    beat = first_beat_with_run(find_lesson(id))
    if beat is None:
        raise SpecError(f"Nothing has been recorded for {id}.")
    rows, film = recordings.pictures_of(beat.plays[0]), recordings.load(beat.plays[0])
    steps = [film.columns["step"][index] for index in film.film.places]
    halt = stop_row(beat.stop, steps)
    pictures = [rows[0][0], rows[halt + 1][0] if halt is not None else np.full_like(rows[0][0], 128)]
    return recordings.webp(np.concatenate(pictures, axis=1))


def first_beat_with_run(lesson: Lesson) -> PlayBeat | RevealBeat | None:
    """Return the first beat that plays a recorded run; None if no such run has been recorded."""
    playing = (beat for beat in lesson.beats if isinstance(beat, PlayBeat | RevealBeat) and beat.plays)
    return next((beat for beat in playing if (recordings.FOLDER / f"{beat.plays[0]}.json").exists()), None)


def stop_row(stop: str, steps: list[float | None]) -> int | None:
    """Return the index of the frame at which a beat stops playing a recorded run; None if it stops before the first frame.

    Args:
        stop: "first", "step N", or anything else for the last frame.
        steps: the optimizer step of each frame.
    """
    if stop == "first":
        return None
    if not stop.startswith("step "):
        return len(steps) - 1
    bound = int(stop.removeprefix("step "))
    return max((index for index, step in enumerate(steps) if step is not None and step <= bound), default=0)


# ---------------------------------------------------------------- one lesson


def reader_lesson(name: str, known: Catalog | None) -> dict[str, Any]:
    """Return the data of a whole lesson for the page that shows it: beats, recorded runs, grids, and the texts below them.

    Args:
        name: the id of the lesson.
        known: the installed plug-ins; None while they are not known.

    Raises:
        SpecError: there is no lesson of that name.
    """
    lesson = find_lesson(name)
    beats = _shown_beats(lesson, known)
    in_hall = {id(beat): {"hall": hall[0], "hall_note": hall[1]} for beat, hall in zip(lesson.beats, lesson.hall, strict=True)}
    return {
        "id": lesson.id,
        "title": lesson.title,
        "minutes": lesson.minutes,
        "beats": [_beat(beat, lesson) | in_hall[id(beat)] for beat in beats],
        "caveat": fill_numbers(lesson.caveat, lesson),
        "source": list(lesson.source),
        "notes": fill_numbers(lesson.notes, lesson),
        "runs": {name: reader_run(name, known) for name in dict.fromkeys(name for beat in beats for name in beat.plays)},
        "grids": {beat.grid: _grid(beat.grid, known) for beat in beats if isinstance(beat, TryBeat)},
    }


def _shown_beats(lesson: Lesson, known: Catalog | None) -> list[Beat]:
    """List the beats of a lesson without those that need a plug-in which is not installed."""
    installed = {f"{entry.kind}:{entry.id}" for entry in known.entries} if known else set()
    return [beat for beat in lesson.beats if not beat.requires or beat.requires in installed]


def _beat(beat: Beat, lesson: Lesson) -> dict[str, Any]:
    raw = beat.model_dump(mode="json", exclude={"requires", "figure"})
    raw["text"], raw["note"] = fill_numbers(beat.text, lesson), fill_numbers(beat.note, lesson)
    for option in raw.get("options", ()):
        option |= {name: fill_numbers(option[name], lesson) for name in ("text", "why")}
    with suppress(SpecError):  # the figure has not been written yet
        if figure := getattr(beat, "figure", None):
            raw["figure"] = _figure(figure)
    return raw


def _figure(figure: LessonFigure) -> dict[str, Any]:
    """Return the content of a figure, as JSON."""
    points, level = load_figure(figure)
    return {
        "x_title": figure.x_title,
        "y_titles": list(figure.y_titles),
        "y_unit": figure.y_unit,
        "points": [[_stage(x) if figure.x == "checkpoint" else x, values] for x, values in points],
        "line": level,
        "line_title": figure.line_title,
        "file": figure.file,
    }


def _stage(checkpoint: str) -> str:
    """Return the label of a checkpoint such as "convnet@5" on an axis: how many rounds or epochs it was trained, or "untrained"."""
    if not checkpoint:
        return "untrained"
    card, stage = checkpoints.find(checkpoint)
    return f"after {stage.rounds} {card.unit}{'' if stage.rounds == 1 else 's'}"


def reader_run(name: str, known: Catalog | None) -> dict[str, Any]:
    """Return the data of a recorded run that a reader needs, with its address in the Lab.

    If it has not been recorded, only the title and the address.
    """
    planned = planned_run(name)
    link = {"title": planned.title, "lab": lab_query(planned.experiment, known)}
    try:
        raw = recordings.load(name).model_dump(mode="json")
    except SpecError:
        return link
    meta: Mapping[str, Any] = raw["meta"]
    columns = {column: raw["columns"][column] for column in ("step", "seconds", "loss", *recordings.SHOWN) if column in raw["columns"]}
    return {
        **link,
        **{field: raw[field] for field in SHOWN_OF_RUN},
        "columns": columns,
        "film": raw["film"],
        "meta": {field: meta.get(field) for field in SHOWN_OF_META},
    }


def _grid(name: str, known: Catalog | None) -> dict[str, Any]:
    """Return the data of a grid: its knobs (settings), and "cells": for every choice its address in the Lab and its recorded result.

    The result is None where it has not been recorded.
    """
    planned = planned_grid(name)
    cells = planned.cells()
    answers: dict[tuple[int, ...], Cell] = {}
    film: dict[str, Any] | None = None
    class_names: tuple[str, ...] = ()
    with suppress(SpecError):
        recording = load_grid(name)
        answers = {cell.choice: cell for cell in recording.cells}
        film, class_names = recording.film.model_dump(mode="json", include={"side", "batch"}), recording.class_names
    return {
        "title": planned.title,
        "knobs": [
            {"name": knob.name, "values": [{"label": value.label, "number": value.number} for value in knob.values]}
            for knob in planned.knobs
        ],
        "plot": planned.plot.model_dump() if planned.plot else None,
        "cells": [_cell(planned.experiment(cell), answers.get(cell), known) for cell in cells],
        "film": film,
        "class_names": list(class_names),
    }


def _cell(experiment: Experiment, answer: Cell | None, known: Catalog | None) -> dict[str, Any]:
    """Return the data of a choice: its address in the Lab, its settings for the visitor's own picture, and its recorded result."""
    own = {"own": own_settings(experiment, known)} if known else {}
    return {"lab": lab_query(experiment, known), **own, "answer": _answer(answer)}


def _answer(cell: Cell | None) -> dict[str, Any] | None:
    return cell.model_dump(mode="json", exclude={"choice", "experiment_digest"}) if cell else None
