"""GGL: the attack searches for the latent code of a trained generator in place of pixels."""

from collections.abc import Iterator
from dataclasses import dataclass

from leakage.attacks._generative import ASSUMED, GENERATORS, LATENT_SEARCH, GenerativeAttack, GenerativeSearch
from leakage.engine.core import Snapshot, choice, param
from leakage.engine.labels import rule_field


@dataclass(frozen=True, kw_only=True)
class GGL(GenerativeAttack):
    """min over z of D(g(G(z), y), g*) + norm_weight |mean z^2 - 1|, from z ~ N(0, 1), by Adam with a cosine schedule; x = G(z).

    g(x, y) is the gradient of pictures x with labels y, g* the received gradient. G is a generator that was trained on pictures of this
    kind, never on the attacked pictures; the attack finds only pictures that G can produce. All starts run at once, and the start with the
    smallest distance is the answer. As every attack here, GGL imitates what the attacker knows of the protection: clipping, the entries
    that arrived, the columns that Soteria left. The paper estimates these from g*.
    Unlike the paper: Adam on z in place of CMA-ES, which needs 25,000 gradients; D is the cosine distance; one term keeps the length of z
    near that of N(0, 1), in place of the KL divergence of the mean and standard deviation of z.
    Source: Li et al. 2022, equation 4 and section 4.
    """

    title = "Guess and compare what a trained generator knows (GGL)"
    short = "GGL"
    plain = "Uses a network that has learned to generate such pictures, and looks for the picture with the best-fitting gradient."
    hint = "Behind noise it still shows a picture, and a convincing one even where it is wrong: look at whether it is the right one."
    source = "https://arxiv.org/abs/2203.15696"
    way = "Generate from a few numbers (the latent code), compare, improve these."
    loss_name = "gradient distance"
    presets = {
        "paper (Li et al. 2022; its Adam: 2,500 steps of 0.1)": {"steps": 2500, "step_size": 0.1, "starts": 1, "norm_weight": 0.1},
        "Ours: three starts": {"steps": 300, "starts": 3},
        "control: a generator that never learned": {"generator": "untrained"},
    }

    generator: str = choice("digits", GENERATORS, ASSUMED)
    steps: int = param(*LATENT_SEARCH["steps"])
    step_size: float = param(*LATENT_SEARCH["step_size"])
    starts: int = param(*LATENT_SEARCH["starts"])
    norm_weight: float = param(*LATENT_SEARCH["norm_weight"])
    distance: str = choice("cosine", ("cosine", "squared"), "How two gradients are compared.")
    label_rule: str = rule_field()

    def reconstruct(self, search: GenerativeSearch) -> Iterator[Snapshot]:
        yield from self.latent_code(search)
