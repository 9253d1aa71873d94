"""A recorded run, format 2: NAME.json with the data of every frame, in columns, and NAME.webp with the pictures of some frames.

The film has a row for the private pictures, then one for every stored frame, the answer last; its columns are the pictures of the batch.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from PIL import Image
from pydantic import JsonValue

from leakage.data.images import Pixels, saved, tiles
from leakage.runs.event_parts import EventPart
from leakage.runs.events import AttackEnd, FrameEvent, MetaEvent, NoteEvent, RunEvent
from leakage.runs.thin import log_spaced
from leakage.settings import ROOT
from leakage.spec.experiment import Base, Experiment, SpecError, parse_as

FOLDER = ROOT / "assets" / "lessons" / "runs"
FRAMES_OF_ONE, FRAMES_OF_MANY = 24, 7  # frames in the film of a single picture, and of a batch
COARSE = 0b11111100  # bits of a channel that intermediate pictures of a batch keep; the others keep all
SHOWN = ("psnr", "ssim", "rank")  # columns that a reader draws; of other scores that only the answer has, the result is enough
QUICK, SMALLEST = 4, 6  # efforts of the WebP encoder: for answers to requests; for files that are stored, 25 times as long, 1 % smaller
DIGITS = 4  # of numbers in the columns; those of the result keep all
ONE_DAY: Any = dict.fromkeys(("run", "seq", "kind"), True)  # valid only on the day of the recording
NOT_IN_META: Any = {**ONE_DAY, "truth": {"private"}, "environment": {"estimate"}}
NOT_IN_RESULT: Any = {
    **ONE_DAY,
    **dict.fromkeys(("timing_key", "status", "seconds"), True),
    "verdict": {"rule"},
}  # stored elsewhere in the file


Recording = TypeVar("Recording", bound=Base)


class Film(Base):
    """The layout of a film: a row of private pictures, then a row for each of some frames, the answer last."""

    side: int
    """In pixels."""
    batch: int
    """The number of columns."""
    places: tuple[int, ...]
    """The indices of these frames in the columns of the recording."""


class RunRecording(Base):
    """A recorded run of an attack: experiment, scores and losses of all frames, verdicts, and the layout of its film (pictures)."""

    format: Literal[2]
    title: str
    experiment: Experiment
    experiment_digest: str
    """The digest of the experiment with defaults filled in."""
    engine: str
    """The version of the code that computed the run."""
    seconds: float
    """The computing time on a core, without waiting for other processes. The seconds in the columns are counted likewise."""
    meta: dict[str, JsonValue]
    """What does not change during the run, see `MetaEvent`, without addresses."""
    columns: dict[str, tuple[float | None, ...]]
    """For all frames step, seconds, loss and every score that is a number and was measured before the answer; None: not measured."""
    film: Film
    labels: tuple[tuple[int, tuple[int, ...]], ...]
    """[index of a frame, labels] where they change."""
    notes: tuple[tuple[int, dict[str, JsonValue]], ...]
    """[index of a frame, note] where it changes."""
    verdicts: tuple[tuple[int, dict[str, JsonValue]], ...]
    """[index of a frame, verdict] where its word changes."""
    views: tuple[tuple[int, dict[str, str]], ...]
    """[index of a frame, views] for every frame with views."""
    messages: tuple[str, ...]
    """Sentences that a user must not miss."""
    rule: str
    result: dict[str, JsonValue]
    """The end of the attack, see `AttackEnd`; its answer is the index of a frame."""

    @property
    def end(self) -> AttackEnd:
        """The end of the attack: its answer, scores and verdict."""
        return AttackEnd.model_validate({**self.result, "verdict": {**self._verdict, "rule": self.rule}})

    @property
    def word(self) -> str:
        """The verdict on the final reconstruction in a word, such as "recognizable" (`leakage.spec.words`)."""
        return str(self._verdict["word"])

    @property
    def _verdict(self) -> dict[str, JsonValue]:
        verdict = self.result["verdict"]
        assert isinstance(verdict, dict)
        return verdict

    @property
    def grey(self) -> float:
        """PSNR in dB of a plain grey picture, which is independent of the private pictures."""
        return grey_of(self.meta_event)

    @property
    def meta_event(self) -> MetaEvent:
        """The MetaEvent of the run: what does not change during the run, such as the true labels and the baselines."""
        return MetaEvent.model_validate({**self.meta, "private": ""})


def grey_of(meta: MetaEvent) -> float:
    """Return the PSNR, in dB, that a plain grey picture has as a guess of the run's private pictures."""
    found = meta.judging.baselines["grey"].psnr
    assert found is not None
    return found


