"""A step of a search on a GPU: by autograd, by formula, by formula as a CUDA graph, and an iteration of the package `breaching`."""

import statistics
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from loop import experiment, run_peer
from torch import Tensor

from leakage.engine.capabilities import Capabilities, set_capabilities
from leakage.engine.compilable_step import CompilableStep, Program
from leakage.engine.core import Snapshot, generator
from leakage.engine.devices import run_exactly
from leakage.engine.federation import Federation, ThreatModel
from leakage.engine.loading import load
from leakage.engine.observe import observe, ready
from leakage.evaluation.play import PreparedAttack
from leakage.workers.adapter import plugin, prepare, untrained

CASES = (("lenet", 1), ("lenet", 8), ("convnet", 1), ("resnet", 1))  # model, starts
WARM = 3  # steps before a measurement, and before a graph is recorded
WINDOWS = 5  # of each way, in turn
AGREEMENT = 1e-3  # largest relative difference of the first distances


def wait(device: torch.device) -> None:
    """Wait until the device has computed everything."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def record_graph(step: CompilableStep, x: Tensor, y: Tensor) -> Program:
    """Record a step as a CUDA graph, whose kernels one call starts, and return it; without a GPU return the step as it is.

    The recorded step reads its numbers and labels where they are now.
    """
    if x.device.type != "cuda":
        return step
    numbers, guess = step.numbers, x.clone()
    aside: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside), torch.no_grad():  # libraries set themselves up, which a graph must not record
        for _ in range(WARM):
            step(numbers, guess, y)
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        distances, derivative = step(numbers, guess, y)

    def program(_numbers: list[Tensor], x: Tensor, _y: Tensor) -> tuple[Tensor, Tensor]:
        guess.copy_(x)
        graph.replay()
        return distances.clone(), derivative.clone()

    return program


WAYS: dict[str, Callable[[], Capabilities]] = {
    "autograd": lambda: Capabilities(formula=False),
    "formula": Capabilities,
    "graph": lambda: Capabilities(programs=record_graph),
}


def search(scene: PreparedAttack, model: str, starts: int, way: str) -> Iterator[Snapshot]:
    """Return the snapshots of Inverting Gradients on the picture of a scene; its steps are computed in one of WAYS."""
    chosen = experiment(model, 24_000, starts)
    x, y = scene.x.to(scene.seen.device, scene.seen.dtype), scene.y.to(scene.seen.device)
    network = untrained(chosen.model, (x.shape[1], x.shape[2], x.shape[3]), chosen.num_classes, seed=chosen.seed)
    set_capabilities(network, WAYS[way]())
    plain = Federation.of(load("protocol", "fedsgd")(), [], ThreatModel(), seed=0)
    seen = observe(ready(network, plain, x), x, y, plain, num_classes=chosen.num_classes)
    return run_exactly(plugin("attack", chosen.attack).run(seen, generator(1, "attack")))


def step_times(device: torch.device, peer: Path | None, steps: int) -> list[dict[str, Any]]:
    """Measure the milliseconds of a step, wall time, the ways in turn: the medians of WINDOWS windows of so many steps.

    Args:
        device: where to compute.
        peer: the Python of the peer's environment; None: the peer is left out.
        steps: in a window, and of the peer's run.
    """
    rows = []
    for model, starts in CASES:
        scene = prepare(experiment(model, steps), device=device)
        runs = {way: search(scene, model, starts, way) for way in WAYS}
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
