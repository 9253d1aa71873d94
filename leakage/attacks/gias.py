"""GIAS: the attack searches for a generator's latent code, then for its weights, so that it can produce what it has not learned."""

from collections.abc import Iterator
from dataclasses import dataclass

from leakage.attacks._generative import ASSUMED, GENERATORS, LATENT_SEARCH, GenerativeAttack, GenerativeSearch, run_as_stage
from leakage.engine.core import Snapshot, choice, param
from leakage.engine.labels import rule_field


@dataclass(frozen=True, kw_only=True)
class GIAS(GenerativeAttack):
    """GGL finds z; then min over the generator's weights w of D(g(G_w(z), y), g*), by Adam with small steps.

    z are latent codes, g(x, y) is the gradient of pictures x with labels y, g* the received gradient, D the cosine distance. The attack
    changes a copy of the generator that the experiment grants.
    Unlike the paper: one generator serves all pictures of the batch; the paper trains a generator for each picture.
    Source: Jeon et al. 2021, algorithm 1 and section 4.
    """

    title = "Guess and compare while training the generator (GIAS)"
    short = "GIAS"
    plain = "Lets a trained generator find the picture roughly, then changes the generator itself until its picture fits."
    hint = "It can leave what it has learned behind, so without noise it gets sharper than GGL. Behind noise it learns the noise."
    source = "https://arxiv.org/abs/2110.14962"
    way = "Generate from a few numbers, then change the generator."
    loss_name = "cosine gradient distance"
    evaluations_per_step = 12
    presets = {
        "paper (Jeon et al. 2021: 8,000 steps of 0.00001)": {"weight_steps": 8000, "weight_step_size": 0.00001},
        "ours: 1,500 steps of 0.0001": {"weight_steps": 1500, "weight_step_size": 0.0001},
    }

    generator: str = choice("digits", GENERATORS, ASSUMED)
    steps: int = param(*LATENT_SEARCH["steps"])
    step_size: float = param(*LATENT_SEARCH["step_size"])
    starts: int = param(*LATENT_SEARCH["starts"])
    norm_weight: float = param(*LATENT_SEARCH["norm_weight"])
    weight_steps: int = param(8000, 1, 20000, "Optimiser steps of the search for the generator's weights, about 3 milliseconds each.")
    weight_step_size: float = param(0.00001, 0.0000001, 0.1, "How far one of these steps moves a weight.")
    label_rule: str = rule_field()

    def reconstruct(self, search: GenerativeSearch) -> Iterator[Snapshot]:
        z, last = yield from run_as_stage(self.latent_code(search), 0, {"searches": "the latent code"})
        weights = search.weights(z, steps=self.weight_steps, step_size=self.weight_step_size)
        yield from run_as_stage(weights, last.step, {"searches": "the generator's weights"})
