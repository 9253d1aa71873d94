"""The recorded run that a newcomer sees is what the engine computes today."""

import base64
import json

import pytest
import torch

from leakage.data.images import read, tiles
from leakage.settings import ROOT
from leakage.spec.experiment import parse
from leakage.workers.adapter import play, prepare

RECORDED = json.loads((ROOT / "assets" / "recorded.json").read_text())


def test_the_recorded_run_played_anew_ends_at_the_recorded_quality() -> None:
    run = RECORDED["run"]
    experiment = parse(run["experiment"])
    *_, answer = play(experiment, scene=prepare(experiment, device=torch.device("cpu")), per_second=1)
    # L-BFGS ends when it has settled; threads and processors round differently on the way.
    assert answer.scores["psnr"] == pytest.approx(run["result"]["scores"]["psnr"], abs=2)
    assert answer.labels == run["result"]["labels"]
    assert answer.note["start"] == run["result"]["note"]["start"]


def test_the_recording_holds_the_private_picture_and_an_answer_that_looks_like_it() -> None:
    run, events = RECORDED["run"], {event["seq"]: event for event in RECORDED["events"]}
    private = tiles(base64.b64decode(RECORDED["files"]["private.png"]), 1)[0]
    assert (private == read("gallery", "astronaut", 32, 3)).all()
    answer = tiles(base64.b64decode(events[run["result"]["answer"]]["png"]), 1)[0]
    assert abs(answer.astype(int) - private).mean() < 2  # of 255; at 40 dB and better the mean error is below 2.55
    assert run["result"]["verdict"]["word"] == "recognizable"
