"""A step of a search on a GPU: by autograd, by formula, by formula as a CUDA graph, and an iteration of the package `breaching`."""

import statistics
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from _graphs import WARM, WAYS, search, wait
from loop import experiment, run_peer

from leakage.engine.core import Snapshot
from leakage.workers.adapter import prepare

CASES = (("lenet", 1), ("lenet", 8), ("convnet", 1), ("resnet", 1))  # model, starts
WINDOWS = 5  # of each way, in turn
AGREEMENT = 1e-3  # largest relative difference of the first distances


def step_times(device: torch.device, peer: Path | None, steps: int) -> list[dict[str, Any]]:
    """Measure the milliseconds of a step, wall time, the ways in turn: the medians of WINDOWS windows of so many steps.

    Args:
        device: where to compute.
        peer: the Python of the peer's environment; None: the peer is left out.
        steps: in a window, and of the peer's run.
    """
    rows = []
    for model, starts in CASES:
        chosen = experiment(model, 24_000, starts)
        scene = prepare(chosen, device=device)
        runs = {way: search(chosen, scene, way) for way in WAYS}
        snapshots = {way: next(run) for way, run in runs.items()}
        assert "derivatives by" in snapshots["graph"].note, "the recorded step and the formula disagree"
        first = {way: float(snapshot.loss) for way, snapshot in snapshots.items()}
        if any(abs(loss - first["autograd"]) > AGREEMENT * first["autograd"] for loss in first.values()):
            raise SystemExit(f"{model}: the ways of computing a step disagree: the first distances are {first}.")
        for run in runs.values():
            list(islice(run, WARM))
        took: dict[str, list[float]] = {way: [] for way in runs}
        for _ in range(WINDOWS):
            for way, run in runs.items():
                took[way].append(time_steps(run, steps, device))
        row = {"model": model, "starts": starts} | {way: statistics.median(times) for way, times in took.items()}
        row["peer"] = None
        if peer and starts == 1:
            on_cpu = prepare(experiment(model, steps), device=torch.device("cpu"))  # its files are read there
            told = run_peer(peer, model, on_cpu, "--device", device.type, steps=max(steps, 10), threads=1, seed=0)
            row["peer"] = 1000 / told["iterations_per_second"]
        rows.append(row)
    return rows


def time_steps(run: Iterator[Snapshot], steps: int, device: torch.device) -> float:
    """Return the milliseconds of a step of a search that goes on."""
    began = time.perf_counter()
    for _ in range(steps):
        next(run)
    wait(device)
    return 1000 * (time.perf_counter() - began) / steps
