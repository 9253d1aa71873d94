"""Measurements on a GPU: `make bench ARGS="--only gpu"`. Without a GPU it runs a few steps on the CPU and stores nothing."""

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[:3]]  # this folder, benchmarks, the project
import torch
from _graphs import WARM, wait
from _table import save, say, table
from gpu_steps import step_times
from loop import experiment
from torch import Tensor

from leakage.engine.client import gradient_client
from leakage.engine.core import generator
from leakage.engine.devices import best_device, exact_arithmetic, run_exactly
from leakage.engine.whole_distance import flatten
from leakage.settings import cores
from leakage.spec.experiment import Experiment, Part
from leakage.workers import plugin_catalog
from leakage.workers.adapter import plugin, prepare
from leakage.workers.gpu_slots import slots_for

CPU = torch.device("cpu")
MODELS = ("lenet", "convnet", "resnet", "resnet18_imagenet")
Row = dict[str, Any]


def steps_of(gpu: bool) -> int:
    """Return the number of measured steps; two where this only shows that the commands run."""
    return 60 if gpu else 2


def descend(chosen: Experiment, device: torch.device) -> tuple[float, Tensor]:
    """Steps per second behind the first ones, and the answer, on the CPU."""
    seen, rng = prepare(chosen, device=device).seen, generator(1, "attack")
    began = 0.0
    for number, last in enumerate(run_exactly(plugin("attack", chosen.attack).run(seen, rng))):  # noqa: B007
        if number == WARM:
            wait(device)
            began = time.perf_counter()
    wait(device)
    return (number - WARM) / (time.perf_counter() - began), last.x.cpu()


def speeds(device: torch.device) -> list[Row]:
    """Steps per second of Inverting Gradients, on this device and on one core, with 1 start and, on small pictures, 8; torch's memory."""
    rows = []
    for model in MODELS if device.type == "cuda" else MODELS[:2]:
        for starts in (1, 8) if model != MODELS[-1] else (1,):  # 8 would keep one core busy for minutes
            chosen = experiment(model, WARM + steps_of(device.type == "cuda"), starts)
            if device.type == "cuda":
                torch.cuda.reset_peak_memory_stats()
            here, _ = descend(chosen, device)
            most = torch.cuda.max_memory_allocated() / 2**20 if device.type == "cuda" else 0.0
            there, _ = descend(experiment(model, WARM + (10 if device.type == "cuda" else 2), starts), CPU)
            rows.append({"model": model, "starts": starts, "device": here, "core": there, "ratio": here / there, "peak_mb": most})
    return rows


def repeats(device: torch.device) -> list[Row]:
    """Two runs of the same: by how much the brightest difference of their answers is, on this device and between it and the CPU."""
    attacks = [Part(id="inverting_gradients", fields={"steps": 50}), Part(id="gradinversion", fields={"steps": 50})]
    rows = []
    for attack in (*attacks, Part(id="dlg", fields={"steps": 20, "restarts": 1})):
        chosen = Experiment(attack=attack).resolve(plugin_catalog.describe())
        first, again, there = (descend(chosen, where)[1] for where in (device, device, CPU))
        rows.append({"attack": attack.id, "again": float((first - again).abs().max()), "cpu": float((first - there).abs().max())})
    return rows


def rounding(device: torch.device) -> list[Row]:
    """How far a gradient on this device is from that on the CPU in float64: as attacks compute it, and with TF32 allowed."""
    rows = []
    cudnn: Any = torch.backends.cudnn
    for model in MODELS[:3]:
        chosen = experiment(model, 1)
        exact = sent(chosen.model_copy(update={"precision": "float64"}), CPU)
        with exact_arithmetic():  # at its end the settings are as before, without TF32
            plain = sent(chosen, device)
            torch.backends.cuda.matmul.fp32_precision = cudnn.conv.fp32_precision = "tf32"
            short = sent(chosen, device)
        rows.append({"model": model} | {name: float((g - exact).norm() / exact.norm()) for name, g in (("ours", plain), ("tf32", short))})
    return rows


