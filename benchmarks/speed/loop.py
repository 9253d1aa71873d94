"""The attack's loop: iterations per second beside the package `breaching`, same model, picture, cost, threads and precision."""

import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from leakage.data.images import gallery
from leakage.engine.core import Snapshot, generator
from leakage.engine.matching import start
from leakage.evaluation import metrics
from leakage.evaluation.play import PreparedAttack
from leakage.settings import ROOT
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.spec.words import COMPILED
from leakage.workers import plugin_catalog
from leakage.workers.adapter import plugin, prepare
from leakage.workers.dispatcher import WORKER
from leakage.workers.step_compiler import NOTHING_LEFT

WARM = 3  # steps before those that are measured: they load modules
ROUNDS = 3  # of every measurement that is not beside the peer
PEER_STARTS = 10  # random first pictures: the PSNR of one differs by 2 dB from that of another
CASES = {"lenet": 3000, "convnet": 500}  # model -> iterations
TV = 0.0001  # small: at 0.001 the edge terms that only the peer has cost it 1 dB on LeNet


LANES = {"lenet": 1000, "convnet": 150}  # model -> steps, of 1 and of 8 starts
STARTS = 8


def experiment(model: str, steps: int, starts: int = 1) -> Experiment:
    """Return Inverting Gradients on one picture (astronaut), in CIFAR-10 normalisation, label recovered."""
    chosen = Experiment(
        model=Part(id=model, fields={"normalise": "cifar10"}),
        attack=Part(id="inverting_gradients", fields={"steps": steps, "tv_weight": TV, "starts": starts}),
    )
    return chosen.resolve(plugin_catalog.describe())


def batch_of(chosen: Experiment, batch: int, seed: int) -> Experiment:
    """Return the experiment on the first pictures of the gallery, with another seed (equal experiments would share one run)."""
    return chosen.model_copy(update={"pictures": tuple(Picture(id=item.id) for item in gallery()[:batch]), "seed": seed})


def compile_known() -> str:
    """Compile the steps that an idle machine compiles by itself, into the home folder; return how derivatives are computed then."""
    while (status := subprocess.run([sys.executable, "-m", "leakage.workers.compile_step"], cwd=ROOT).returncode) == 0:
        pass
    if status != NOTHING_LEFT:
        sys.exit("Steps cannot be compiled here. Install g++, or set LEAKAGE_COMPILE=0 to measure without compiled steps.")
    return COMPILED


def run_like_worker(script: str, *arguments: object) -> str:
    """Run a script in a process like a worker's, and return what it prints."""
    environment = {**os.environ, **WORKER, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, script, *map(str, arguments)]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def ours(chosen: Experiment, threads: int, seed: int) -> dict[str, float]:
    """Measure the seconds of the whole loop from one random picture, and the PSNR of its answer, in a process like a worker's."""
    answer: dict[str, float] = json.loads(run_like_worker(__file__, chosen.model_dump_json(), threads, seed))
    return answer


def prepare_warm(chosen: Experiment, threads: int, seed: int) -> tuple[PreparedAttack, Iterator[Snapshot]]:
    """Return the attack and its snapshots, not yet begun. WARM steps have warmed it up, as the peer's do."""
    torch.set_num_threads(threads)
    scene = prepare(chosen, device=torch.device("cpu"))
    attack = plugin("attack", chosen.attack)
    for _ in islice(attack.run(scene.seen, generator(seed, "warm")), WARM):
        pass
    return scene, attack.run(scene.seen, generator(seed, "attack"))


def loop(chosen: Experiment, threads: int, seed: int) -> dict[str, float]:
    """What `ours` runs."""
    scene, snapshots = prepare_warm(chosen, threads, seed)
    began, idle = time.perf_counter(), peak_mb()
    for last in snapshots:  # noqa: B007 (the last one is the answer)
        pass
    seconds, more = time.perf_counter() - began, peak_mb() - idle
    return {"seconds": seconds, "psnr": float(metrics.psnr(last.x, scene.x).mean()), "more_mb": more}


