"""The downloads of a run: the final picture, the whole run as an animation, the curves, the experiment."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from PIL import Image, ImageDraw

from leakage.data.images import saved, tiles
from leakage.results import slides
from leakage.results.captions import caption, headline
from leakage.runs.audit_log import AuditLog
from leakage.runs.events import AttackEnd, FrameEvent, ProgressEvent, RoundEvent, StatementEvent
from leakage.runs.store import Run, Store
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment

COLUMNS = 8  # pictures side by side
SCALE = 6  # screen pixels per picture pixel; fewer if the whole would become wider than WIDE or NARROW
WIDE, NARROW = 1800, 640  # the largest width of the final picture, and of the animation, in screen pixels
SECONDS = 8  # of animation
MAX_PAGES, MAX_PIXELS = 120, 24_000_000  # of an animation, which the web server makes in memory
GAP = 8


@dataclass(frozen=True)
class Download:
    """A download: its media type and its bytes."""

    type: str
    data: bytes


def make(store: Store, run: str, name: str, known: Catalog | None = None) -> Download | None:
    """Return a run's download of this name.

    Args:
        store: the runs.
        run: the id of the run.
        name: a name in MAKERS, or, for an attack, in SLIDES.
        known: the plug-ins, which SLIDES need.

    Returns:
        The download; None for another name, or if there is nothing to show.
    """
    stored = store.get(run)
    if stored and stored.kind == "attack" and name in SLIDES:
        slide = _slide(store, stored, known) if known else None
        return Download(f"image/{name.rpartition('.')[2]}", SLIDES[name](slide)) if slide else None
    maker = MAKERS[stored.kind].get(name) if stored else None
    return maker(store, stored) if stored and maker else None


def as_grid(run: Run, sheet: bytes | None) -> Image.Image | None:
    """Arrange the pictures of a contact sheet (a PNG with one row of pictures) in rows of COLUMNS, on white; None without a sheet."""
    if sheet is None:
        return None
    pictures = [Image.fromarray(tile[:, :, 0] if tile.shape[2] == 1 else tile) for tile in tiles(sheet, len(_parsed(run)["pictures"]))]
    side, rows = pictures[0].width, -(-len(pictures) // COLUMNS)
    grid = Image.new("RGB", (side * min(COLUMNS, len(pictures)), side * rows), "white")
    for number, picture in enumerate(pictures):
        grid.paste(picture, (side * (number % COLUMNS), side * (number // COLUMNS)))
    return grid


def _parsed(run: Run) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(run.experiment)
    return parsed


def answer_of(store: Store, run: Run) -> int | None:
    """Return the sequence number of the frame (intermediate reconstruction) that an attack gave as its answer.

    For a run without an end, the stored frame of the lowest attack loss takes its place; None if there is no such frame.
    """
    if end := run.outcome(AttackEnd):
        return end.answer
    kept = [(frame.loss, frame.seq) for frame in store.frames(run.id) if frame.picture and frame.loss is not None]
    return min(kept)[1] if kept else None


def _beside(private: Image.Image, guess: Image.Image, words: str, *, wide: int) -> Image.Image:
    """Draw the private pictures above the reconstructions, resized to fit the width `wide` in pixels, with a line of text below."""
    scale = min(SCALE, wide // private.width) or wide / private.width
    size = (round(private.width * scale), round(private.height * scale))
    how = Image.Resampling.NEAREST if scale >= 1 else Image.Resampling.BOX
    page = Image.new("RGB", (size[0] + 2 * GAP, 2 * size[1] + 4 * GAP + 12), "white")
    for row, picture in enumerate((private, guess)):
        page.paste(picture.resize(size, how), (GAP, GAP + row * (size[1] + GAP)))
    ImageDraw.Draw(page).text((GAP, 2 * size[1] + 3 * GAP - 4), words, fill="black")
    return page


def private_grid(store: Store, run: Run) -> Image.Image | None:
    """Return the private pictures as a grid; None before the run begins."""
    return as_grid(run, store.files(run.id, "private.png").get("private.png"))


def _caption(frame: FrameEvent) -> str:
    psnr = "unknown" if frame.scores.psnr is None else f"{frame.scores.psnr:.1f} dB"
    return f"step {frame.step}   PSNR {psnr}"


def _final(store: Store, run: Run) -> Download | None:
    answer, private = answer_of(store, run), private_grid(store, run)
    guess = as_grid(run, store.frame(run.id, answer)) if answer else None
    frame = next((frame for frame in store.frames(run.id) if frame.seq == answer), None)
    if guess is None or private is None or frame is None:
        return None
    return Download("image/png", saved(_beside(private, guess, _caption(frame), wide=WIDE), "PNG"))


def _animation(store: Store, run: Run) -> Download | None:
    private = private_grid(store, run)
    frames = [frame for frame in store.frames(run.id) if frame.picture]
    if private is None or not frames:
        return None
    pages: list[Image.Image] = []
    for frame in _some(frames, private):
        guess = as_grid(run, store.frame(run.id, frame.seq))
        if guess:  # else the store has removed it meanwhile
            pages.append(_beside(private, guess, _caption(frame), wide=NARROW))
    if not pages:
        return None
    durations = [SECONDS * 1000 // len(pages)] * (len(pages) - 1) + [3000]
    return Download(
        "image/webp", saved(pages[0], "WEBP", save_all=True, append_images=pages[1:], duration=durations, loop=0, quality=80, method=2)
    )


def _slide(store: Store, run: Run, known: Catalog) -> slides.Slide | None:
    """Return the content of a run's slide; None before the run has pictures."""
    answer, meta, private = answer_of(store, run), store.meta(run.id), store.files(run.id, "private.png").get("private.png")
    if not answer or not meta or not private:
        return None
    frames = [frame for frame in store.frames(run.id) if frame.picture and frame.seq <= answer]
    few = [frames[round(number * (len(frames) - 1) / (slides.FRAMES - 1))] for number in range(slides.FRAMES)]
    end, grey, experiment = run.outcome(AttackEnd), meta.judging.baselines.get("grey"), run.experiment_as(Experiment)
    stills = [
        slides.Still(tiles(png, meta.truth.batch), frame.step, (end.scores if end and frame.seq == answer else frame.scores).psnr)
        for frame in {frame.seq: frame for frame in few}.values()
        if (png := store.frame(run.id, frame.seq))  # else the store has removed it meanwhile
    ]
    verdict = (end.verdict if end else None) or frames[-1].verdict
    return slides.Slide(
        title=headline(experiment, known),
        private=tiles(private, meta.truth.batch),
        stills=stills,
        grey=grey.psnr if grey else None,
        word=verdict.word if verdict else "not finished",
        sent=meta.entries,
        settings=caption(experiment, known),
    )


