"""Plays what lessons and Lab show, through store and worker as a page would, and writes it into assets: `python -m leakage record`."""

import logging
import multiprocessing
import os
import pickle
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TypeVar

import torch

from leakage.learn import grids, recordings
from leakage.learn.expectations import contradictions
from leakage.learn.lessons import lessons
from leakage.learn.planned import plan, planned_grid, planned_run
from leakage.learn.recordings import Played, RunRecording
from leakage.learn.restored import OWNER
from leakage.runs.endings import why_inapplicable
from leakage.runs.events import AttackEnd, FrameEvent, MetaEvent, NoteEvent, RunEvent
from leakage.runs.service import Service
from leakage.runs.store import Run, Store
from leakage.settings import settings
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, SpecError, parse
from leakage.workers import plugin_catalog
from leakage.workers.worker import perform

KINDS = {kind.kind_name(): kind for kind in (MetaEvent, NoteEvent, FrameEvent)}
CLOSE, EXACT = 2.0, 0.01  # dB between a recording and the same played again: of a search, and of a closed form
Name = TypeVar("Name")
log = logging.getLogger(__name__)


# ---------------------------------------------------------------- one run


def perform_in(store: Store, experiment: Experiment) -> Run:
    """Submit an experiment to a store of its own and perform it, as dispatcher and worker would. Raises SpecError with what went wrong."""
    run = Service(store, settings()).submit(experiment, OWNER)
    claimed = store.claim(OWNER)
    assert claimed is not None
    perform(store, claimed, torch.device("cpu"))
    finished = store.get(run)
    assert finished is not None
    if finished.status != "done" or finished.result is None:
        raise SpecError(finished.message)
    if why := why_inapplicable(ended.ending if (ended := finished.outcome(AttackEnd)) else None):
        raise SpecError(f"There is nothing to record of an attack that does not apply: {why}")
    return finished