class Played(NamedTuple):
    """A finished run as the store has it: experiment, events, result, and pictures as encoded contact sheets."""

    experiment: Experiment
    """The experiment with defaults filled in."""
    events: tuple[RunEvent, ...]
    """MetaEvent, NoteEvents and FrameEvents in their order."""
    end: AttackEnd
    pictures: dict[int, bytes]
    """The contact sheet of every frame that still has one, by the number of the frame."""
    private: bytes
    """The contact sheet of the private pictures."""
    work_fraction: float
    """The computing time as a fraction of the elapsed time."""


def record(title: str, run: Played, *, engine: str, pictures: int = 0, points: int = 0) -> tuple[RunRecording, bytes]:
    """Return the recording of a finished run, and its film (one picture with rows of pictures, see `Film`) as WebP.

    Args:
        title: the title of the recording, which says what was done.
        run: the run.
        engine: the version of the code that computed it.
        pictures: how many frames have a picture in the film; 0: the usual number for the size of the batch.
        points: how many frames are kept at most, the answer among them; 0: all.
    """
    experiment, events, end, sheets, private, work_fraction = run
    meta = next(event for event in events if isinstance(event, MetaEvent))
    frames = [event for event in events if isinstance(event, FrameEvent)]
    if points:
        frames = _thinned(frames, end.answer, points)
    index_of = {frame.seq: index for index, frame in enumerate(frames)}
    assert end.answer is not None
    answer = index_of[end.answer]
    most = pictures or (FRAMES_OF_ONE if meta.truth.batch == 1 else FRAMES_OF_MANY)
    before = [index + 1 for index, frame in enumerate(frames[:answer]) if sheets.get(frame.seq, sheets[end.answer]) != sheets[end.answer]]
    indices = [*(index - 1 for index in (log_spaced(before, most - 1) if most > 1 else ())), answer]
    rows = [tiles(private, meta.truth.batch), *(tiles(sheets[frames[index].seq], meta.truth.batch) for index in indices)]
    verdicts = [frame.verdict.model_dump(include={"word", "why"}) if frame.verdict else None for frame in frames]
    assert end.verdict is not None
    recording = RunRecording(
        format=2,
        title=title,
        experiment=experiment,
        experiment_digest=experiment.digest(),
        engine=engine,
        seconds=round((end.seconds or 0) * work_fraction, 1),
        meta=meta.model_dump(mode="json", exclude=NOT_IN_META),
        columns=_columns(frames, answer, work_fraction),
        film=Film(side=meta.truth.size, batch=meta.truth.batch, places=tuple(indices)),
        labels=tuple(_changes(frame.labels for frame in frames)),
        notes=tuple(_changes(frame.note or None for frame in frames)),
        verdicts=tuple(_changes(verdicts, by="word")),
        views=tuple((index, frame.views) for index, frame in enumerate(frames) if frame.views),
        messages=tuple(event.text for event in events if isinstance(event, NoteEvent)),
        rule=end.verdict.rule,
        result=end.model_copy(update={"answer": answer}).model_dump(mode="json", exclude=NOT_IN_RESULT),
    )
    return recording, film(rows)


def _thinned(frames: Sequence[FrameEvent], answer: int | None, most: int) -> list[FrameEvent]:
    """Return at most `most` frames, denser at the beginning, the answer (its number) among them."""
    others = [frame.seq for frame in frames if frame.seq != answer]
    kept = {*log_spaced(others, most - 1), answer} if most > 1 else {answer}
    return [frame for frame in frames if frame.seq in kept]


def _columns(frames: Sequence[FrameEvent], answer: int, work_fraction: float) -> dict[str, tuple[float | None, ...]]:
    names = [name for name, about in frames[0].scores.__class__.model_fields.items() if "tuple" not in str(about.annotation)]
    columns: dict[str, tuple[float | None, ...]] = {
        "step": tuple(frame.step for frame in frames),
        "seconds": tuple(round(frame.seconds * work_fraction, 2) for frame in frames),
        "loss": tuple(short_or_none(frame.loss) for frame in frames),
    }
    scores = {name: tuple(short_or_none(getattr(frame.scores, name)) for frame in frames) for name in names}
    return columns | {name: values for name, values in scores.items() if name in SHOWN or any(v is not None for v in values[:answer])}


