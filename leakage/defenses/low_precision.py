"""Low precision: the client sends every entry of the update with fewer bits."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from leakage.defenses._each import average_rounds, change_tensors, change_tensors_at_random, exact_errors, snap_to_received
from leakage.engine.core import AdaptiveStrategy, Client, Defense, Params, Published, Received, StepRng, choice

FLOATS = {"fp16": torch.float16, "bf16": torch.bfloat16}
ROUNDINGS = ("nearest", "stochastic")
LEVELS = 127  # of int8, on either side of 0


@dataclass(frozen=True, kw_only=True)
class LowPrecision(Defense):
    """Send every entry in 16 bits (fp16, bf16) or in 8: int8 sends round(g / s) with s = max|g| / 127 of its tensor.

    Rounding "stochastic" (int8 alone) keeps the mean: floor(g / s + u) with u ~ U(0, 1). fp16 rounds sizes below 3e-8 to 0: half of
    2^-24, its smallest number.
    An adaptive attacker has three strategies. "within the step" ignores an entry of the guess that would be rounded to the received
    number. "round the guess" rounds the gradient of the guess to the nearest number, and differentiates as if nothing were rounded
    (straight-through, Bengio et al. 2013). Both accept every guess that rounds to what arrived, and there are many such guesses. A naive
    attacker takes what arrived for the gradient, aims at the middle of each step, and comes closer (8 dB on LeNet, see
    benchmarks/published/within_the_step.py). "average the rounds" averages what was received over the rounds: after stochastic rounding
    this mean converges to the gradient.
    Source: Zhu et al. 2019, section 5.1.
    """

    title = "Fewer digits (low precision)"
    short = "Low precision"
    plain = "The phone sends every entry of the gradient with fewer digits, which also saves bandwidth."
    hint = "With 16 bits, pictures come back about as without. With 8 bits, most small entries become 0: try which attacks suffer."
    source = "https://arxiv.org/abs/1906.08935"
    published = Published("Published: 16 bits do not protect, 8 bits do.")
    backfires = (  # benchmarks/published/within_the_step.py
        "Why the adaptive attacker does worse than the naive one: many pictures have a gradient that rounds to the numbers received. The "
        "adaptive attacker ignores what rounding may have changed, and stops at the first of these pictures. The naive attacker aims at "
        "the middle of every rounding step, and comes closer."
    )
    presets = {"int8 (Zhu et al. 2019)": {"number": "int8"}, "fp16 (Zhu et al. 2019)": {"number": "fp16"}}

    number: str = choice(
        "int8", ("int8", *FLOATS), "The format of an entry: 8 bits, or 16 bits (bf16 has fewer digits and a larger range than fp16)."
    )
    rounding: str = choice("nearest", ROUNDINGS, "How int8 rounds: to the nearest level, or at random so that the mean is right.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        if self.number == "int8" and self.rounding == "stochastic":
            return change_tensors_at_random(client, step_rng, "low_precision", self._at_random)
        return self.surrogate(client, {})

    def surrogate(self, client: Client, received: Params) -> Client:
        return change_tensors(client, lambda _name, g: g + (self.round_to_format(g.detach()) - g.detach()))

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {
            "within the step": AdaptiveStrategy(
                "known: an entry may lie anywhere among the numbers that are rounded to the one received",
                lambda client, received: snap_to_received(client, received, {name: self.slack(g) for name, g in received.items()}),
                exact=True,
                errors=exact_errors,
            ),
            "round the guess": AdaptiveStrategy("known: the guess is rounded too", self.surrogate, errors=self.errors),
            "average the rounds": replace(average_rounds("low_precision"), errors=self._of_the_mean),
        }

    def errors(self, incoming: Params, received: Received) -> Params | None:
        """Return the error variances: {} (no errors) for an exact gradient rounded to the nearest, None (unknown) otherwise.

        The attacker imitates rounding to the nearest exactly.
        """
        return None if incoming or self.rounding == "stochastic" else {}

    def _of_the_mean(self, incoming: Params, received: Received) -> Params | None:
        """Return the error variances of the mean over rounds; None where they are not known.

        With 16 bits every round has the same error, of variance step^2 / 12, where step is the distance between two numbers. With int8
        and stochastic rounding, a fraction f of R rounds was rounded up, and the mean has the variance level^2 f (1 - f) / (R - 1); f
        follows from the mean itself. The variances are not known for noisy or added-up gradients, for int8 rounded to the nearest (most
        entries lie within one step of 0, at unknown positions), and after one round of stochastic rounding.
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
        """Return for each entry, a 16-bit number, the distance to the 16-bit number of the next larger size."""
        kind = torch.finfo(FLOATS[self.number])
        return 2.0 ** g.abs().clamp(min=kind.smallest_normal).log2().floor() * kind.eps

    def slack(self, g: Tensor) -> Tensor:
        """Return how far each entry of the gradient can be from the received entry."""
        if self.number in FLOATS:
            kind = torch.finfo(FLOATS[self.number])
            return g.abs().clamp(min=kind.smallest_normal) * kind.eps / 2
        return (_level(g) * (1 if self.rounding == "stochastic" else 0.5)).expand_as(g)

    def round_to_format(self, g: Tensor) -> Tensor:
        """Round every entry to the nearest number of the format."""
        if self.number in FLOATS:
            return g.to(FLOATS[self.number]).to(g)
        level = _level(g)
        return (g / level).round() * level

    def _at_random(self, g: Tensor, rng: torch.Generator) -> Tensor:
        level = _level(g.detach())
        up = torch.rand(g.shape, generator=rng).to(g)
        return g + ((g.detach() / level + up).floor() * level - g.detach())


def _level(g: Tensor) -> Tensor:
    """Return the distance () between two neighboring values that int8 can represent, for the tensor g: max|g| / 127."""
    return g.abs().max().clamp(min=torch.finfo(g.dtype).tiny) / LEVELS