def play_whole(experiment: Experiment) -> Played:
    """Compute a run of this experiment and return it with its events and pictures. Raises SpecError."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store.db")
        began, worked = time.perf_counter(), time.process_time()
        run = perform_in(store, experiment)
        share = min(1.0, (time.process_time() - worked) / (time.perf_counter() - began))
        told: list[RunEvent] = [KINDS[event["kind"]].model_validate(event) for event in store.events([run.id], 0) if event["kind"] in KINDS]
        end = run.outcome(AttackEnd)
        assert end is not None
        numbers = [event.seq for event in told if isinstance(event, FrameEvent)]
        pictures = {seq: png for seq in numbers if (png := store.frame(run.id, seq))}
        return Played(parse(run.experiment), tuple(told), end, pictures, store.files(run.id)["private.png"], share)


def pool(jobs: int) -> ProcessPoolExecutor:
    """Return a pool of so many processes with one core each: a recording takes the same steps and about the same seconds on any machine."""
    return ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_take_one_core)


def _take_one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[os.getpid() % len(cores)]})


def play_all(workers: Executor, wanted: dict[Name, Experiment]) -> Iterator[tuple[Name, Played | SpecError]]:
    """Yield each run when it is done, or the SpecError why it could not be computed."""
    waiting = {workers.submit(play_whole, experiment): name for name, experiment in wanted.items()}
    for future in as_completed(waiting):
        try:
            yield waiting[future], future.result()
        except SpecError as error:
            yield waiting[future], error


# ---------------------------------------------------------------- all of them


def record(only: Sequence[str], *, check: bool, jobs: int) -> None:
    """Record what is named, or all that is missing or asks something else today; with `check` play it again and compare.

    Raises SpecError with a sentence for each that was refused, or that ends otherwise than its recording.
    """
    known = plugin_catalog.write(settings().catalog)
    everything = [*plan().runs, *plan().grids]
    unknown = [name for name in only if name not in everything]
    if unknown:
        raise SpecError(f"There is nothing to record by the name of {unknown[0]!r}; expected are {', '.join(everything)}.")
    names = list(only) or [name for name in everything if check or not up_to_date(name, known)]
    wrong = list[str]()
    with pool(jobs) as workers:
        runs = {name: planned_run(name).experiment for name in names if name in plan().runs}
        for name, run in play_all(workers, runs):
            if isinstance(run, SpecError):
                wrong.append(f"{name}: {run}")
            else:
                wrong += compare(name, run) if check else keep_run(name, run, known.version)
        for name in (name for name in names if name in plan().grids):
            wrong += compare_grid(workers, name) if check else keep_grid(workers, name, known.version)
    if wrong:
        raise SpecError("\n".join(wrong))
    older = [name for name, run in existing_runs().items() if run.engine != known.version]
    if older and not check:
        log.info("Recorded by another version of the code: %s. --check plays them again and compares.", ", ".join(older))


def existing_runs() -> dict[str, RunRecording]:
    """Return the runs that have a recording."""
    return {name: recordings.load(name) for name in plan().runs if (recordings.FOLDER / f"{name}.json").exists()}


def up_to_date(name: str, known: Catalog) -> bool:
    """Return whether a run or a grid has a recording of the experiments that it asks for today."""
    try:
        if name in plan().runs:
            return recordings.load(name).experiment_digest == planned_run(name).experiment.resolve(known).digest()
        grid = planned_grid(name)
        asked = [grid.experiment(choice).resolve(known).digest() for choice in grid.cells()]
        return [cell.experiment_digest for cell in grids.load_grid(name).cells] == asked
    except (SpecError, OSError):
        return False


def keep_run(name: str, run: Played, engine: str) -> list[str]:
    """Write a recording, unless it contradicts its lesson: then the sentences that say how."""
    planned = planned_run(name)
    made, film = recordings.record(planned.title, run, engine=engine, pictures=planned.frames)
    others = {other: run for other, run in existing_runs().items() if other != name}
    against = set(contradictions(lessons(), others))
    broken = [words for words in contradictions(lessons(), {**others, name: made}) if words not in against]
    log.info(
        "%s, %s: %.1f dB, %s, %.0f s%s.", name, made.title, run.end.scores.psnr, made.word, made.seconds, " (refused)" if broken else ""
    )
    if not broken:
        recordings.write(recordings.FOLDER, name, made, film)
        recordings.load.cache_clear()
    return [f"{name}: {words}" for words in broken]


def keep_grid(workers: Executor, name: str, engine: str) -> list[str]:
    """Write a grid when all its cells are there; cells of an interrupted recording are taken from LEAKAGE_HOME."""
    grid, kept = planned_grid(name), settings().home / "recording"
    kept.mkdir(parents=True, exist_ok=True)
    files = {choice: kept / f"{grid.experiment(choice).digest()}-{engine}.cell" for choice in grid.cells()}
    missing = {choice: grid.experiment(choice) for choice, file in files.items() if not file.exists()}
    for choice, run in play_all(workers, missing):
        if isinstance(run, SpecError):
            return [f"{name}, cell {choice}: {run}"]
        fresh = files[choice].with_suffix(".tmp")
        fresh.write_bytes(pickle.dumps(grids.cell_of(choice, run)))
        fresh.replace(files[choice])
    cells = [pickle.loads(file.read_bytes()).at(choice) for choice, file in files.items()]  # other grids ask the same, elsewhere
    made, film = grids.record_grid(grid, cells, engine=engine)
    recordings.write(grids.FOLDER, name, made, film)
    log.info("%s, %s: %d cells, %.0f s.", name, made.title, len(made.cells), sum(cell.seconds for cell in made.cells))
    return []


# ---------------------------------------------------------------- played again


def compare(name: str, run: Played) -> list[str]:
    """List where a run ends otherwise than its recording."""
    recording = recordings.load(name)
    return differences(name, _close(recording), (_psnr(recording.end), recording.word), (_psnr(run.end), _word_of(run)))


def compare_grid(workers: Executor, name: str) -> list[str]:
    """List where the cells of a grid end otherwise than their recordings."""
    grid, recorded = planned_grid(name), {cell.choice: cell for cell in grids.load_grid(name).cells}
    wrong = list[str]()
    for choice, run in play_all(workers, {choice: grid.experiment(choice) for choice in grid.cells()}):
        if isinstance(run, SpecError):
            wrong.append(f"{name}, cell {choice}: {run}")
        else:
            cell = recorded[choice]
            wrong += differences(f"{name}, cell {choice}", CLOSE, (cell.scores["psnr"] or 0, cell.word), (_psnr(run.end), _word_of(run)))
    return wrong


def differences(name: str, close: float, recorded: tuple[float, str], found: tuple[float, str]) -> list[str]:
    """List a sentence if the PSNR differs by more than `close` dB, or if the word of the verdict differs."""
    if abs(recorded[0] - found[0]) <= close and recorded[1] == found[1]:
        log.info("%s: as recorded.", name)
        return []
    return [f"{name}: recorded were {recorded[0]:.2f} dB, {recorded[1]}; today it is {found[0]:.2f} dB, {found[1]}"]


def _close(recording: RunRecording) -> float:
    return EXACT if recording.meta_event.method.steps is None else CLOSE


def _psnr(end: AttackEnd) -> float:
    return end.scores.psnr or 0


def _word_of(run: Played) -> str:
    assert run.end.verdict is not None
    return run.end.verdict.word
