"""The referee pairs the guesses of a run with the private pictures and scores them; costly scores are rare, or only at the end."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from leakage.engine.core import Observation, Snapshot
from leakage.engine.losses import classes_of
from leakage.evaluation import metrics
from leakage.evaluation.baselines import Baselines, Scores, measure
from leakage.evaluation.lineup import pixel_ranks
from leakage.evaluation.pairing import pair
from leakage.evaluation.verdict import Reference, unknown, verdict
from leakage.evaluation.views import draw_view

PAUSE = 0.5  # seconds between two measurements of SSIM at least
FRACTION = 0.02  # the largest fraction of the time that is spent on these measurements


@dataclass(frozen=True)
class Frame:
    """An attack's pictures after some step (a Snapshot), put in the order of the private pictures and compared with them."""

    step: int
    """Optimiser steps so far."""
    seconds: float
    """Seconds since the run began."""
    x: Tensor
    """The guess (B, C, H, W) in [0, 1] on the CPU."""
    labels: list[int]
    """The guessed class of each picture."""
    loss: float
    """The objective of the attack."""
    scores: dict[str, Any]
    """A Referee always gives psnr, mse and label_accuracy; at most twice a second also ssim, rank (by pixels) and identified; at the end
    also the rank as the median over the distances, registered_psnr, lpips, mse_norm, rmse255, psnr_adadefense and the gradient distances.
    A BlindReferee gives only the gradient distances, at the end. A name that ends in _each, or begins with rank_, has one value per
    picture; the others are means, for ranks medians."""
    note: dict[str, Any] = field(default_factory=dict)
    """The note of the Snapshot."""
    views: dict[str, Tensor] = field(default_factory=dict)
    """The views of the Snapshot, drawn as pictures (1 or 3, H', W') in [0, 1]."""
    verdict: dict[str, Any] | None = None
    """The verdict on the batch; None in a frame for which none was computed."""
    ending: str = ""
    """In the last frame: answer, stopped or diverged; else empty."""
    proved: tuple[bool, ...] = ()
    """Which pictures the attack has proved right, without the truth."""

    @property
    def final(self) -> bool:
        """Whether this is the last frame, the result of the attack."""
        return bool(self.ending)


class Referee:
    """Compares the snapshots of one run with the private pictures; it remembers their last order, and when SSIM is due again."""

    def __init__(self, x: Tensor, y: Tensor, seen: Observation, compute_baselines: Callable[[], Baselines]) -> None:
        self.x, self.y, self.seen, self._compute_baselines = x, y, seen, compute_baselines
        self.began = time.perf_counter()
        self.order: Tensor | None = None
        self.due = 0.0

    @cached_property
    def baselines(self) -> Baselines:
        """What guesses are compared with; the time to compute it is no part of the run's."""
        began = time.perf_counter()
        baselines = self._compute_baselines()
        self.began += time.perf_counter() - began
        return baselines

    def score(self, snapshot: Snapshot, *, ending: str = "") -> Frame:
        """Return a snapshot with its scores as a Frame; `ending` as in Frame. The frame's `seconds` end before scoring begins."""
        final, baselines = bool(ending), self.baselines
        now = time.perf_counter()
        guess = pixels(snapshot)
        filled = None if snapshot.filled is None else snapshot.filled.cpu()
        self.order = pair(guess, self.x, kept=None if final else self.order, filled=filled)
        guess = guess[self.order]
        y = snapshot.y.detach().cpu()
        labels = classes_of(y)[self.order]
        psnr = metrics.psnr(guess, self.x)
        scores: dict[str, Any] = {
            "psnr": float(psnr.mean()),
            "mse": float(metrics.mse(guess, self.x).mean()),
            "label_accuracy": metrics.label_overlap(labels, classes_of(self.y)),
        }
        judged = None
        if final or now >= self.due:
            measured = self._thorough(guess) if final else self._quick(guess, psnr)
            judged = verdict(measured, baselines.reference, cut_short=ending not in ("", "answer"))
            if not final:
                del judged["each"]
            scores |= listed(measured, baselines.reference)
            self.due = now + max(PAUSE, (time.perf_counter() - now) / FRACTION)
        if final:
            scores |= distances(self.seen, guess[self.order.argsort()], y)
            raw = snapshot.x.detach().cpu()[self.order]
            scores["mse_norm"] = float(metrics.mse_norm(raw, self.x, self.seen.scale[1].cpu()).mean())
        return Frame(
            step=snapshot.step,
            seconds=now - self.began,
            x=guess,
            labels=labels.tolist(),
            loss=float(snapshot.loss),
            scores=scores,
            note=dict(snapshot.note),
            views={name: draw_view(view) for name, view in snapshot.views.items()},
            verdict=judged,
            ending=ending,
            proved=proved(snapshot, self.order),
        )

    def _quick(self, guess: Tensor, psnr: Tensor) -> Scores:
        rank = pixel_ranks(guess, self.x, self.baselines.lineup)
        return {"psnr": psnr, "ssim": metrics.ssim(guess, self.x), "lpips": unknown(psnr), "rank_pixel": rank}

    def _thorough(self, guess: Tensor) -> Scores:
        scores = measure(guess, self.x, self.baselines.lineup, self.baselines.perceptual)
        rmse = metrics.rmse255(scores["mse"])
        return scores | {
            "registered_psnr": metrics.registered_psnr(guess, self.x),
            "rmse255": rmse,
            "psnr_adadefense": metrics.psnr_adadefense(rmse).clamp(max=metrics.PSNR_CAP),
        }


