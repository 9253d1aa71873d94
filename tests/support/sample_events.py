"""Events for tests: one of every kind with all its fields, as pages get them; and events of attacks."""

from typing import Any

from leakage.runs.events import AttackEnd, FrameEvent, MetaEvent, NoteEvent

DISTANCES = {"cosine": 0.25, "relative_l2": 0.75}
BASELINE = {name: 10.5 for name in ("psnr", "mse", "ssim", "lpips", "rank", "rank_pixel", "rank_ssim", "rank_lpips")}
SCORES = {
    **DISTANCES,
    **{name: 20.5 for name in ("psnr", "mse", "ssim", "lpips", "label_accuracy", "rank", "identified", "registered_psnr")},
    **{name: 30.5 for name in ("rmse255", "psnr_adadefense", "mse_norm")},
    **{name: [1.5, 2.5] for name in ("psnr_each", "ssim_each", "lpips_each", "rank_each", "rank_pixel", "rank_ssim", "rank_lpips")},
}
VERDICT = {"word": "recognizable", "why": "Rank 1.", "meaning": "It can be seen.", "rule": "The first is."}
NOTE = {"start": 2, "label rule": "a rule", "label certainty": 0.5, "candidates": [0.5, {"mu": 0.5}]}
CHECK = {
    **{"check": "new_layers", "title": "New layers", "measures": "how many parameters are new"},
    **{"number": 4.5, "threshold": 0.5, "tripped": True, "round": 2},
}
META = {
    "batch": 1,
    "size": 32,
    "channels": 3,
    "private": "/api/runs/a/private.png",
    "pictures": [{"title": "Astronaut", "class_name": "person", "label": 0}],
    "class_names": ["person", "cat"],
    "classes": 10,
    "received": {
        "entries": 5,
        "bytes": 20,
        "norm": 1.5,
        "layers": [{"name": "w", "shape": [5], "norm": 2.5, "strip": [0, 255]}],
        "singles": [[0, 255]],
    },
    "baselines": {"grey": BASELINE},
    "steps": 300,
    "attack": "iDLG",
    "loss_name": "squared gradient distance",
    "way": "Guess, compare, improve.",
    "labels_granted": False,
    "weights": "untrained",
    "batch_norm": False,
    "device": "cpu, 1 core",
    "versions": {"torch": "2", "engine": "1"},
    "lineup": {"size": 100, "words": "99 others"},
    "lpips": {"net": "squeeze", "words": "through SqueezeNet"},
    "changed": DISTANCES,
    "known": DISTANCES,
    "answers": ["known: the guess is rounded too"],
    "epsilon": {"value": 4.5, "delta": 1e-5, "times": 1},
    "estimate": 12.5,
    "checks": [CHECK],
}
END = {
    "answer": 7,
    "step": 3,
    "steps": 3,
    "seconds": 1.5,
    "scores": SCORES,
    "labels": [0],
    "note": NOTE,
    "verdict": VERDICT,
    "ending": {"how": "answer", "words": "Attack finished", "checks": [CHECK]},
    "timing_key": "[]",
}
FRAME = {"step": 3, "seconds": 1.5, "loss": 0.5, "scores": SCORES, "labels": [0], "note": NOTE, "verdict": VERDICT}
PRIVACY = {"sampled": 1.5, "unsampled": 12.5, "delta": 1e-5, "rate": 0.25, "steps": 24, "uses": 6}
GRADIENT_RANK = {
    **{"rank": 700, "unknowns": 784, "directions": 784, "sent": 6266, "condition": 75.5, "exact": True},
    "above": [{"share": 0.001, "directions": 690}, {"share": 0.01, "directions": 600}],
}
COPY = {
    **{"clients": [1, 2], "changed": True, "changed_rows": 2, "zero_rows": 0, "flat_rows": 1, "value": 0.5},
    **{"moved": [[0, 1], [1, 0]], "cells": [[-100, 0], [50, 100]], "marks": [True, True]},
}
LAYER = {
    **{"name": "linear", "kind": "Linear", "change": "changed"},
    "tensors": [{"name": "weight", "shape": [2, 2], "agreed": [[50, 100], [-100, 0]], "copies": [COPY]}],
}
FINDING = {
    **{"title": "By direction", "attacker": "naive", "state": "answered", "why": "", "count": 1, "labels": [4], "proved": False},
    **{"distance": 0.01, "random_distance": 1.0, "agreement": 21.5, "planted": [19.0, 24.5], "planted_grey": 11.5},
    **{"warnings": ["Turn its sign."], "steps": 60, "seconds": 9.5},
}
EXAMPLES: dict[str, dict[str, Any]] = {  # the name of a model -> what it is given
    "StateEvent": {"status": "queued", "message": "Waiting.", "position": 1, "wait": 2.5},
    "NoteEvent": {"text": "A sentence."},
    "RestartEvent": {"text": "The machine is gone."},
    "MetaEvent": META,
    "FrameEvent": {**FRAME, "views": {"guess": "data:image/png;base64,"}},
    "ThinnedEvent": {"kept": [1, 2]},
    "AttackEnd": {"status": "done", **END},
    "TrainingMetaEvent": {"rounds": 2, "device": "cpu"},
    "ProgressEvent": {"done": 0.5, "loss": 1.5, "seconds": 2.5},
    "RoundEvent": {"done": 1.0, "loss": 1.5, "seconds": 2.5, "accuracy": 0.75},
    "InverterEnd": {"status": "done", "inverter": "lenet-mnist-plain", "mse": 0.01, "mse_mean": 0.06, "seconds": 90.5},
    "TrainingEnd": {"status": "done", "accuracy": 0.75, "checkpoint": "lenet@2", "rounds": 2, "seconds": 2.5, "privacy": PRIVACY},
    "TurnEvent": {"name": "conv1", "number": 1, "layers": 2},
    "RankEvent": {"name": "conv1", "rank": 640},
    "MovedEvent": {"done": 128, "directions": 784},
    "GradientRankEvent": {"measured": GRADIENT_RANK},
    "RanksEnd": {"status": "done", "ranks": {"conv1": 640, "conv2": None}, "seconds": 2.5, "whole": True, "gradient": GRADIENT_RANK},
    "HandedModelEnd": {"status": "done", "layers": [LAYER]},
    "GradientNormsEnd": {"status": "done", "norms": {"0": 3.25, "1": 0.5}},
    "StatementEvent": {"text": "The update is a gradient."},
    "FindingEvent": FINDING,
    "AuditEnd": {"status": "done", "conclusion": "2 attacks tried.", "tried": 2, "answered": 1, "seconds": 9.5, "whole": True},
}


def note(text: str = "") -> NoteEvent:
    """Return an event with a sentence."""
    return NoteEvent(text=text)


def frame(step: int = 1, **told: Any) -> FrameEvent:
    """Return a frame of that step."""
    return FrameEvent.model_validate({"step": step, "seconds": step / 10, "loss": 1 / (step or 1), **told})


def meta(**told: Any) -> MetaEvent:
    """Return the first event of an attack, with these fields."""
    return MetaEvent.model_validate({**META, "changed": None, "known": None, "answers": (), "epsilon": None, "checks": (), **told})


def received(entries: int) -> dict[str, int]:
    """Return the description of an update of so many numbers."""
    return {"entries": entries, "bytes": 4 * entries}


def end(answer: int, **told: Any) -> AttackEnd:
    """Return the last event of an attack."""
    return AttackEnd.model_validate({"answer": answer, **told})
