"""Inverting Gradients: match the direction of the gradient, prefer smooth pictures."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from leakage.engine.core import Attack, Observation, Snapshot, flag, param
from leakage.engine.labels import Recovered, recover, rule_field
from leakage.engine.matching import box, cosine_distance, lost, normal_start, to_pixels, total_variation


@dataclass(frozen=True, kw_only=True)
class InvertingGradients(Attack):
    """argmin over x in the box of 1 - cos(g(x, y), g*) + tv_weight * TV(x), by Adam on the sign of the gradient.

    x lives in the model's normalised space, starts as N(0, 1), and is clamped to the pixels 0 and 1 after every step. The step size
    falls tenfold after 3/8, 5/8 and 7/8 of the steps. TV is mean |dx| + mean |dy|. Of several starts the one with the smallest cosine
    distance (without TV) is the answer. Labels are granted or recovered from the update.
    Unlike the paper: the default TV weight is 0.001, which scores about 9 dB more on LeNet than 0.1 (see benchmarks/published).
    Source: Geiping et al. 2020, equation 4 and section 5.
    """

    title = "Inverting Gradients"
    plain = "Paints a picture whose gradient points the same way as the one received, and prefers smooth pictures."
    hint = "Works on deeper networks and on batches. A larger smoothness weight gives calmer but blurrier pictures."
    source = "https://arxiv.org/abs/2003.14053"
    loss_name = "cosine gradient distance"
    presets = {
        "paper (Geiping et al. 2020; model with CIFAR-10 normalisation)": {
            "steps": 4800,
            "step_size": 0.1,
            "tv_weight": 0.1,
            "signed": True,
            "boxed": True,
            "starts": 1,
        },
        "quick look": {"steps": 1000},
    }

    steps: int = param(4800, 1, 24000, "Optimiser steps per start.")
    step_size: float = param(0.1, 0.0001, 10, "How far one step may move a pixel at first, in the model's normalised units.")
    tv_weight: float = param(0.001, 0, 10, "How strongly smooth pictures are preferred (weight of the total variation).")
    signed: bool = flag(True, "Use only the sign of each pixel's slope, so that every pixel moves equally fast.")
    boxed: bool = flag(True, "Keep every pixel between black and white.")
    starts: int = param(1, 1, 16, "How many random pictures to start from; the one that matches the gradient best is shown at the end.")
    label_rule: str = rule_field()

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        found = Recovered(seen.labels, "granted") if seen.labels is not None else recover(seen, self.label_rule)
        labels = found.labels
        distance, pixels, (low, high) = cosine_distance(seen.update), to_pixels(seen), box(seen)
        milestones = {int(self.steps / 2.667), int(self.steps / 1.6), int(self.steps / 1.142)}
        results: list[Snapshot] = []
        for start in range(1, self.starts + 1):
            note: dict[str, str | int | float] = {"start": start, **found.note}
            z = normal_start(seen, rng).requires_grad_()
            optimiser = torch.optim.Adam([z], lr=self.step_size, fused=z.device.type != "mps")
            first = (start - 1) * self.steps
            for step in range(1, self.steps + 1):
                x = pixels(z)
                match = distance(seen.replay(x, labels))
                loss = match + self.tv_weight * total_variation(z) if self.tv_weight else match
                (slope,) = torch.autograd.grad(loss, z)
                yield Snapshot(step=first + step, x=x.detach(), y=labels, loss=match.detach(), note=note)
                z.grad = slope.sign() if self.signed else slope
                optimiser.step()
                if step in milestones:
                    optimiser.param_groups[0]["lr"] *= 0.1
                if self.boxed:
                    with torch.no_grad():
                        torch.clamp(z, low, high, out=z)
            x = pixels(z.detach())
            result = Snapshot(step=first + self.steps, x=x, y=labels, loss=distance(seen.replay(x, labels)).detach(), note=note)
            if lost(x, float(result.loss)):
                then = "Trying another." if start < self.starts else "Keep pixels between black and white, or choose smaller steps."
                yield replace(result, note={**note, "event": f"Start {start} of {self.starts} diverged. {then}"})
            results.append(result)
        best = min(results, key=lambda result: (lost(result.x, float(result.loss)), float(result.loss)))
        yield replace(best, step=self.starts * self.steps)
