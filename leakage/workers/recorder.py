"""Plays what the lessons show, through store and worker as a page would, and writes it into assets/lessons: `python -m leakage record`."""

import logging
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import torch

from leakage.learn import recordings
from leakage.learn.plan import planned_run
from leakage.learn.recordings import Played
from leakage.runs.events import AttackEnd, FrameEvent, MetaEvent, NoteEvent, RunEvent
from leakage.runs.service import Service
from leakage.runs.store import Run, Store
from leakage.settings import settings
from leakage.spec.experiment import Experiment, SpecError, parse
from leakage.workers import plugin_catalog
from leakage.workers.worker import perform

KINDS = {kind.kind_name(): kind for kind in (MetaEvent, NoteEvent, FrameEvent)}
OWNER = "record"
log = logging.getLogger(__name__)


def play_in_store(experiment: Experiment, store: Store) -> Run:
    """Submit an experiment to a store of its own and perform it, as dispatcher and worker would. Raises SpecError with what went wrong."""
    if not settings().catalog.exists():
        plugin_catalog.write(settings().catalog)
    run = Service(store, settings()).submit(experiment, OWNER)
    claimed = store.claim(OWNER)
    assert claimed is not None
    perform(store, claimed, torch.device("cpu"))
    finished = store.get(run)
    assert finished is not None
    if finished.status != "done" or finished.result is None:
        raise SpecError(finished.message)
    return finished


def played(experiment: Experiment) -> Played:
    """All that a run of this experiment tells, on one core."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store.db")
        began, worked = time.perf_counter(), time.process_time()
        run = play_in_store(experiment, store)
        share = min(1.0, (time.process_time() - worked) / (time.perf_counter() - began))
        told: list[RunEvent] = [KINDS[event["kind"]].model_validate(event) for event in store.events([run.id], 0) if event["kind"] in KINDS]
        end = run.outcome(AttackEnd)
        assert end is not None
        numbers = [event.seq for event in told if isinstance(event, FrameEvent)]
        pictures = {seq: png for seq in numbers if (png := store.frame(run.id, seq))}
        return Played(parse(run.experiment), tuple(told), end, pictures, store.files(run.id)["private.png"], share)


def record_runs(names: Sequence[str], *, jobs: int) -> list[str]:
    """Record these runs; answers a sentence for each that was refused."""
    engine, refused = plugin_catalog.describe().version, list[str]()
    with pool(jobs) as workers:
        for name, outcome in finished(workers, {name: planned_run(name).experiment for name in names}):
            if isinstance(outcome, str):
                refused.append(f"{name}: {outcome}")
                continue
            made, film = recordings.record(planned_run(name).title, outcome, engine=engine)
            recordings.write(recordings.FOLDER, name, made, film)
            log.info("%s, %s: %.1f dB, %s, %.0f s.", name, made.title, made.end.scores.psnr, made.word, made.seconds)
    return refused


def finished(workers: Executor, wanted: dict[Any, Experiment]) -> Iterator[tuple[Any, Played | str]]:
    """Each that is done, in the order in which they end; or why it could not be played."""
    waiting = {workers.submit(played, experiment): name for name, experiment in wanted.items()}
    for future in as_completed(waiting):
        try:
            yield waiting[future], future.result()
        except SpecError as error:
            yield waiting[future], str(error)


def pool(jobs: int) -> ProcessPoolExecutor:
    """So many processes with one core each: a recording takes the same steps and about the same seconds wherever it is made."""
    return ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_take_one_core)


def _take_one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[os.getpid() % len(cores)]})
