"""GIAS: after its numbers the generator's own weights are searched, so that it can paint what it has not learned."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from leakage.attacks._generative import GENERATORS, GenerativeSearch, load_prior, shifted
from leakage.attacks._labels import labels_of
from leakage.attacks.ggl import grey_answer
from leakage.data.generators import MissingGeneratorError
from leakage.engine.core import Attack, Observation, Snapshot, choice, param
from leakage.engine.labels import rule_field
from leakage.engine.matching import distance


@dataclass(frozen=True, kw_only=True)
class GIAS(Attack):
    """GGL, and from its z on min over the generator's weights w of D(g(G_w(z), y), g*), by Adam with small steps.

    The file of the generator stays as it is: what changes is this attack's own copy. D is the cosine distance.
    Unlike the paper: one generator for all pictures of the batch, where it takes one for each.
    Source: Jeon et al. 2021, algorithm 1 and section 4.
    """

    title = "Guess and compare while teaching the painter (GIAS)"
    short = "GIAS"
    plain = "Lets a trained painter find the picture roughly, then changes the painter itself until its picture fits."
    hint = "It can leave what it has learned behind, so without noise it gets sharper than GGL. Behind noise it learns the noise."
    source = "https://arxiv.org/abs/2110.14962"
    way = "Paint from a few numbers, then change the painter."
    loss_name = "cosine gradient distance"
    reads_labels = True
    evaluations_per_step = 12
    presets = {"paper (Jeon et al. 2021: 8,000 steps of 0.00001)": {"weight_steps": 8000, "weight_step_size": 0.00001}}

    generator: str = choice("digits", GENERATORS, "What the attacker has learned to paint: the assumption of this attack.")
    steps: int = param(300, 1, 10000, "Optimiser steps of the search for the painter's numbers, all starts at once.")
    step_size: float = param(0.1, 0.0001, 10, "How far one of these steps moves a number at first.")
    starts: int = param(3, 1, 16, "How many random pictures to start from; it goes on from the one that matches best.")
    norm_weight: float = param(0.0001, 0, 10, "How strongly the painter's numbers are kept as large as random ones.")
    weight_steps: int = param(8000, 1, 20000, "Optimiser steps of the search for the painter's weights, about 3 milliseconds each.")
    weight_step_size: float = param(0.00001, 0.0000001, 0.1, "How far one of these steps moves a weight.")
    label_rule: str = rule_field()

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        labels, note = labels_of(seen, self.label_rule)
        try:
            prior = load_prior(self.generator, seen, rng)
        except MissingGeneratorError as error:
            yield grey_answer(seen, labels, note | {"event": str(error)})
            return
        match = distance("cosine", seen.as_gradient(), entry_weights=seen.entry_weights)
        search = GenerativeSearch(seen, prior, labels, match, note | prior.note, rng)
        numbers = search.latents(steps=self.steps, step_size=self.step_size, starts=self.starts, norm_weight=self.norm_weight)
        z, last = yield from shifted(numbers, 0, {"searches": "the painter's numbers"})
        weights = search.weights(z, steps=self.weight_steps, step_size=self.weight_step_size)
        yield from shifted(weights, last.step, {"searches": "the painter's weights"})
