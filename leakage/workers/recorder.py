"""Records the runs that lessons and the Lab show, computed through store and worker, into assets: `python -m leakage record`."""

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

from leakage.learn import grids, recorded_refusals, recordings
from leakage.learn.expectations import contradictions
from leakage.learn.lessons import lessons
from leakage.learn.planned import plan, planned_grid, planned_run
from leakage.learn.recorded_refusals import RefusalRecording, load_refusal
from leakage.learn.recordings import Played, RunRecording
from leakage.learn.restored import OWNER
from leakage.runs.endings import why_inapplicable, why_refused
from leakage.runs.event_parts import Ending
from leakage.runs.events import AttackEnd, FrameEvent, MetaEvent, NoteEvent, RunEvent
from leakage.runs.service import Service
from leakage.runs.store import Run, Store
from leakage.settings import AUTOGRAD, settings
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, SpecError, parse
from leakage.workers import plugin_catalog
from leakage.workers.worker import perform

KINDS = {kind.kind_name(): kind for kind in (MetaEvent, NoteEvent, FrameEvent)}
CLOSE, EXACT = 2.0, 0.01  # dB by which a run may differ from its recording: of a search, and of a closed form
Name = TypeVar("Name")
log = logging.getLogger(__name__)


# ---------------------------------------------------------------- one run


def perform_in(store: Store, experiment: Experiment) -> Run:
    """Submit an experiment to an empty store, compute it as a worker would, and return the finished run. Raises SpecError if it fails."""
    run = Service(store, settings()).submit(experiment, OWNER)
    claimed = store.claim(OWNER)
    assert claimed is not None
    perform(store, claimed, torch.device("cpu"))
    finished = store.get(run)
    assert finished is not None
    if finished.status != "done" or finished.result is None:
        raise SpecError(finished.message)
    ended = ending.ending if (ending := finished.outcome(AttackEnd)) else None
    if why := why_inapplicable(ended):
        raise SpecError(f"There is nothing to record of an attack that does not apply: {why}")
    return finished


