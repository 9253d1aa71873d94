"""Whole attacks on a picture of the gallery, in the program and by the browser's code in Node, from the same seed; and their bundle."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from leakage.engine.core import generator
from leakage.evaluation.metrics import psnr
from leakage.frontend.bundle import bundle
from leakage.frontend.scripts import scripts
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.workers.adapter import prepare

SCRIPT = Path(__file__).parents[1] / "js" / "play_attack.js"
NODE = shutil.which("node")
COARSE = {"steps": 200, "tv_weight": 0.0001, "schedule": "coarse first"}  # later signs of small derivatives differ by rounding
NOISE = {"scale": 0.003}


class Case(NamedTuple):
    attack: str
    fields: dict[str, Any]
    noise: dict[str, float]
    least: float
    """The PSNR in dB that both reach."""


CASES = (Case("idlg", {}, {}, 40), Case("inverting_gradients", COARSE, {}, 18), Case("inverting_gradients", COARSE, NOISE, 18))


@pytest.mark.skipif(NODE is None, reason="Node.js runs the browser's code")
@pytest.mark.parametrize("case", CASES, ids=["idlg", "inverting_gradients", "inverting_gradients behind noise"])
def test_the_browser_ends_as_near_to_the_picture_as_the_program(case: Case) -> None:
    experiment = Experiment(
        pictures=(Picture(id="astronaut"),),
        model=Part(id="lenet"),
        attack=Part(id=case.attack, fields=case.fields),
        defenses=(Part(id="gaussian_noise", fields=case.noise),) if case.noise else (),
    )
    prepared = prepare(experiment, device=torch.device("cpu"))
    *_, last = prepared.attack.run(prepared.seen, generator(experiment.seed, "attack"))
    ended = play(experiment, case, prepared.x)
    assert ended["kind"] == "end"
    assert ended["labelsRight"] == 1
    reached = float(psnr(last.x.clamp(0, 1), prepared.x))
    assert min(ended["psnr"], reached) > case.least
    assert ended["psnr"] == pytest.approx(reached, abs=1)


@pytest.mark.skipif(NODE is None, reason="Node.js runs the browser's code")
def test_the_bundle_is_a_worker_that_answers_an_order() -> None:
    assert NODE
    page = "globalThis.WorkerGlobalScope = class {}; globalThis.postMessage = ({ kind }) => console.log(kind);"
    sizes = "shape: [1, 8, 8], classes: 4, pictures: new Float32Array(64), labels: [0]"
    order = f"globalThis.onmessage({{ data: {{ network: 'lenet', {sizes}, seed: 1, attack: 'idlg', steps: 1, restarts: 1 }} }});"
    script = page + bundle(scripts(), "attack/attack_worker.js") + order
    done = subprocess.run([NODE, "-"], input=script, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["sent", "frame", "end"]


def play(experiment: Experiment, case: Case, x: Tensor) -> dict[str, Any]:
    """Play the experiment by the browser's code and return its last message; x are the pictures (1, C, H, W)."""
    order = {
        "network": experiment.model.id,
        "shape": list(x.shape[1:]),
        "classes": experiment.num_classes,
        "pictures": x.flatten().tolist(),
        "labels": [0],
        "seed": experiment.seed,
        "attack": case.attack,
        **case.fields,
        **({"protection": {"id": "gaussian_noise", **case.noise}} if case.noise else {}),
    }
    assert NODE
    done = subprocess.run([NODE, str(SCRIPT)], input=json.dumps(order), capture_output=True, text=True, check=True)
    message: dict[str, Any] = json.loads(done.stdout)
    return message
