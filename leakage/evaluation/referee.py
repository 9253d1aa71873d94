"""The referee: pairs the guesses of one run with the private pictures and scores them. What is costly is measured seldom, or at the end."""

import time
from dataclasses import dataclass, field
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
from leakage.evaluation.views import drawn

PAUSE = 0.5  # seconds between two measurements of SSIM at least
SHARE = 0.02  # ... and never more than this share of the time is spent on them


@dataclass(frozen=True)
class Frame:
    """A kept Snapshot with the referee's scores: pictures (B, C, H, W) in [0, 1] on the CPU, in the order of the private ones.

    scores    always psnr, mse, label_accuracy; at most twice a second also ssim, rank (by pixels) and a verdict; at the end everything:
              rank (median over the distances), identified, registered_psnr, lpips, mse_norm, rmse255, gradient distances. A name that
              ends in _each, or begins with rank_, holds one value per picture; the others are means, of ranks the median.
    views     what stands beside the guess, drawn: (1 or 3, H', W') in [0, 1]
    ending    of the last frame: answer, or why it is none: stopped, diverged
    proved    which pictures the attack has proved right, without the truth
    """

    step: int
    seconds: float
    x: Tensor
    labels: list[int]
    loss: float
    scores: dict[str, Any]
    note: dict[str, Any] = field(default_factory=dict)
    views: dict[str, Tensor] = field(default_factory=dict)
    verdict: dict[str, Any] | None = None
    ending: str = ""
    proved: tuple[bool, ...] = ()

    @property
    def final(self) -> bool:
        """Whether it is the last one: what the attack came to."""
        return bool(self.ending)


class Referee:
    """Scores snapshots of one run; remembers the pairing of the last one, and when structural similarity was last worth its time."""

    def __init__(self, x: Tensor, y: Tensor, seen: Observation, baselines: Baselines) -> None:
        self.x, self.y, self.seen, self.baselines = x, y, seen, baselines
        self.began = time.perf_counter()
        self.order: Tensor | None = None
        self.due = 0.0

    def score(self, snapshot: Snapshot, *, ending: str = "") -> Frame:
        """The snapshot as a Frame; `seconds` is when it came, so that scoring does not count. `ending` as in Frame."""
        final = bool(ending)
        now = time.perf_counter()
        guess = pixels(snapshot)
        self.order = pair(guess, self.x, kept=None if final else self.order)
        guess = guess[self.order]
        y = snapshot.y.detach().cpu()
        labels = classes_of(y)[self.order]
        psnr = metrics.psnr(guess, self.x)
        scores: dict[str, Any] = {
            "psnr": float(psnr.mean()),
            "mse": float(metrics.mse(guess, self.x).mean()),
            "label_accuracy": metrics.label_overlap(labels, classes_of(self.y)),
        }
        word = None
        if final or now >= self.due:
            found = self._thorough(guess) if final else self._quick(guess, psnr)
            word = verdict(found, self.baselines.reference, cut_short=ending not in ("", "answer"))
            if not final:
                del word["each"]
            scores |= listed(found, self.baselines.reference)
            self.due = now + max(PAUSE, (time.perf_counter() - now) / SHARE)
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
            views={name: drawn(view) for name, view in snapshot.views.items()},
            verdict=word,
            ending=ending,
            proved=proved(snapshot, self.order),
        )

    def _quick(self, guess: Tensor, psnr: Tensor) -> Scores:
        rank = pixel_ranks(guess, self.x, self.baselines.lineup)
        return {"psnr": psnr, "ssim": metrics.ssim(guess, self.x), "lpips": unknown(psnr), "rank_pixel": rank}

    def _thorough(self, guess: Tensor) -> Scores:
        found = measure(guess, self.x, self.baselines.lineup, self.baselines.perceptual)
        rmse = metrics.rmse255(found["mse"])
        return found | {
            "registered_psnr": metrics.registered_psnr(guess, self.x),
            "rmse255": rmse,
            "psnr_adadefense": metrics.psnr_adadefense(rmse).clamp(max=metrics.PSNR_CAP),
        }


class BlindReferee:
    """Shows snapshots of an attack on an update whose pictures nobody here holds: no scores, but at the end the gradient distance."""

    def __init__(self, seen: Observation) -> None:
        self.seen, self.began = seen, time.perf_counter()

    def score(self, snapshot: Snapshot, *, ending: str = "") -> Frame:
        """The snapshot as a Frame."""
        guess, y = pixels(snapshot), snapshot.y.detach().cpu()
        return Frame(
            step=snapshot.step,
            seconds=time.perf_counter() - self.began,
            x=guess,
            labels=classes_of(y).tolist(),
            loss=float(snapshot.loss),
            scores=dict(distances(self.seen, guess, y)) if ending else {},
            note=dict(snapshot.note),
            views={name: drawn(view) for name, view in snapshot.views.items()},
            ending=ending,
            proved=proved(snapshot, torch.arange(len(guess))),
        )


def pixels(snapshot: Snapshot) -> Tensor:
    """The guess (B, C, H, W) in [0, 1] on the CPU; what is no number is grey."""
    return torch.nan_to_num(snapshot.x.detach().to("cpu", torch.float32), nan=0.5).clamp(0, 1)


def proved(snapshot: Snapshot, order: Tensor) -> tuple[bool, ...]:
    """Which pictures of the guess are proved, in this order."""
    nothing = torch.zeros(len(order), dtype=torch.bool)
    return tuple((nothing if snapshot.proved is None else snapshot.proved.cpu())[order].tolist())


def distances(seen: Observation, guess: Tensor, y: Tensor) -> dict[str, float]:
    """How far the gradient of a guess (B, C, H, W) in [0, 1] with labels y is from what the attacker works with."""
    replayed = seen.gradient(guess.to(seen.device, seen.dtype), y.to(seen.device))
    return metrics.gradient_distances(replayed, seen.as_gradient())


def listed(found: Scores, held: Reference) -> dict[str, Any]:
    """Scores (B,) as numbers and lists for a Frame; what was not measured is left out, save SSIM, which is then not a number."""
    known = {name: value for name, value in found.items() if name == "ssim" or not bool(value.isnan().all())}
    plain = {name: float(value.nanmean()) for name, value in known.items() if not name.startswith("rank")}
    each = {f"{name}_each": known[name].tolist() for name in ("psnr", "ssim", "lpips") if name in known}
    ranks = {name: value.tolist() for name, value in known.items() if name.startswith("rank_")}
    rank, picked = held.rank(found), held.identified(found)
    placed = {"rank": float(rank.nanquantile(0.5)), "rank_each": rank.tolist(), "identified": float(picked.double().mean())}
    return plain | each | ranks | placed