def _some(frames: list[FrameEvent], private: Image.Image) -> list[FrameEvent]:
    """Choose as many frames as the animation may have, with the last among them."""
    page = _beside(private, private, "", wide=NARROW)
    count = max(2, min(MAX_PAGES, MAX_PIXELS // (page.width * page.height)))
    step = max(1.0, (len(frames) - 1) / (count - 1))
    return [frames[round(number * step)] for number in range(min(count, len(frames)))]


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Download:
    """Return rows below their headings, as CSV."""
    out = io.StringIO()
    lines = csv.writer(out)
    lines.writerow(head)
    lines.writerows(rows)
    return Download("text/csv", out.getvalue().encode())


def _curves(store: Store, run: Run) -> Download | None:
    more = ["ssim", "label_accuracy", "rank", "identified", "registered_psnr", "lpips"]  # some are measured rarely, some only at the end

    def row(frame: FrameEvent) -> list[object]:
        start = [frame.step, frame.seconds, frame.loss, frame.scores.psnr, frame.scores.mse]
        return [*start, *(getattr(frame.scores, name) for name in more)]

    return table(["step", "seconds", "gradient_distance", "psnr_db", "mse", *more], map(row, store.frames(run.id)))


def _rounds(store: Store, run: Run) -> Download | None:
    rows = ([event.done, event.seconds, event.loss, event.accuracy] for event in store.events_of(run.id, RoundEvent))
    return table(["round", "seconds", "loss", "accuracy"], rows)


def _epochs(store: Store, run: Run) -> Download | None:
    rows = ([event.done, event.seconds, event.loss] for event in store.events_of(run.id, ProgressEvent))
    return table(["epoch", "seconds", "mse"], rows)


def _experiment(store: Store, run: Run) -> Download | None:
    return Download("application/json", json.dumps(_parsed(run), indent=2).encode())


def _audit(store: Store, run: Run) -> Download | None:
    statements = [event.text for event in store.events_of(run.id, StatementEvent)]
    found = AuditLog(store).findings(run.id)
    findings = [event.model_dump(mode="json", exclude={"kind", "run", "seq", "picture"}) for event in found]
    task = json.loads(run.experiment)
    del task["files"]  # a name on this machine
    body = {"task": task, "version": run.version, "statements": statements, "findings": findings, "result": run.result}
    return Download("application/json", json.dumps(body, indent=2).encode())


SLIDES = {"slide.png": slides.png, "run.gif": slides.gif}
MAKERS: dict[str, dict[str, Callable[[Store, Run], Download | None]]] = {  # kind of run -> name of a download -> its function
    "attack": {"final.png": _final, "run.webp": _animation, "curves.csv": _curves, "experiment.json": _experiment},
    "train": {"curves.csv": _rounds, "experiment.json": _experiment},
    "invert": {"curves.csv": _epochs, "experiment.json": _experiment},
    "rank": {"experiment.json": _experiment},
    "handed": {},
    "norms": {},
    "audit": {"audit.json": _audit},
}
