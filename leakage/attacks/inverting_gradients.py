"""Inverting Gradients: the attack matches the direction of the gradient and prefers smooth pictures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from leakage.attacks._adam import COMBINE, SCHEDULES, Descent, replays
from leakage.attacks._examples import with_examples
from leakage.attacks._labels import labels_of
from leakage.attacks._objective import Prior
from leakage.attacks._polish import polished
from leakage.engine.core import Attack, Observation, Snapshot, choice, flag, param
from leakage.engine.discrepancy import Goal, floors_of, goal_of
from leakage.engine.labels import rule_field
from leakage.engine.matching import DISTANCES, LAYERS, STARTS, WEIGHTS, Smoothness, importance, start

COARSE_FIRST = "coarse first"  # a schedule
COARSE = 0.5  # the fraction of the steps, from the first on, in which its pictures have half the sides


@dataclass(frozen=True, kw_only=True)
class InvertingGradients(Attack):
    """argmin over x in the box of 1 - cos(g(x, y), g*) + tv_weight * TV(x), by Adam on the sign of the gradient.

    g(x, y) is the gradient of pictures x with labels y, g* the received gradient. x is in the model's normalised space, starts as N(0, 1),
    and is clamped to the pixels 0 and 1 after every step. The step size falls tenfold after 3/8, 5/8 and 7/8 of the steps. TV is mean |dx|
    + mean |dy|. All starts run at once; the start with the smallest cosine distance (without TV) is the answer; `polish` then minimizes the
    squared distance, without TV and without clamping. If the attacker knows the size of the errors in the update, guesses that fit as well
    as the true pictures would are not fitted further (`Descent`). If the attacker knows or estimates this size, polishing includes TV with
    a weight that follows from it (`attacks/_polish.py`). Labels are granted or recovered from the update. Local steps (FedAvg) are replayed
    one by one.
    Unlike the paper: the default TV weight is 0.001. The paper's section 5 names 0.01 as usual, its appendix names a weight for each table,
    and 0.1 is the default of its code, which also takes no signs by default. On LeNet 0.001 scores about 9 dB more than 0.1, and 4 more
    than 0.01 (benchmarks/published/inverting_gradients_lenet.py). Coarse first, half of the steps move pictures of half the size
    (docs/decisions/0022-half-the-size-first.md). On ResNet18, which has ReLU, L-BFGS added nothing.
    Source: Geiping et al. 2020, equations 4 and 6, section 5; soft sign, cosine schedule and tiles follow the package breaching.
    """

    title = "Guess and compare by direction (Inverting Gradients)"
    short = "Inverting Gradients"
    plain = "Searches for a picture whose gradient points the same way as the one received, and prefers smooth pictures."
    hint = "Works on deeper networks, on batches and on local steps. A larger smoothness weight gives calmer but blurrier pictures."
    source = "https://arxiv.org/abs/2003.14053"
    reads_labels = True
    strongest = {"steps": 1500, "schedule": COARSE_FIRST}
    loss_name = "cosine gradient distance"
    presets = {
        "paper (Geiping et al. 2020; model with CIFAR-10 normalisation)": {
            "steps": 4800,
            "step_size": 0.1,
            "tv_weight": 0.01,
            "signed": True,
            "clamped": True,
            "starts": 1,
        },
        "their code as it comes (no signs)": {"steps": 4800, "step_size": 0.1, "tv_weight": 0.1, "signed": False},
        "paper, local steps (section 6)": {"steps": 4800, "step_size": 1, "tv_weight": 0.000001},
        "breaching (soft sign, cosine schedule, tiles)": {"soft": True, "schedule": "cosine", "start": "tiles", "keep_best": True},
        "quick look": {"steps": 1000},
        "fast (first at half the size)": {"steps": 375, "tv_weight": 0.0001, "schedule": COARSE_FIRST},
        "fast on smooth networks such as LeNet (then L-BFGS)": {"steps": 375, "tv_weight": 0.0001, "polish": 40},
    }

    steps: int = param(4800, 1, 24000, "Optimiser steps.")
    step_size: float = param(0.1, 0.0001, 10, "How far one step may move a pixel at first, in the model's normalised units.")
    tv_weight: float = param(0.001, 0, 10, "How strongly smooth pictures are preferred (weight of the total variation).")
    starts: int = param(1, 1, 16, "How many random pictures to start from, all at once; the one that matches best is shown.")
    signed: bool = flag(True, "Use only the sign of each pixel's gradient, so that every pixel moves equally fast.")
    soft: bool = flag(False, "Soften the sign towards the end: small gradients then count as small.")
    clamped: bool = flag(True, "Keep every pixel between black and white.")
    keep_best: bool = flag(False, "Answer with the best picture on the way, instead of the last one.")
    median: bool = flag(False, "Smooth away single odd pixels every 500 steps (median of 3 x 3).")
    schedule: str = choice(
        "steps",
        (*SCHEDULES, COARSE_FIRST),
        "How the step size falls: tenfold three times, along a cosine, or not at all. Coarse first: tenfold three times; the first half "
        "of the steps moves pictures of half the height and width, which are enlarged smoothly.",
    )
    start: str = choice("normal", STARTS, "What the search starts from: noise, even noise, plain grey, or a small tile of noise, repeated.")
    combine: str = choice("closest", COMBINE, "What to make of several starts: the closest one, or the mean or median of every pixel.")
    distance: str = choice("cosine", DISTANCES, "How two gradients are compared.")
    layers: str = choice("all", LAYERS, "Which tensors of the gradient are compared.")
    layer_weights: str = choice("equal", WEIGHTS, "Whether early layers count more than late ones.")
    polish: int = param(
        0,
        0,
        300,
        "L-BFGS steps from the answer, twice as many behind errors of unknown size. Their size sets the weight of smoothness.",
    )
    label_rule: str = rule_field()

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        labels, note = labels_of(seen, self.label_rule)
        z = torch.stack([start(self.start, seen, rng) for _ in range(self.starts)])  # (S, B, C, H, W)
        z, begin_note = with_examples(seen, z, labels)
        note |= begin_note
        goal = self._goal(seen)
        note |= goal.note
        answer = Snapshot(0, z[0], labels, torch.tensor(torch.inf))
        for answer in self._descent(goal.floor).run(seen, z, labels, goal.distance, self._prior(), note=note, rng=rng):
            yield answer
        yield from self._polished(seen, answer, rng)

    @property
    def batchable(self) -> bool:
        return self.starts == 1

    def run_batched(self, seen: Sequence[Observation], rngs: Sequence[torch.Generator]) -> Iterator[tuple[int, Snapshot]]:
        labels, label_notes = zip(*(labels_of(observation, self.label_rule) for observation in seen), strict=True)
        starts = [start(self.start, observation, rng)[None] for observation, rng in zip(seen, rngs, strict=True)]
        guesses, start_notes = zip(*map(with_examples, seen, starts, labels), strict=True)
        z = torch.cat(guesses)
        goals, answers = [self._goal(observation) for observation in seen], dict[int, Snapshot]()
        notes = [left | right | goal.note for left, right, goal in zip(label_notes, start_notes, goals, strict=True)]
        match, descent = [goal.distance for goal in goals], self._descent(floors_of(goals))
        for lane, answer in descent.run_batched(seen, z, labels, match, self._prior(), notes=notes, rng=rngs[0]):
            yield lane, answer
            answers[lane] = answer
        for lane, answer in answers.items():
            yield from ((lane, last) for last in self._polished(seen[lane], answer, rngs[lane]))

    def _descent(self, floor: Tensor | None) -> Descent:
        return Descent(
            steps=self.steps,
            step_size=self.step_size,
            schedule="steps" if self.schedule == COARSE_FIRST else self.schedule,
            signed=self.signed,
            soft=self.soft,
            clamped=self.clamped,
            keep_best=self.keep_best,
            median=self.median,
            combine=self.combine,
            coarse=COARSE if self.schedule == COARSE_FIRST else 0.0,
            floor=floor,
        )

    def _goal(self, seen: Observation) -> Goal:
        return goal_of(seen, self.distance, importance(seen.as_gradient(), self.layers, self.layer_weights))

    def _prior(self) -> Prior | None:
        return Smoothness(self.tv_weight) if self.tv_weight else None

    def _polished(self, seen: Observation, answer: Snapshot, rng: torch.Generator) -> Iterator[Snapshot]:
        """Improve the answer by L-BFGS, with at most `polish` steps in each search (`_polish.polished`)."""
        if not self.polish:
            return
        goal = self._goal(seen)
        for last in polished(seen, answer, rng, steps=self.polish, smooth=self.tv_weight > 0):
            loss = goal.distance(replays(seen, last.x.unsqueeze(0), answer.y))[0].detach()
            yield replace(last, step=answer.step + last.step, loss=loss)
