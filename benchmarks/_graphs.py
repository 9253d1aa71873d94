"""Steps of a search as CUDA graphs, and several searches side by side on one GPU."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from _table import Result, result
from torch import Tensor

from leakage.engine.capabilities import Capabilities, set_capabilities
from leakage.engine.compilable_step import CompilableStep, Program
from leakage.engine.core import Snapshot, generator
from leakage.engine.devices import run_exactly
from leakage.engine.federation import Federation, ThreatModel
from leakage.engine.loading import load
from leakage.engine.observe import observe, ready
from leakage.evaluation.play import PreparedAttack
from leakage.spec.experiment import Experiment
from leakage.workers import plugin_catalog
from leakage.workers.adapter import plugin, prepare, untrained

WARM = 3  # steps before a measurement, and before a graph is recorded


def record_graph(step: CompilableStep, x: Tensor, y: Tensor) -> Program:
    """Record a step as a CUDA graph, whose kernels one call starts, and return it; without a GPU return the step as it is.

    The recorded step reads its numbers and labels where they are now. Each step is recorded on a stream of its own, because cuBLAS has one
    workspace for each stream, and steps that run at once must not share it.
    """
    if x.device.type != "cuda":
        return step
    numbers, guess = step.numbers, x.clone()
    own: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    own.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(own), torch.no_grad():  # libraries set themselves up, which a graph must not record
        for _ in range(WARM):
            step(numbers, guess, y)
    torch.cuda.current_stream().wait_stream(own)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph, stream=own):
        distances, derivative = step(numbers, guess, y)

    def program(_numbers: list[Tensor], x: Tensor, _y: Tensor) -> tuple[Tensor, Tensor]:
        guess.copy_(x)
        graph.replay()
        return distances.clone(), derivative.clone()

    return program


def wait(device: torch.device) -> None:
    """Wait until the device has computed everything."""
    if device.type == "cuda":
        torch.cuda.synchronize()


WAYS: dict[str, Callable[[], Capabilities]] = {
    "autograd": lambda: Capabilities(formula=False),
    "formula": Capabilities,
    "graph": lambda: Capabilities(programs=record_graph),
}


def search(chosen: Experiment, scene: PreparedAttack, way: str) -> Iterator[Snapshot]:
    """Return the snapshots of a search for the pictures of a scene, from the gradient of an untrained network without protection.

    Args:
        chosen: the resolved experiment.
        scene: its prepared attack.
        way: one of WAYS, which computes the steps.
    """
    if chosen.protocol.id != "fedsgd" or chosen.defenses or chosen.checkpoint or chosen.batch_norm != "eval":
        raise ValueError("Expected an untrained network, FedSGD, no protection, and BatchNorm in eval mode.")
    x, y = scene.x.to(scene.seen.device, scene.seen.dtype), scene.y.to(scene.seen.device)
    network = untrained(chosen.model, (x.shape[1], x.shape[2], x.shape[3]), chosen.num_classes, seed=chosen.seed)
    set_capabilities(network, WAYS[way]())
    plain = Federation.of(load("protocol", "fedsgd")(), [], ThreatModel(), seed=0)
    seen = observe(ready(network, plain, x), x, y, plain, num_classes=chosen.num_classes)
    return run_exactly(plugin("attack", chosen.attack).run(seen, generator(chosen.seed, "attack")))


def finish_side_by_side(experiments: Sequence[Experiment]) -> list[Result]:
    """Return the results of several searches. They take steps in turn; on a GPU each search has its own stream."""
    if not experiments:
        return []
    resolved = [experiment.resolve(plugin_catalog.describe()) for experiment in experiments]
    scenes = [prepare(experiment) for experiment in resolved]
    referees = [scene.referee() for scene in scenes]
    running = {place: search(experiment, scenes[place], "graph") for place, experiment in enumerate(resolved)}
    streams = [_own_stream(scene.seen.device) for scene in scenes]
    answers: dict[int, Snapshot] = {}
    wait(scenes[0].seen.device)  # a stream does not wait for what another one computes
    while running:
        for place, snapshots in list(running.items()):
            with streams[place]:
                snapshot = next(snapshots, None)
            if snapshot is None:
                del running[place]
            else:
                answers[place] = snapshot
    wait(scenes[0].seen.device)
    pairs = enumerate(zip(scenes, referees, strict=True))
    return [result(scene, referee.score(answers[place], ending="answer")) for place, (scene, referee) in pairs]


def _own_stream(device: torch.device) -> AbstractContextManager[Any]:
    return torch.cuda.stream(torch.cuda.Stream()) if device.type == "cuda" else nullcontext()  # type: ignore[no-untyped-call]
