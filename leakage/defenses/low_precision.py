"""Low precision: fewer bits for every entry of the update."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from leakage.defenses._each import at_random, averaging, changed, none_added, within
from leakage.engine.core import AdaptiveStrategy, Client, Defense, Params, Published, Received, StepRng, choice

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
    at random is right on average: the mean over rounds closes in on the gradient.
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
    rounding: str = choice("nearest", ROUNDINGS, "How int8 rounds: to the nearest level, or at random, right on average.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        if self.number == "int8" and self.rounding == "stochastic":
            return at_random(client, step_rng, "low_precision", self._at_random)
        return self.surrogate(client, {})

    def surrogate(self, client: Client, received: Params) -> Client:
        return changed(client, lambda update: {name: g + (self.rounded(g.detach()) - g.detach()) for name, g in update.items()})

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {
            "within the step": AdaptiveStrategy(
                "known: an entry may lie anywhere among the numbers that are rounded to the one received",
                lambda client, received: within(client, received, {name: self.slack(g) for name, g in received.items()}),
                exact=True,
                errors=none_added,
            ),
            "round the guess": AdaptiveStrategy("known: the guess is rounded too", self.surrogate, errors=self.errors),
            "average the rounds": replace(averaging("low_precision"), errors=self._of_the_mean),
        }

    def errors(self, incoming: Params, received: Received) -> Params | None:
        """None where an exact gradient is rounded to the nearest; how one is rounded at random is not known."""
        return None if incoming or self.rounding == "stochastic" else {}

    def _of_the_mean(self, incoming: Params, received: Received) -> Params | None:
        """Of 16 bits a twelfth of the squared step between two numbers, every round the same; of int8 rounded at random as below.

        Of R rounds a share f was rounded up: the mean is wrong by level^2 f (1 - f) / (R - 1), of which f is read from the mean itself.
        Of int8 rounded to the nearest it is not known: most entries lie within one step of 0, nobody knows where. Nor of one round.
        """
        rounds = int(received.state.get("low_precision.rounds", 0)) + 1
        if incoming or not received.single:
            return None
        if self.number in FLOATS:
            return {name: self._step(g).square() / 12 for name, g in received.update.items()}
        if self.rounding == "nearest" or rounds == 1:
            return None
        levels = {name: _level(g) for name, g in received.update.items()}
        up = {name: (g / levels[name]).remainder(1) for name, g in received.update.items()}
        return {name: levels[name].square() * f * (1 - f) / (rounds - 1) for name, f in up.items()}

    def _step(self, g: Tensor) -> Tensor:
        """From each number of 16 bits to the next."""
        kind = torch.finfo(FLOATS[self.number])
        return 2.0 ** g.abs().clamp(min=kind.smallest_normal).log2().floor() * kind.eps

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

    def _at_random(self, g: Tensor, rng: torch.Generator) -> Tensor:
        level = _level(g.detach())
        up = torch.rand(g.shape, generator=rng).to(g)
        return g + ((g.detach() / level + up).floor() * level - g.detach())


def _level(g: Tensor) -> Tensor:
    """The step between two levels of int8."""
    return g.abs().max().clamp(min=torch.finfo(g.dtype).tiny) / LEVELS
