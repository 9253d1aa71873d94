"""The strips of runs of the store: of one attack, or of several with a row each."""

from collections.abc import Sequence

from leakage.data.images import Pixels, tiles
from leakage.results.captions import caption, headline
from leakage.results.comparison import Row, rows
from leakage.results.comparison_report import outcome_words, question
from leakage.results.exports import Download, answer_of
from leakage.results.lettering import decibels
from leakage.results.strip import Strip, StripCell, StripRow, encode
from leakage.results.strip_steps import AskedSteps, choose
from leakage.runs.events import AttackEnd, FrameEvent
from leakage.runs.store import Run, Store
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment

EVERY = AskedSteps()
KINDS = ("png", "webp")
GONE = "The pictures of its steps are gone: they made room for newer runs. Only its answer is kept."
NOT_KEPT = "not kept"
UNSOLVED = "No reconstruction: {}"


def make(store: Store, ids: Sequence[str], kind: str, known: Catalog, asked: AskedSteps = EVERY) -> Download | None:
    """Return the strip of the attacks among these runs as a file, "png" or "webp"; None for another kind, and without a reconstruction."""
    strip = describe(store, ids, known, asked) if kind in KINDS else None
    return Download(f"image/{kind}", encode(strip, kind)) if strip else None


def describe(store: Store, ids: Sequence[str], known: Catalog, asked: AskedSteps = EVERY) -> Strip | None:
    """Return the content of the strip of the attacks among these runs, each once; None if none of them has a reconstruction.

    Args:
        store: the runs.
        ids: the ids of the runs, in the order of the rows.
        known: the plug-ins.
        asked: the steps to show.
    """
    runs = [run for id in dict.fromkeys(ids) if (run := store.get(id)) and run.kind == "attack"]
    films = [_Film(store, run) for run in runs]
    return _strip(films, rows(store, runs, known), known, asked) if any(film.answer for film in films) else None


class _Film:
    """The pictures of an attack that the store has."""

    def __init__(self, store: Store, run: Run) -> None:
        self.store, self.run, self.experiment = store, run, run.experiment_as(Experiment)
        frames, seq = store.frames(run.id), answer_of(store, run)
        self.frames = len(frames)
        self.kept = {frame.step: frame for frame in frames if frame.picture}  # the last frame of each step
        self.answer = next((frame for frame in frames if frame.seq == seq and frame.picture), None)
        if self.answer:
            self.kept[self.answer.step] = self.answer
        self.private = self.pictures(store.files(run.id, "private.png").get("private.png"))

    @property
    def steps(self) -> list[int]:
        """The steps with a picture, without the step of the answer."""
        return sorted(step for step, frame in self.kept.items() if frame is not self.answer)

    def show(self, wanted: int, step: int | None) -> StripCell | str:
        """Return the result at a step; for no step the words in its place, which are empty if the attack had ended before `wanted`."""
        cell = None if step is None else self.cell(self.kept[step])
        return cell or (NOT_KEPT if self.steps and self.answer and wanted < self.answer.step else "")

    def pictures(self, sheet: bytes | None) -> Pixels | None:
        """Return the pictures of a contact sheet (PNG), uint8 (B, H, W, C); None without a sheet."""
        return None if sheet is None else tiles(sheet, len(self.experiment.pictures))

    def cell(self, frame: FrameEvent | None) -> StripCell | None:
        """Return what a strip shows of a frame; None if there is no frame, or if the store has removed it meanwhile."""
        pictures = self.pictures(self.store.frame(self.run.id, frame.seq)) if frame else None
        if frame is None or pictures is None:
            return None
        end = self.run.outcome(AttackEnd) if frame is self.answer else None
        return StripCell(pictures, frame.step, (end.scores if end else frame.scores).psnr)


def _strip(films: Sequence[_Film], results: Sequence[Row], known: Catalog, asked: AskedSteps) -> Strip:
    """Return the content of a strip, with a row for each film and its result."""
    experiments = [film.experiment for film in films]
    columns = choose([film.steps for film in films], [film.answer.step if film.answer else None for film in films], asked.steps)
    missing, alone = [_missing(film, result) for film, result in zip(films, results, strict=True)], len(films) == 1
    return Strip(
        title="" if alone else question(experiments, known),
        rows=[
            StripRow(
                name=headline(film.experiment, known) if alone else result.name,
                outcome=outcome_words(result),
                word=result.verdict,
                private=film.private,
                cells=[film.show(step, column[row]) for step, column in zip(columns.wanted, columns.steps, strict=True)],
                answer=film.cell(film.answer),
                finished=film.run.outcome(AttackEnd) is not None,
                missing=missing[row],
            )
            for row, (film, result) in enumerate(zip(films, results, strict=True))
        ],
        notes=[*asked.notes, *columns.notes, _measure(results, several=any(len(each.pictures) > 1 for each in experiments))],
        settings=_shared([caption(experiment, known) for experiment in experiments]),
    )


def _missing(film: _Film, result: Row) -> str:
    """Return why a row has no pictures between the private ones and the answer; empty if it has, or if there never were any."""
    if film.answer is None:
        return UNSOLVED.format(result.ended)
    return GONE if film.run.thinned and not film.steps and film.frames > 1 else ""


def _measure(results: Sequence[Row], *, several: bool) -> str:
    """Say what the numbers below the pictures are, and what a plain grey picture has, if it has the same in all rows."""
    greys = {decibels(result.grey.get("psnr")) for result in results if "psnr" in result.grey}
    mean, grey = (
        ", for several pictures their mean" if several else "",
        f"; a plain grey picture has {min(greys)}" if len(greys) == 1 else "",
    )
    return f"Numbers in dB: closeness to the private picture (PSNR){mean}{grey}."


def _shared(captions: Sequence[str]) -> str:
    """Return the parts that all captions have, in the order of the first."""
    return " · ".join(part for part in captions[0].split(" · ") if all(part in other.split(" · ") for other in captions))