def peak_mb() -> float:
    """Return the peak memory of this process."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 2**10)


def closed_form(most: int) -> list[dict[str, Any]]:
    """R-GAP on one picture of CNN6, one output, float64: seconds and memory beyond those of a worker that is ready, medians of ROUNDS."""
    chosen = Experiment(model=Part(id="cnn6"), task="flipped", precision="float64", attack=Part(id="r_gap")).resolve(
        plugin_catalog.describe()
    )
    rows = []
    for threads in sorted({1, most}):
        runs = [ours(chosen, threads, seed) for seed in range(ROUNDS)]
        row = {name: statistics.median(run[name] for run in runs) for name in ("seconds", "more_mb", "psnr")}
        rows.append({"model": "cnn6", "threads": threads, **row})
    return rows


def lanes(most: int) -> list[dict[str, Any]]:
    """STARTS starts at once on `most` threads beside one on the number of threads that suits it best: in turn, the best of ROUNDS."""
    rows = []
    for model, steps in LANES.items():
        one, many = experiment(model, steps), experiment(model, steps, STARTS)
        single, together = [], []
        for seed in range(ROUNDS):
            single += [ours(one, threads, seed)["seconds"] for threads in {1, most}]
            together.append(ours(many, most, seed)["seconds"])
        row = {"model": model, "starts": STARTS, "threads": most, "steps": steps}
        rows.append(
            row
            | {
                "one_ms": 1000 * min(single) / steps,
                "all_ms": 1000 * min(together) / steps,
                "ratio": min(together) / min(single),
            }
        )
    return rows


def run_peer(peer: Path, model: str, scene: PreparedAttack, *more: object, steps: int, threads: int, seed: int) -> dict[str, Any]:
    """Run the peer's attack on the weights and pictures of ours, from our first guess, and return what it prints.

    Args:
        peer: the Python of the peer's environment.
        model: the network's name in `peer_networks`.
        scene: our attack.
        more: further arguments of `peer.py`.
        steps: iterations.
        threads: of torch.
        seed: of our first guess.
    """
    with tempfile.TemporaryDirectory() as folder:
        weights, pictures, first = (Path(folder, name) for name in ("weights.pt", "pictures.npy", "start.npy"))
        torch.save(scene.seen.model.state_dict(), weights)
        np.save(pictures, scene.x.numpy())
        np.save(first, start("normal", scene.seen, generator(seed, "attack")).numpy())
        files = ["--weights", weights, "--pictures", pictures, "--start", first]
        numbers = ["--iterations", steps, "--tv", TV, "--threads", threads, "--label", *scene.y.tolist()]
        command = [peer, Path(__file__).parent / "peer.py", "--model", model, *files, *numbers, *more]
        done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    norm = float(torch.cat([value.double().flatten() for value in scene.seen.as_gradient().values()]).norm())
    if not math.isclose(told["gradient_norm"], norm, rel_tol=1e-3):
        raise SystemExit(f"{model}: the peer's gradient has the norm {told['gradient_norm']}, ours {norm}. The networks differ.")
    return told


def beside_peer(peer: Path, threads: int, models: Sequence[str]) -> list[dict[str, Any]]:
    """Measure ours and the peer in turn from the same PEER_STARTS random pictures; return medians of speed, ratio and PSNR per model."""
    rows = []
    for model in models:
        steps = CASES[model]
        chosen = experiment(model, steps)
        scene = prepare(chosen, device=torch.device("cpu"))
        pairs = []
        for seed in range(PEER_STARTS):
            mine = ours(chosen, threads, seed)
            pairs.append((mine, run_peer(peer, model, scene, steps=steps, threads=threads, seed=seed)))
        rows.append(
            {
                "model": model,
                "iterations": steps,
                "threads": threads,
                "starts": PEER_STARTS,
                "ours_per_second": statistics.median(steps / mine["seconds"] for mine, _ in pairs),
                "peer_per_second": statistics.median(theirs["iterations_per_second"] for _, theirs in pairs),
                "ratio": statistics.median(steps / mine["seconds"] / theirs["iterations_per_second"] for mine, theirs in pairs),
                "ours_psnr": statistics.median(mine["psnr"] for mine, _ in pairs),
                "peer_psnr": statistics.median(theirs["psnr"] for _, theirs in pairs),
            }
        )
    return rows


if __name__ == "__main__":
    sys.stdout.write(json.dumps(loop(Experiment.model_validate_json(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
