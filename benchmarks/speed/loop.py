"""The attack's own loop: iterations per second beside the package `breaching`, same model, picture, cost, threads and precision."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from leakage import catalog
from leakage.engine import metrics
from leakage.engine.core import generator
from leakage.engine.play import plugin, prepare
from leakage.settings import cores
from leakage.spec import Experiment, Part

__all__ = ["beside_peer", "cores", "experiment", "ours"]
ROUNDS = 3
CASES = {"lenet": 3000, "convnet": 500}  # model -> iterations
TV = 0.001


def experiment(model: str, steps: int) -> Experiment:
    """Inverting Gradients on one picture (astronaut), in CIFAR-10 normalisation, label recovered."""
    chosen = Experiment(
        model=Part(id=model, fields={"normalise": "cifar10"}),
        attack=Part(id="inverting_gradients", fields={"steps": steps, "tv_weight": TV}),
    )
    return chosen.resolve(catalog.describe())


def ours(chosen: Experiment, threads: int) -> tuple[float, float]:
    """Seconds for the whole loop, nothing kept, and the PSNR of its answer."""
    torch.set_num_threads(threads)
    scene = prepare(chosen, device=torch.device("cpu"))
    attack = plugin("attack", chosen.attack)
    began = time.perf_counter()
    for last in attack.run(scene.seen, generator(chosen.seed, "attack")):  # noqa: B007 (the last one is the answer)
        pass
    return time.perf_counter() - began, float(metrics.psnr(last.x, scene.x).mean())


def beside_peer(peer: Path, threads: int) -> list[dict[str, Any]]:
    """Ours and the peer's in turn, ROUNDS times; medians and their ratio per model."""
    rows = []
    for model, steps in CASES.items():
        chosen = experiment(model, steps)
        scene = prepare(chosen, device=torch.device("cpu"))
        with tempfile.TemporaryDirectory() as folder:
            weights, picture = Path(folder, "weights.pt"), Path(folder, "picture.npy")
            torch.save(scene.seen.model.state_dict(), weights)
            np.save(picture, scene.x[0].numpy())
            command = [
                str(peer),
                str(Path(__file__).parent / "peer.py"),
                "--model",
                model,
                "--weights",
                str(weights),
                "--picture",
                str(picture),
            ]
            command += ["--label", str(int(scene.y[0])), "--iterations", str(steps), "--tv", str(TV), "--threads", str(threads)]
            pairs = []
            for _ in range(ROUNDS):
                mine = ours(chosen, threads)
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                pairs.append((mine, json.loads(done.stdout.splitlines()[-1])))
        speed = statistics.median(steps / seconds for (seconds, _), _ in pairs)
        theirs = statistics.median(answer["iterations_per_second"] for _, answer in pairs)
        rows.append(
            {
                "model": model,
                "iterations": steps,
                "threads": threads,
                "ours_per_second": speed,
                "peer_per_second": theirs,
                "ratio": statistics.median((steps / s) / answer["iterations_per_second"] for (s, _), answer in pairs),
                "ours_psnr": pairs[0][0][1],
                "peer_psnr": pairs[0][1]["psnr"],
            }
        )
    return rows


if __name__ == "__main__":  # one bare loop for live.py: MODEL STEPS BATCH THREADS
    from leakage.pictures import gallery
    from leakage.spec import Picture

    bare = experiment(sys.argv[1], int(sys.argv[2]))
    bare = bare.model_copy(update={"pictures": tuple(Picture(id=item.id) for item in gallery()[: int(sys.argv[3])])})
    sys.stdout.write(str(ours(bare, int(sys.argv[4]))[0]))