def short(value: float) -> float:
    """Round a number to DIGITS significant digits."""
    return float(f"{value:.{DIGITS}g}")


def short_or_none(value: float | None) -> float | None:
    """Round a number to DIGITS significant digits; None stays None."""
    return None if value is None else short(value)


def _changes(values: Iterable[Any], *, by: str = "") -> Iterator[tuple[int, Any]]:
    """Yield index and value of each value that differs from the value yielded before; skip None.

    Args:
        values: the value of each frame.
        by: the key of the entry to compare; empty: compare whole values.
    """
    last = None
    for index, value in enumerate(values):
        compared = value[by] if by and value else value
        if value is not None and compared != last:
            last = compared
            yield index, value


def film(rows: Sequence[Pixels]) -> bytes:
    """Encode rows of pictures, uint8 (B, H, W, C) each, as one lossless WebP picture; in between, rows of batches have fewer shades.

    Args:
        rows: the private pictures, reconstructions at some frames, and the final reconstruction.
    """
    coarse = [row & COARSE if 0 < number < len(rows) - 1 and len(row) > 1 else row for number, row in enumerate(rows)]
    return webp(np.concatenate([np.concatenate([*row], axis=1) for row in coarse]), method=SMALLEST)


def webp(picture: Pixels, *, method: int = QUICK) -> bytes:
    """Encode a picture uint8 (H, W, 1 or 3) as lossless WebP; `method`: the effort, 0 to 6, for a small file."""
    image = Image.fromarray(np.repeat(picture, 3, axis=2) if picture.shape[2] == 1 else picture)
    return saved(image, "WEBP", lossless=True, quality=100, method=method)


def rows_of(data: bytes, side: int, batch: int) -> list[Pixels]:
    """Return the rows of a film, uint8 (B, side, side, 3) each; raise SpecError if its size does not match."""
    with Image.open(BytesIO(data), formats=("WEBP",)) as image:
        whole = np.array(image.convert("RGB"))
    if whole.shape[0] % side or whole.shape[1] != batch * side:
        raise SpecError(f"This film is {whole.shape[1]} pixels wide, expected are {batch} pictures of {side}. Record it again.")
    return [*whole.reshape(-1, side, batch, side, 3).transpose(0, 2, 1, 3, 4)]


def write(folder: Path, name: str, recording: EventPart | Base, pictures: bytes = b"") -> None:
    """Write a recording as NAME.json and NAME.webp: the WebP first, so that a process that finds the data finds its pictures.

    Args:
        folder: the folder, which is created if needed.
        name: the name of the recording.
        recording: the data.
        pictures: the film, encoded as WebP; empty: the recording has none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if pictures:
        (folder / f"{name}.webp").write_bytes(pictures)
    temporary = folder / f"{name}.tmp"
    temporary.write_text(json.dumps(recording.model_dump(mode="json"), separators=(",", ":")) + "\n")
    temporary.replace(folder / f"{name}.json")


@cache
def load(name: str) -> RunRecording:
    """Return the recorded run of that name; raise SpecError if it is missing or damaged."""
    return read(FOLDER, name, RunRecording, "a recorded run")


def read(folder: Path, name: str, kind: type[Recording], called: str) -> Recording:
    """Read the data NAME.json of a recording; raise SpecError, with the first wrong field, if it is missing or damaged.

    Args:
        folder: its folder.
        name: its name.
        kind: the class of the recording.
        called: what the error message calls it.
    """
    file = folder / f"{name}.json"
    if not file.exists():
        raise SpecError(f"{name} has not been recorded: run `make record ARGS='--only {name}'`.")
    try:
        return parse_as(file.read_bytes(), kind, called, most=math.inf)
    except SpecError as error:
        raise SpecError(f"{file.name}: {str(error).partition('; given was {')[0]}") from None


def pictures_of(name: str) -> list[Pixels]:
    """Return the rows of the film of a recorded run: the private pictures, the stored frames, the answer last."""
    layout = load(name).film
    return rows_of((FOLDER / f"{name}.webp").read_bytes(), layout.side, layout.batch)