def play_whole(experiment: Experiment) -> Played:
    """Compute an experiment and return the run with its events and pictures. Raises SpecError if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store.db")
        began, worked = time.perf_counter(), time.process_time()
        run = perform_in(store, experiment)
        busy = min(1.0, (time.process_time() - worked) / (time.perf_counter() - began))
        stored = [event for event in store.events([run.id], 0) if event["kind"] in KINDS]
        events: list[RunEvent] = [KINDS[event["kind"]].model_validate(event) for event in stored]
        end = run.outcome(AttackEnd)
        assert end is not None
        if why := why_refused(end.ending):
            raise SpecError(f"The phone sent nothing, so there are no pictures to record: {why} Plan this run under `refused`.")
        numbers = [event.seq for event in events if isinstance(event, FrameEvent)]
        pictures = {seq: png for seq in numbers if (png := store.frame(run.id, seq))}
        return Played(parse(run.experiment), tuple(events), end, pictures, store.files(run.id)["private.png"], busy)


def play_refused(experiment: Experiment) -> Ending:
    """Compute an experiment and return the refusal with which it ends. Raises SpecError if it fails, or if no phone refuses."""
    with tempfile.TemporaryDirectory() as folder:
        end = perform_in(Store(Path(folder) / "store.db"), experiment).outcome(AttackEnd)
    if end is None or end.ending is None or not why_refused(end.ending):
        raise SpecError("No phone refused this run. Plan it under `runs`.")
    return end.ending


def pool(jobs: int) -> ProcessPoolExecutor:
    """Return a pool of `jobs` processes with one core each and no formulas, so that a recording takes the same steps on any machine."""
    return ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_settle)


def _settle() -> None:
    os.environ["LEAKAGE_STEP"] = AUTOGRAD
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[os.getpid() % len(cores)]})


def play_all(workers: Executor, experiments: dict[Name, Experiment]) -> Iterator[tuple[Name, Played | SpecError]]:
    """Compute experiments, and yield the name of each with its run, or with the error if it failed, as soon as it is done."""
    waiting = {workers.submit(play_whole, experiment): name for name, experiment in experiments.items()}
    for future in as_completed(waiting):
        try:
            yield waiting[future], future.result()
        except SpecError as error:
            yield waiting[future], error


# ---------------------------------------------------------------- all of them


def record(only: Sequence[str], *, check: bool, jobs: int) -> None:
    """Record the runs and grids (all what-ifs of a lesson) that lessons and pages show, or compare them with their recordings.

    Args:
        only: the names of runs, refused runs and grids; empty: all (with `check`), or all without a recording of today's experiment.
        check: whether the runs are computed again and compared, rather than recorded.
        jobs: the number of processes.

    Raises:
        SpecError: a name is unknown, a recording was refused, or a run differs from its recording; with a sentence for each.
    """
    known = plugin_catalog.write(settings().catalog)
    everything = [*plan().runs, *plan().refused, *plan().grids]
    unknown = [name for name in only if name not in everything]
    if unknown:
        raise SpecError(f"There is nothing to record by the name of {unknown[0]!r}; expected are {', '.join(everything)}.")
    names = list(only) or [name for name in everything if check or not up_to_date(name, known)]
    errors = list[str]()
    with pool(jobs) as workers:
        runs = {name: planned_run(name).experiment for name in names if name in plan().runs}
        for name, run in play_all(workers, runs):
            if isinstance(run, SpecError):
                errors.append(f"{name}: {run}")
            else:
                errors += compare(name, run) if check else keep_run(name, run, known.version)
        for name in (name for name in names if name in plan().refused):
            try:
                ending = workers.submit(play_refused, plan().refused[name].experiment).result()
            except SpecError as error:
                errors.append(f"{name}: {error}")
            else:
                if check:
                    errors += compare_refusal(name, ending)
                else:
                    keep_refusal(name, ending, known)
        for name in (name for name in names if name in plan().grids):
            errors += compare_grid(workers, name) if check else keep_grid(workers, name, known.version)
    if errors:
        raise SpecError("\n".join(errors))
    older = [name for name, run in existing_runs().items() if run.engine != known.version]
    if older and not check:
        log.info("Recorded by another version of the code: %s. --check plays them again and compares.", ", ".join(older))


def existing_runs() -> dict[str, RunRecording]:
    """Return the recordings of runs that exist, by name."""
    return {name: recordings.load(name) for name in plan().runs if (recordings.FOLDER / f"{name}.json").exists()}


def up_to_date(name: str, known: Catalog) -> bool:
    """Return whether the run or grid of this name has a recording, and of the same experiments that are planned today."""
    try:
        if name in plan().runs:
            return recordings.load(name).experiment_digest == planned_run(name).experiment.resolve(known).digest()
        if name in plan().refused:
            return load_refusal(name).experiment_digest == plan().refused[name].experiment.resolve(known).digest()
        grid = planned_grid(name)
        planned = [grid.experiment(choice).resolve(known).digest() for choice in grid.cells()]
        return [cell.experiment_digest for cell in grids.load_grid(name).cells] == planned
    except (SpecError, OSError):
        return False


def keep_run(name: str, run: Played, engine: str) -> list[str]:
    """Write the recording of a run, unless a lesson says something else of it; return a sentence for each such contradiction."""
    planned = planned_run(name)
    recording, film = recordings.record(planned.title, run, engine=engine, pictures=planned.frames, points=planned.points)
    others = {other: run for other, run in existing_runs().items() if other != name}
    earlier = set(contradictions(lessons(), others))
    new = [words for words in contradictions(lessons(), {**others, name: recording}) if words not in earlier]
    facts = (name, recording.title, run.end.scores.psnr, recording.word, recording.seconds, " (refused)" if new else "")
    log.info("%s, %s: %.1f dB, %s, %.0f s%s.", *facts)
    if not new:
        recordings.write(recordings.FOLDER, name, recording, film)
        recordings.load.cache_clear()
    return [f"{name}: {words}" for words in new]


def keep_refusal(name: str, ending: Ending, known: Catalog) -> None:
    """Write the recording of a run that a phone refused."""
    planned = plan().refused[name]
    asked = planned.experiment.resolve(known)
    written = RefusalRecording(title=planned.title, experiment=asked, experiment_digest=asked.digest(), engine=known.version, ending=ending)
    log.info("%s, %s: %s", name, planned.title, ending.words)
    recordings.write(recorded_refusals.FOLDER, name, written)
    load_refusal.cache_clear()


def keep_grid(workers: Executor, name: str, engine: str) -> list[str]:
    """Compute the cells of a grid (an experiment for each what-if of a lesson) and write its recording; return a sentence if a cell fails.

    Each computed cell is saved in LEAKAGE_HOME, so that an interrupted recording can go on.
    """
    grid, folder = planned_grid(name), settings().home / "recording"
    folder.mkdir(parents=True, exist_ok=True)
    files = {choice: folder / f"{grid.experiment(choice).digest()}-{engine}.cell" for choice in grid.cells()}
    missing = {choice: grid.experiment(choice) for choice, file in files.items() if not file.exists()}
    for choice, run in play_all(workers, missing):
        if isinstance(run, SpecError):
            return [f"{name}, cell {choice}: {run}"]
        fresh = files[choice].with_suffix(".tmp")
        fresh.write_bytes(pickle.dumps(grids.cell_of(choice, run)))
        fresh.replace(files[choice])
    cells = [pickle.loads(file.read_bytes()).at(choice) for choice, file in files.items()]  # another grid may have the experiment elsewhere
    recording, film = grids.record_grid(grid, cells, engine=engine)
    recordings.write(grids.FOLDER, name, recording, film)
    log.info("%s, %s: %d cells, %.0f s.", name, recording.title, len(recording.cells), sum(cell.seconds for cell in recording.cells))
    return []


# ---------------------------------------------------------------- played again


def compare(name: str, run: Played) -> list[str]:
    """List the differences between a run's result and its recording, as sentences."""
    recording = recordings.load(name)
    return differences(name, _close(recording), (_psnr(recording.end), recording.word), (_psnr(run.end), _word_of(run)))


