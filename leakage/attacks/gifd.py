"""GIFD: the attack searches for a generator's latent code, then, stage after stage, for the features inside the generator."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from leakage.attacks._adam import Note
from leakage.attacks._generative import ASSUMED, GENERATORS, LATENT_SEARCH, GenerativeAttack, GenerativeSearch, Search, run_as_stage
from leakage.engine.core import Observation, Snapshot, choice, param
from leakage.engine.labels import rule_field
from leakage.engine.whole_distance import flatten

SLACK, SURE = 0.005, 2.0  # the rule allows the truth's mean distance plus SLACK and SURE standard deviations
KEPT = "Kept is stage {} of {}, at a distance of {:.3f}: it {}."


@dataclass(frozen=True, kw_only=True)
class GIFD(GenerativeAttack):
    """GGL finds h_0 = z; then for k = 1, 2, ...: h_k = stage_k(h_(k-1)), and min over h_k of D(g(G_k(h_k), y), g*) + tv_weight TV.

    z are latent codes, g(x, y) is the gradient of pictures x with labels y, g* the received gradient, D the cosine distance.
    G_k are the generator's stages behind stage k; behind the last stage h is the picture itself. Each h_k stays in the L1 ball around
    its start, with a fraction of the start's L1 norm as the radius. Adam has a cosine schedule.
    Every stage's answer is reported, and the answer of one stage is kept. Deeper stages always fit better, also to noise. So the attack
    keeps the first stage k >= 1 that is no further than the true pictures would be on average (`engine/discrepancy.py`), plus 0.005 and
    two standard deviations of their distance; if there is no such stage, or no noise, it keeps the nearest. An adaptive attacker knows
    from the protection how large the errors are; a naive attacker may expect `noise`.
    Unlike the paper: fewer and smaller steps, and no masks of the cosine; the paper keeps the stage of least loss.
    Source: Fang et al. 2023, algorithm 1.
    """

    title = "Guess and compare stage by stage (GIFD)"
    short = "GIFD"
    plain = "Lets a trained generator find the picture roughly, then corrects what it generates from the inside, layer after layer."
    hint = "Set how strong the noise is: then it stops correcting before the noise shows. Early stages rely most on what was learned."
    source = "https://arxiv.org/abs/2308.04699"
    way = "Generate from a few numbers, then correct the picture."
    loss_name = "cosine gradient distance"
    evaluations_per_step = 2
    presets = {
        "paper (Fang et al. 2023: 1,000 steps a stage)": {"stage_steps": 1000, "stage_step_size": 0.1, "tv_weight": 0.0001, "starts": 4},
        "Ours: 150 steps a stage": {"stage_steps": 150},
        "Ours, for faces": {"generator": "faces", "radius": 0.3, "tv_weight": 0.01},
        "control: a generator that never learned": {"generator": "untrained"},
    }

    generator: str = choice("digits", GENERATORS, ASSUMED)
    noise: float = param(0.0, 0, 1000, "The standard deviation of the noise that a naive attacker expects.")
    steps: int = param(*LATENT_SEARCH["steps"])
    step_size: float = param(*LATENT_SEARCH["step_size"])
    starts: int = param(*LATENT_SEARCH["starts"])
    norm_weight: float = param(*LATENT_SEARCH["norm_weight"])
    stages: int = param(4, 1, 5, "How many stages to search after that.")
    stage_steps: int = param(150, 1, 10000, "Optimiser steps of each stage.")
    stage_step_size: float = param(0.03, 0.0001, 10, "How far one step moves a feature at first.")
    radius: float = param(0.1, 0, 1000, "How far features may move in a stage, as a fraction of the sum of their sizes at its start (L1).")
    tv_weight: float = param(0.001, 0, 10, "How strongly smooth pictures are preferred in the stages (weight of the total variation).")
    label_rule: str = rule_field()

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        expected = {name: g.new_full((), self.noise**2) for name, g in seen.as_gradient().items()}
        if seen.knowledge.errors is None and self.noise:
            seen = replace(seen, knowledge=replace(seen.knowledge, errors=expected))
        yield from super().run(seen, rng)

    def reconstruct(self, search: GenerativeSearch) -> Iterator[Snapshot]:
        h, answers, count = torch.empty(0), list[Snapshot](), min(self.stages, len(search.prior.stages))
        for stage in range(count + 1):
            begun = answers[-1].step if answers else 0
            if stage:
                h = search.prior.pass_stage(h, stage - 1).detach()
            h, last = yield from run_as_stage(self._search(search, stage, h), begun, {"stage": stage})
            answers.append(replace(last, x=last.x.clone()))
        distances, entries = [float(answer.loss) for answer in answers], len(flatten(search.seen.as_gradient()))
        kept, why = choose_stage(distances, search.goal.floor, entries)
        best = answers[kept]
        choice_note: Note = {"stage": kept, "event": KEPT.format(kept, count, float(best.loss), why)}
        views = {f"stage {stage}": answer.x for stage, answer in enumerate(answers)}
        yield replace(best, step=answers[-1].step, note=best.note | choice_note, views=views)

    def _search(self, search: GenerativeSearch, stage: int, h: Tensor) -> Search:
        """Return the search for the features of a stage, which starts from h (1, B, ...); for stage 0 the search for the latent code."""
        if not stage:
            return self.latent_code(search)
        return search.features(
            h, stage, steps=self.stage_steps, step_size=self.stage_step_size, radius=self.radius, tv_weight=self.tv_weight
        )


def deviation_of(expected: float, entries: int) -> float:
    """Compute the standard deviation of the cosine distance between a gradient with n = `entries` entries and the same with noise.

    `expected` is the mean of that distance. With s^2, the squared norm of the noise over that of the gradient, and q = 1 + s^2 the mean is
    1 - q^(-1/2), and the standard deviation s^2 q^(-3/2) sqrt((s^2 + 1/2) / n) to first order:
    cos = (1 + a) / sqrt(1 + 2 a + s^2 (1 + b)), where a, the noise along the gradient, has variance s^2 / n, and b, the relative deviation
    of the noise's squared norm, has variance 2 / n.
    """
    q = 1 / max(1 - expected, 1e-3) ** 2
    return (q - 1) / (q * math.sqrt(q)) * math.sqrt((q - 0.5) / entries)


def choose_stage(distances: list[float], floor: Tensor | None, entries: int) -> tuple[int, str]:
    """Return the stage to keep, counted from 1 on, and the reason: the first stage as near as the truth would be, or else the nearest.

    Args:
        distances: the distance of each stage's answer; that of stage 0 is not considered.
        floor: the expected distance of the true pictures, (); None: 0, or not known.
        entries: the number of entries of the gradient.
    """
    stages, expected = range(1, len(distances)), 0.0 if floor is None else float(floor)
    for stage in stages if expected else ():
        if distances[stage] <= expected + SLACK + SURE * deviation_of(expected, entries):
            return stage, f"is the first that is no further away than the truth would be behind the noise ({expected:.3f})"
    return min(stages, key=distances.__getitem__), f"comes nearest; the truth would be at {expected:.3f}"
