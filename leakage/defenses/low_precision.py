"""Low precision: fewer bits for every entry of the update."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import at_random, averaging, changed, within
from leakage.engine.core import AdaptiveStrategy, Client, Defense, Params, Published, StepRng, choice

FLOATS = {"fp16": torch.float16, "bf16": torch.bfloat16}
ROUNDINGS = ("nearest", "stochastic")
LEVELS = 127  # of int8 on either side of 0


@dataclass(frozen=True, kw_only=True)
class LowPrecision(Defense):
    """Every entry in 16 bits (fp16, bf16), or in 8: int8 sends round(g / s) with s = max|g| / 127 of its tensor.

    Rounding "stochastic" (int8 alone) keeps the mean: floor(g / s + u) with u ~ U(0, 1). fp16 turns what is below 3e-8 into 0: half of
    2^-24, its smallest number.
    An attacker who knows it minds an entry of its guess only as far as it lies outside the numbers that would have been rounded to the
    one received; or rounds its own gradient likewise, to the nearest, and differentiates as if nothing were rounded (straight-through,
    Bengio et al. 2013). Both hold every guess for right that rounds to what arrived, and many do: who takes what arrived for the gradient
    aims at the middle of each step, and comes closer (8 dB on LeNet, see benchmarks/published/within_the_step.py). What was rounded by
    chance is right on average: the mean over rounds closes in on the gradient.
    Source: Zhu et al. 2019, section 5.1.
    """

    title = "Fewer digits (low precision)"
    short = "Low precision"
    plain = "The phone sends every entry of the gradient with fewer digits, which also saves bandwidth."
    hint = "With 16 bits pictures come back about as without. With 8 bits, most small entries become 0: see which attacks mind."
    source = "https://arxiv.org/abs/1906.08935"
    published = Published("Published: 16 bits do not protect, 8 bits do.")
    backfires = (  # benchmarks/published/within_the_step.py
        "Why knowing of rounding does worse than not knowing: many pictures have a gradient that rounds to the numbers received. Who "
        "forgives all that rounding may have changed ends at the first of them; the naive attacker aims at the middle of every step, and "
        "lands closer."
    )
    presets = {"int8 (Zhu et al. 2019)": {"number": "int8"}, "fp16 (Zhu et al. 2019)": {"number": "fp16"}}

    number: str = choice("int8", ("int8", *FLOATS), "How an entry is written: in 8 bits, or in 16 (bf16 has fewer digits and more range).")
    rounding: str = choice("nearest", ROUNDINGS, "How int8 rounds: to the nearest level, or by chance, right on average.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        if self.number == "int8" and self.rounding == "stochastic":
            return at_random(client, step_rng, "low_precision", self._by_chance)
        return self.surrogate(client, {})

    def surrogate(self, client: Client, received: Params) -> Client:
        return changed(client, lambda update: {name: g + (self.rounded(g.detach()) - g.detach()) for name, g in update.items()})

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {
            "within the step": AdaptiveStrategy(
                "known: an entry may lie anywhere among the numbers that are rounded to the one received",
                lambda client, received: within(client, received, {name: self.slack(g) for name, g in received.items()}),
                exact=True,
            ),
            "round the guess": AdaptiveStrategy("known: the guess is rounded too", self.surrogate),
            "average the rounds": averaging("low_precision"),
        }

    def slack(self, g: Tensor) -> Tensor:
        """How far an entry of the gradient can be from the one received."""
        if self.number in FLOATS:
            kind = torch.finfo(FLOATS[self.number])
            return g.abs().clamp(min=kind.smallest_normal) * kind.eps / 2
        return (_level(g) * (1 if self.rounding == "stochastic" else 0.5)).expand_as(g)

    def rounded(self, g: Tensor) -> Tensor:
        """Every entry to the nearest that the format has."""
        if self.number in FLOATS:
            return g.to(FLOATS[self.number]).to(g)
        level = _level(g)
        return (g / level).round() * level

    def _by_chance(self, g: Tensor, rng: torch.Generator) -> Tensor:
        level = _level(g.detach())
        up = torch.rand(g.shape, generator=rng).to(g)
        return g + ((g.detach() / level + up).floor() * level - g.detach())


def _level(g: Tensor) -> Tensor:
    """The step between two levels of int8."""
    return g.abs().max().clamp(min=torch.finfo(g.dtype).tiny) / LEVELS