def compare_refusal(name: str, ending: Ending) -> list[str]:
    """List a sentence if a phone refused a run in other words, or with other numbers, than recorded; empty otherwise."""
    recorded = load_refusal(name).ending
    return [] if recorded == ending else [f"{name}: recorded was {recorded.words!r}; today it is {ending.words!r}"]


def compare_grid(workers: Executor, name: str) -> list[str]:
    """Compute the cells of a grid again and list the differences from its recording, as sentences."""
    grid, recorded = planned_grid(name), {cell.choice: cell for cell in grids.load_grid(name).cells}
    errors = list[str]()
    for choice, run in play_all(workers, {choice: grid.experiment(choice) for choice in grid.cells()}):
        if isinstance(run, SpecError):
            errors.append(f"{name}, cell {choice}: {run}")
        else:
            cell = recorded[choice]
            errors += differences(f"{name}, cell {choice}", CLOSE, (cell.scores["psnr"] or 0, cell.word), (_psnr(run.end), _word_of(run)))
    return errors


def differences(name: str, close: float, recorded: tuple[float, str], today: tuple[float, str]) -> list[str]:
    """List a sentence if the PSNR differs by more than `close` dB, or if the word of the verdict differs; empty otherwise.

    Args:
        name: the name of the run.
        close: the allowed difference in dB.
        recorded: PSNR (dB) and word of the verdict in the recording.
        today: the same of the run that was computed now.
    """
    if abs(recorded[0] - today[0]) <= close and recorded[1] == today[1]:
        log.info("%s: as recorded.", name)
        return []
    return [f"{name}: recorded were {recorded[0]:.2f} dB, {recorded[1]}; today it is {today[0]:.2f} dB, {today[1]}"]


def _close(recording: RunRecording) -> float:
    return EXACT if recording.meta_event.method.steps is None else CLOSE


def _psnr(end: AttackEnd) -> float:
    return end.scores.psnr or 0


def _word_of(run: Played) -> str:
    assert run.end.verdict is not None
    return run.end.verdict.word
