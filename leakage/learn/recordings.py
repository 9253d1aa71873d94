"""A recorded run, format 2: `rNN.json` with what was told of every frame, in columns, and `rNN.webp` with the pictures of some.

The film has a row for the private pictures, then one for every kept frame, the answer last; its columns are the pictures of the batch.
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

from leakage.data.images import Pixels, tiles
from leakage.runs.event_parts import EventPart
from leakage.runs.events import AttackEnd, FrameEvent, MetaEvent, NoteEvent, RunEvent
from leakage.runs.thin import log_spaced
from leakage.settings import ROOT
from leakage.spec.experiment import Base, Experiment, SpecError, parse_as

FOLDER = ROOT / "assets" / "lessons" / "runs"
FRAMES_OF_ONE, FRAMES_OF_MANY = 24, 7  # pictures in a film, besides the private ones
COARSE = 0b11111100  # bits of a channel that are kept on the way of a batch; its private pictures and its answer keep all
DIGITS = 4  # of a number on the way; those of the result stay whole
ONE_DAY: Any = dict.fromkeys(("run", "seq", "kind"), True)  # what was true on the day of the recording alone
NOT_IN_META: Any = {**ONE_DAY, "truth": {"private"}, "environment": {"estimate"}}
NOT_IN_RESULT: Any = {**ONE_DAY, **dict.fromkeys(("timing_key", "status", "seconds"), True), "verdict": {"rule"}}  # told elsewhere


Recording = TypeVar("Recording", bound=Base)


class Film(Base):
    """What the rows of the WebP file show: the private pictures, then the frames at these places of the columns, the answer last."""

    side: int  # pixels
    batch: int  # columns
    places: tuple[int, ...]


class RunRecording(Base):
    """All that was told of a run.

    experiment_digest  of the resolved experiment
    engine    the version of the code that computed it
    seconds   of work that it took one core, without waiting for other processes; in the columns likewise
    meta      what does not change, see `MetaEvent`, without addresses
    columns   of all frames: step, seconds, loss and every score that is one number; None where it was not measured
    labels, notes, verdicts, views  [place, value] where they change
    messages  sentences that a user must not miss
    result    see `AttackEnd`; its answer is a place of the columns
    """

    format: Literal[2]
    title: str
    experiment: Experiment
    experiment_digest: str
    engine: str
    seconds: float
    meta: dict[str, JsonValue]
    columns: dict[str, tuple[float | None, ...]]
    film: Film
    labels: tuple[tuple[int, tuple[int, ...]], ...]
    notes: tuple[tuple[int, dict[str, JsonValue]], ...]
    verdicts: tuple[tuple[int, dict[str, JsonValue]], ...]
    views: tuple[tuple[int, dict[str, str]], ...]
    messages: tuple[str, ...]
    rule: str
    result: dict[str, JsonValue]

    @property
    def end(self) -> AttackEnd:
        """What the attack came to."""
        return AttackEnd.model_validate({**self.result, "verdict": {**self._verdict, "rule": self.rule}})

    @property
    def word(self) -> str:
        """What was seen of the private pictures, as spec/words.py says it."""
        return str(self._verdict["word"])

    @property
    def _verdict(self) -> dict[str, JsonValue]:
        verdict = self.result["verdict"]
        assert isinstance(verdict, dict)
        return verdict

    @property
    def grey(self) -> float:
        """PSNR in dB of a plain grey picture, which knows nothing."""
        return grey_of(self.meta_event)

    @property
    def meta_event(self) -> MetaEvent:
        """What does not change."""
        return MetaEvent.model_validate({**self.meta, "private": ""})


def grey_of(meta: MetaEvent) -> float:
    """What a plain grey picture scores in dB."""
    found = meta.judging.baselines["grey"].psnr
    assert found is not None
    return found


class Played(NamedTuple):
    """A finished run as the store has it.

    experiment  resolved
    events      MetaEvent, NoteEvents and FrameEvents in the order in which they came
    pictures    the contact sheet of every frame that still has one, by its number, and that of the private pictures
    share       of the time in which it ran, how much it worked
    """

    experiment: Experiment
    events: tuple[RunEvent, ...]
    end: AttackEnd
    pictures: dict[int, bytes]
    private: bytes
    share: float


def record(title: str, run: Played, *, engine: str, pictures: int = 0) -> tuple[RunRecording, bytes]:
    """A recording and its film of so many `pictures`; `title` says what was done, `engine` is the version of the code that played."""
    experiment, events, end, sheets, private, share = run
    meta = next(event for event in events if isinstance(event, MetaEvent))
    frames = [event for event in events if isinstance(event, FrameEvent)]
    place_of = {frame.seq: place for place, frame in enumerate(frames)}
    assert end.answer is not None
    answer = place_of[end.answer]
    most = pictures or (FRAMES_OF_ONE if meta.truth.batch == 1 else FRAMES_OF_MANY)
    with_picture = [place + 1 for place, frame in enumerate(frames) if frame.seq in sheets and place < answer]
    places = [*(place - 1 for place in log_spaced(with_picture, most - 1)), answer]
    rows = [tiles(private, meta.truth.batch), *(tiles(sheets[frames[place].seq], meta.truth.batch) for place in places)]
    verdicts = [frame.verdict.model_dump(include={"word", "why"}) if frame.verdict else None for frame in frames]
    assert end.verdict is not None
    made = RunRecording(
        format=2,
        title=title,
        experiment=experiment,
        experiment_digest=experiment.digest(),
        engine=engine,
        seconds=round((end.seconds or 0) * share, 1),
        meta=meta.model_dump(mode="json", exclude=NOT_IN_META),
        columns=_columns(frames, share),
        film=Film(side=meta.truth.size, batch=meta.truth.batch, places=tuple(places)),
        labels=tuple(_changes(frame.labels for frame in frames)),
        notes=tuple(_changes(frame.note or None for frame in frames)),
        verdicts=tuple(_changes(verdicts, by="word")),
        views=tuple((place, frame.views) for place, frame in enumerate(frames) if frame.views),
        messages=tuple(event.text for event in events if isinstance(event, NoteEvent)),
        rule=end.verdict.rule,
        result=end.model_copy(update={"answer": answer}).model_dump(mode="json", exclude=NOT_IN_RESULT),
    )
    return made, film(rows)


def _columns(frames: Sequence[FrameEvent], share: float) -> dict[str, tuple[float | None, ...]]:
    names = [name for name, about in frames[0].scores.__class__.model_fields.items() if "tuple" not in str(about.annotation)]
    columns: dict[str, tuple[float | None, ...]] = {
        "step": tuple(frame.step for frame in frames),
        "seconds": tuple(round(frame.seconds * share, 2) for frame in frames),
        "loss": tuple(kept(frame.loss) for frame in frames),
    }
    scores = {name: tuple(kept(getattr(frame.scores, name)) for frame in frames) for name in names}
    return columns | {name: values for name, values in scores.items() if any(value is not None for value in values)}


def short(value: float) -> float:
    """The number as it is kept on the way, and drawn."""
    return float(f"{value:.{DIGITS}g}")


def kept(value: float | None) -> float | None:
    """The same where there is one."""
    return None if value is None else short(value)


def _changes(values: Iterable[Any], *, by: str = "") -> Iterator[tuple[int, Any]]:
    """Each value that differs from the one before, with its place; of several, where their entry `by` does. None is no value."""
    last = None
    for place, value in enumerate(values):
        told = value[by] if by and value else value
        if value is not None and told != last:
            last = told
            yield place, value


def film(rows: Sequence[Pixels]) -> bytes:
    """Rows of pictures uint8 (B, H, W, C), the private ones first and the answer last, as one lossless WebP."""
    kept = [row & COARSE if 0 < number < len(rows) - 1 and len(row) > 1 else row for number, row in enumerate(rows)]
    return webp(np.concatenate([np.concatenate([*row], axis=1) for row in kept]))


def webp(picture: Pixels) -> bytes:
    """A picture uint8 (H, W, 1 or 3) as lossless WebP."""
    file = BytesIO()
    Image.fromarray(np.repeat(picture, 3, axis=2) if picture.shape[2] == 1 else picture).save(
        file, "WEBP", lossless=True, quality=100, method=6
    )
    return file.getvalue()


def rows_of(data: bytes, side: int, batch: int) -> list[Pixels]:
    """The rows of a film, uint8 (B, side, side, 3) each. Raises SpecError when it does not hold such pictures."""
    with Image.open(BytesIO(data), formats=("WEBP",)) as image:
        whole = np.array(image.convert("RGB"))
    if whole.shape[0] % side or whole.shape[1] != batch * side:
        raise SpecError(f"This film is {whole.shape[1]} pixels wide, expected are {batch} pictures of {side}. Record it again.")
    return [*whole.reshape(-1, side, batch, side, 3).transpose(0, 2, 1, 3, 4)]


def write(folder: Path, name: str, recording: EventPart | Base, pictures: bytes) -> None:
    """Put both files into the folder: the film first, so that who finds the data finds its pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.webp").write_bytes(pictures)
    fresh = folder / f"{name}.tmp"
    fresh.write_text(json.dumps(recording.model_dump(mode="json"), separators=(",", ":")) + "\n")
    fresh.replace(folder / f"{name}.json")


@cache
def load(name: str) -> RunRecording:
    """The recorded run of that name. Raises SpecError when it is missing or damaged."""
    return read(FOLDER, name, RunRecording, "a recorded run")


def read(folder: Path, name: str, kind: type[Recording], called: str) -> Recording:
    """What was written there. Raises SpecError when it is missing, or damaged: then it says where, without repeating all of it."""
    file = folder / f"{name}.json"
    if not file.exists():
        raise SpecError(f"{name} has not been recorded: run `make record ARGS='--only {name}'`.")
    try:
        return parse_as(file.read_bytes(), kind, called, most=math.inf)
    except SpecError as error:
        raise SpecError(f"{file.name}: {str(error).partition('; given was {')[0]}") from None


def pictures_of(name: str) -> list[Pixels]:
    """The rows of the film of a recorded run: the private pictures, the kept frames, the answer last."""
    about = load(name).film
    return rows_of((FOLDER / f"{name}.webp").read_bytes(), about.side, about.batch)
