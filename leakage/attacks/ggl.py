"""GGL: the numbers that a trained generator paints from are searched in place of the pixels."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from leakage.attacks._generative import GENERATORS, GenerativeSearch, load_prior
from leakage.attacks._labels import labels_of
from leakage.attacks.linear_layer import snapshot_of
from leakage.data.generators import MissingGeneratorError
from leakage.engine.core import Attack, Observation, Snapshot, choice, param
from leakage.engine.labels import rule_field
from leakage.engine.matching import distance


@dataclass(frozen=True, kw_only=True)
class GGL(Attack):
    """min over z of D(g(G(z), y), g*) + norm_weight |mean z^2 - 1|, from z ~ N(0, 1), by Adam along a cosine; x = G(z).

    G is a generator that was trained on pictures of this kind, never on those that are attacked, and it finds only what it can paint. All
    starts are played at once, and the one with the smallest distance is the answer. What the attacker knows of the protection is imitated,
    as by every attack here: clipping, the entries that arrived, the columns that Soteria left. The paper estimates these from g*.
    Unlike the paper: Adam on z in place of CMA-ES, which needs 25,000 gradients; D is the cosine distance; the length of z is kept near
    that of N(0, 1) by one term, in place of the KL divergence of its mean and standard deviation.
    Source: Li et al. 2022, equation 4 and section 4.
    """

    title = "Guess and compare what a trained painter knows (GGL)"
    short = "GGL"
    plain = "Lets a network that has learned to paint such pictures look for the one whose gradient fits best."
    hint = "Noise cannot make it paint noise. But it always paints something convincing: look at whether that is the right picture."
    source = "https://arxiv.org/abs/2203.15696"
    way = "Paint from a few numbers, compare, improve these."
    loss_name = "gradient distance"
    reads_labels = True
    presets = {
        "paper (Li et al. 2022; its Adam: 2,500 steps of 0.1)": {"steps": 2500, "step_size": 0.1, "starts": 1, "norm_weight": 0.1},
        "Ours: three starts": {"steps": 300, "starts": 3},
        "control: a painter that never learned": {"generator": "untrained"},
    }

    generator: str = choice("digits", GENERATORS, "What the attacker has learned to paint: the assumption of this attack.")
    steps: int = param(300, 1, 10000, "Optimiser steps, of all starts at once.")
    step_size: float = param(0.1, 0.0001, 10, "How far one step moves the painter's numbers at first.")
    starts: int = param(3, 1, 16, "How many random pictures to start from; the one that matches best is shown.")
    norm_weight: float = param(0.0001, 0, 10, "How strongly the painter's numbers are kept as large as random ones.")
    distance: str = choice("cosine", ("cosine", "squared"), "How two gradients are compared.")
    label_rule: str = rule_field()

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        labels, note = labels_of(seen, self.label_rule)
        try:
            prior = load_prior(self.generator, seen, rng)
        except MissingGeneratorError as error:
            yield grey_answer(seen, labels, note | {"event": str(error)})
            return
        match = distance(self.distance, seen.as_gradient(), entry_weights=seen.entry_weights)
        search = GenerativeSearch(seen, prior, labels, match, note | prior.note, rng)
        yield from search.latents(steps=self.steps, step_size=self.step_size, starts=self.starts, norm_weight=self.norm_weight)


def grey_answer(seen: Observation, labels: torch.Tensor, note: dict[str, str | int | float]) -> Snapshot:
    """What is shown where nothing can be painted."""
    x = torch.full((seen.batch_size, *seen.image_shape), 0.5, device=seen.device, dtype=seen.dtype)
    blank = snapshot_of(seen, x, labels)
    return Snapshot(1, blank.x, blank.y, blank.loss, note)