class BlindReferee:
    """Turns the snapshots of an attack into frames where the private pictures are unknown; the last has the gradient distance."""

    def __init__(self, seen: Observation) -> None:
        self.seen, self.began = seen, time.perf_counter()

    def score(self, snapshot: Snapshot, *, ending: str = "") -> Frame:
        """Turn a snapshot into a Frame without scores of pictures; `ending` as in Frame."""
        guess, y = pixels(snapshot), snapshot.y.detach().cpu()
        return Frame(
            step=snapshot.step,
            seconds=time.perf_counter() - self.began,
            x=guess,
            labels=classes_of(y).tolist(),
            loss=float(snapshot.loss),
            scores=dict(distances(self.seen, guess, y)) if ending else {},
            note=dict(snapshot.note),
            views={name: draw_view(view) for name, view in snapshot.views.items()},
            ending=ending,
            proved=proved(snapshot, torch.arange(len(guess))),
        )


def pixels(snapshot: Snapshot) -> Tensor:
    """Return the guess (B, C, H, W), clamped to [0, 1], on the CPU; NaN becomes grey."""
    return torch.nan_to_num(snapshot.x.detach().to("cpu", torch.float32), nan=0.5).clamp(0, 1)


def proved(snapshot: Snapshot, order: Tensor) -> tuple[bool, ...]:
    """Return for each private picture whether the attack has proved its guess right; guess `order[i]` belongs to private picture i."""
    nothing = torch.zeros(len(order), dtype=torch.bool)
    return tuple((nothing if snapshot.proved is None else snapshot.proved.cpu())[order].tolist())


def distances(seen: Observation, guess: Tensor, y: Tensor) -> dict[str, float]:
    """Compute the distances "cosine" and "relative_l2" between the gradient of a guess and the received update, as the attacker reads both.

    Args:
        seen: the observation of the attack.
        guess: pictures (B, C, H, W) in [0, 1].
        y: labels (B,) or probabilities (B, K).
    """
    replayed = seen.gradient(guess.to(seen.device, seen.dtype), y.to(seen.device))
    return metrics.gradient_distances(replayed, seen.as_gradient())


def listed(scores: Scores, reference: Reference) -> dict[str, Any]:
    """Convert scores, (B,) each, to `Frame.scores`: means, lists NAME_each, ranks; scores that are all NaN are left out, except SSIM."""
    known = {name: value for name, value in scores.items() if name == "ssim" or not bool(value.isnan().all())}
    plain = {name: float(value.nanmean()) for name, value in known.items() if not name.startswith("rank")}
    each = {f"{name}_each": known[name].tolist() for name in ("psnr", "ssim", "lpips") if name in known}
    ranks = {name: value.tolist() for name, value in known.items() if name.startswith("rank_")}
    rank, identified = reference.rank(scores), reference.identified(scores)
    ranked = {"rank": float(rank.nanquantile(0.5)), "rank_each": rank.tolist(), "identified": float(identified.double().mean())}
    return plain | each | ranks | ranked