def sent(chosen: Experiment, device: torch.device) -> Tensor:
    """The gradient of its picture, (P,), on the CPU in float64; by the current settings."""
    scene = prepare(chosen, device=device)
    x, y = scene.x.to(scene.seen.device, scene.seen.dtype), scene.y.to(scene.seen.device)
    return flatten(gradient_client(scene.seen.model)(scene.seen.received.weights, x, y, {})[0]).cpu().double()


def waits(device: torch.device) -> list[Row]:
    """Count how often a step made the CPU wait for the GPU, as torch reports it: 0 for Adam."""
    rows = []
    for name in ("inverting_gradients", "gradinversion", "idlg"):
        chosen = Experiment(attack=Part(id=name, fields={"steps": 10})).resolve(plugin_catalog.describe())
        moments = plugin("attack", chosen.attack).run(prepare(chosen, device=device).seen, generator(1, "attack"))
        for _ in range(WARM):
            next(moments)
        if device.type == "cuda":
            torch.cuda.set_sync_debug_mode("warn")  # warns of itself once
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            next(moments)
        if device.type == "cuda":
            torch.cuda.set_sync_debug_mode("default")
        rows.append({"attack": name, "waits": len(told)})
    return rows


def throughput(device: torch.device, most: int) -> list[Row]:
    """Steps per second of 1, 2, 4 ... processes at once on one GPU, all together: where it grows no more, more slots do not help."""
    rows, count = list[Row](), 1
    while count <= most:
        command = [sys.executable, __file__, "convnet", str(WARM + 10 * steps_of(device.type == "cuda"))]  # longer than they take to start
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
        rows.append({"processes": count, "per_second": sum(float(json.loads(one.communicate()[0])) for one in running)})
        count *= 2
    return rows


def report(peer: Path | None) -> None:
    """Measure all parts, print them, and store them where there is a GPU.

    Args:
        peer: the Python of the peer's environment; None: the peer is left out.
    """
    device = best_device()
    gpu = device.type == "cuda"
    torch.set_num_threads(1)
    name = torch.cuda.get_device_name() if gpu else "CPU: a dry run, which shows that the commands run and nothing of a GPU"
    memory = torch.cuda.get_device_properties(0).total_memory if gpu else 0
    most = slots_for([memory], cores()) if gpu else 2
    free, total = torch.cuda.mem_get_info() if gpu else (0, 0)
    body: dict[str, object] = {"device": name, "torch": torch.__version__, "slots": most}
    body |= {"memory_mb": memory / 2**20, "held_mb": (total - free) / 2**20}  # by all processes, before the first tensor
    for what, value in body.items():
        say(f"{what}: {value}")
    parts: dict[str, tuple[str, Callable[[], list[Row]]]] = {
        "rounding": ("A gradient beside that in float64, relative (target: ours below 1e-5)", lambda: rounding(device)),
        "waits": ("How often one step waits for the GPU (target: 0, but for L-BFGS)", lambda: waits(device)),
        "repeats": ("The same attack twice (target: 0), and on the CPU: the largest difference of a pixel", lambda: repeats(device)),
        "steps": (
            "A step of Inverting Gradients, milliseconds, by each way of computing it",
            lambda: step_times(device, peer, steps_of(gpu)),
        ),
        "speeds": ("Inverting Gradients, steps per second (core: one core of this machine)", lambda: speeds(device)),
        "throughput": ("Processes at once on one GPU, ConvNet, all together", lambda: throughput(device, most)),
    }
    for part, (words, measured) in parts.items():
        say(f"\n{words}")
        rows = measured()
        table(list(rows[0]), [list(row.values()) for row in rows])
        body[part] = rows
        if gpu:
            save("gpu", body)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.stdout.write(json.dumps(descend(experiment(sys.argv[1], int(sys.argv[2])), best_device())[0]))
