"""SVTPrivacy of NVIDIA FLARE: the sparse vector technique chooses a part of the entries, which are sent with noise."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import change_tensors, change_update_at_random
from leakage.defenses.percentile_privacy import STEPS
from leakage.engine.core import AdaptiveStrategy, Client, ClientState, Defense, Params, StepRng, choice, flag, param

AFTER, BEFORE = "after the fix", "before the fix"
SUM, COUNT, BARE = "svt_privacy.sum.", "svt_privacy.count.", "svt_privacy.bare."  # keys in the attacker's state, by parameter


@dataclass(frozen=True, kw_only=True)
class SVTPrivacy(Defense):
    """Send n = ceil(fraction N) of N entries u = Delta / steps as clip(u_j + Lap(2 gamma / noise_var), -gamma, gamma), the rest as 0.

    The choice: all remaining entries are tested repeatedly for |clip(u_j)| + Lap(4 gamma n / e2) >= tau + Lap(2 gamma / epsilon), with
    e2 = epsilon (2n)^(2/3) and one threshold for all, until n entries have passed. Of the entries that passed, n are drawn (fewer if with
    replacement). The number of tests until an entry passes is geometric, so it is drawn here in one step.
    Before the fix (NVFlare issue 343, 2022), entries that passed and were not drawn were sent without noise and without a limit.
    Epsilon, as FLARE adds it up, is epsilon + e2 + n noise_var for one client: 10,342 with its defaults and a million entries.

    An adaptive attacker replaces an entry u that arrived by the mean of clip(u + noise), which is nearly a sign where u exceeds the noise;
    an entry beyond gamma can only have been sent unchanged. Over several rounds the attacker averages each entry over its arrivals.
    Source: Lyu et al. 2017 (algorithm 7), Li et al. 2019, as in NVIDIA FLARE 2.x, with its defaults, up to the version of April 2026,
    which clips before it adds the noise.
    """

    title = "A few entries chosen and sent with noise (SVTPrivacy of NVFlare)"
    short = "SVTPrivacy"
    plain = "The phone sends a tenth of the changes, chosen almost at random, tiny and with much noise. It leaves the others out."
    hint = (
        "With its defaults little more than the sign of a change is left, and often not even that: the model learns little. "
        "Before its fix in 2022 most changes were sent unchanged: choose that version and attack."
    )
    stage = "update"
    elementwise = True
    source = "https://github.com/NVIDIA/NVFlare/blob/2.5/nvflare/app_common/filters/svt_privacy.py"
    presets = {"NVFlare before the fix of issue 343": {"version": BEFORE}}

    version: str = choice(
        AFTER, (AFTER, BEFORE), "Before its fix in 2022, entries that passed the test and were not drawn were sent unchanged."
    )
    fraction: float = param(0.1, 1e-4, 1, "Fraction of the entries that are sent.")
    epsilon: float = param(0.1, 1e-3, 1e4, "Privacy budget of the threshold alone, a small part of the whole budget.")
    noise_var: float = param(0.1, 1e-3, 1e6, "Privacy budget of each number sent, despite the name: a larger value means less noise.")
    gamma: float = param(1e-5, 1e-9, 1e3, "The largest size that an entry may have after one local step.")
    tau: float = param(1e-6, 0, 1e3, "The threshold, before its noise.")
    replace: bool = flag(True, "Whether entries are drawn with replacement, as FLARE does by default: some twice, so fewer are sent.")
    steps: int = param(1, 1, 10000, STEPS)

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        return change_update_at_random(client, step_rng, "svt_privacy", self.filter_update)

    def surrogate(self, client: Client, received: Params) -> Client:
        """Return the imitated client with each entry that arrived replaced by the mean of what would be sent for it, the others by 0.

        An entry that arrived beyond the limit keeps the value of the guess.
        """

        def expected(name: str, g: Tensor) -> Tensor:
            arrived = received[name]
            return torch.where(self.mask_bare(arrived), g, torch.where(arrived != 0, self.mean_sent(g), torch.zeros_like(g)))

        return change_tensors(client, expected)

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {
            "what arrived": AdaptiveStrategy(
                "known: where an entry arrived, the guess is compared as noise leaves it on average, or as it is without noise",
                self.surrogate,
            ),
            "average the rounds": AdaptiveStrategy(
                "known: each entry is averaged over the rounds in which it arrived, and its weight is their number",
                self.surrogate,
                invert_update=self._average_arrivals,
                entry_weights=lambda received, state: _by_name(self._add_arrivals(received, state), COUNT),
                infer_state=self._add_arrivals,
                averaging=True,
            ),
        }

    def pure_epsilon(self, entries: int) -> float:
        n = self.count(entries)
        return math.inf if self.version == BEFORE else self.epsilon + self.epsilon * (2 * n) ** (2 / 3) + n * self.noise_var

    def privacy_unit(self) -> str:
        return "all that one phone holds, as FLARE counts it, if every change is limited to gamma"

    def count(self, entries: int) -> int:
        """Return how many of `entries` entries are sent at most: the fraction `fraction`, rounded up."""
        return min(math.ceil(entries * self.fraction), entries)

    @property
    def limit(self) -> float:
        """The limit gamma * steps, to which an entry with noise is clamped."""
        return self.gamma * self.steps

    def filter_update(self, update: Params, rng: torch.Generator) -> Params:
        """Choose the entries that are sent and add their noise; for derivatives, the choice and the noise count as constants."""
        u = torch.cat([g.detach().flatten() for g in update.values()]).double().cpu() / self.steps  # (N,)
        passed = self.test_entries(u, rng)
        number = self.count(len(u))
        indices = torch.randint(len(passed), (number,), generator=rng) if self.replace else torch.randperm(len(passed), generator=rng)
        chosen = torch.zeros(len(u), dtype=torch.bool)
        chosen[passed[indices[:number]]] = True
        bare = torch.zeros_like(chosen)
        bare[passed] = self.version == BEFORE
        noise = laplace(len(u), 2 * self.gamma / self.noise_var, rng) * self.steps
        result, sizes = Params(), [g.numel() for g in update.values()]
        parts = (chosen.split(sizes), bare.split(sizes), noise.split(sizes))
        for (name, g), with_noise, plain, addition in zip(update.items(), *parts, strict=True):
            noisy = (g + addition.view(g.shape).to(g)).clamp(-self.limit, self.limit)
            rest = torch.where(plain.view(g.shape).to(g.device), g, torch.zeros_like(g))
            result[name] = torch.where(with_noise.view(g.shape).to(g.device), noisy, rest)
        return result

    def test_entries(self, u: Tensor, rng: torch.Generator) -> Tensor:
        """Return the indices of the entries u (N,) that pass a noisy test of their size until n = `count(N)` or more have passed.

        All entries are tested repeatedly against one noisy threshold. An entry passes each test with the same probability p, so it passes
        first in test 1 + floor(ln U / ln(1 - p)), U ~ U(0, 1).
        """
        number = self.count(len(u))
        threshold = self.tau + laplace(1, 2 * self.gamma / self.epsilon, rng)
        scale = 4 * self.gamma * number / (self.epsilon * (2 * number) ** (2 / 3))
        p = tail(threshold - u.abs().clamp(max=self.gamma), scale)
        first = ((1 - torch.rand(len(u), generator=rng, dtype=torch.float64)).log() / (-p).log1p()).floor()
        return (first <= first.kthvalue(number).values).nonzero().flatten()

    def mean_sent(self, g: Tensor) -> Tensor:
        """Return the mean over the noise of clip(g + noise, -l, l), which is sent for each entry g; l is `limit`.

        The mean is -l + the integral of P(g + noise > t) for t from -l to l.
        """
        limit, scale = self.limit, 2 * self.limit / self.noise_var

        def integral(s: Tensor) -> Tensor:
            return s.clamp(max=0) - scale / 2 * (-s.abs() / scale).exp()

        return integral(limit - g) - integral(-limit - g) - limit

    def mask_bare(self, received: Tensor) -> Tensor:
        """Return a mask of the entries beyond the limit, which must have been sent unchanged."""
        return received.abs() > received.new_tensor(self.limit) * (1 + 1e-6)

    def _add_arrivals(self, received: Params, state: ClientState) -> ClientState:
        """Return the state with what arrived in this round: for each entry the sum, the number, and the last value sent unchanged."""
        updated = dict(state)
        for name, g in received.items():
            updated[SUM + name] = g + state.get(SUM + name, torch.zeros_like(g))
            updated[COUNT + name] = (g != 0) + state.get(COUNT + name, torch.zeros_like(g))
            updated[BARE + name] = g.where(self.mask_bare(g), state.get(BARE + name, torch.zeros_like(g)))
        return updated

    def _average_arrivals(self, received: Params, state: ClientState) -> Params:
        arrivals = self._add_arrivals(received, state)
        means = {name: arrivals[SUM + name] / arrivals[COUNT + name].clamp(min=1) for name in received}
        return {name: bare.where(bare != 0, means[name]) for name, bare in _by_name(arrivals, BARE).items()}


def _by_name(state: ClientState, prefix: str) -> Params:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def laplace(count: int, scale: float, rng: torch.Generator) -> Tensor:
    """Draw Laplacian noise (count,), with the density exp(-|x| / scale) / (2 scale)."""
    u = torch.rand(count, generator=rng, dtype=torch.float64) - 0.5
    return -scale * u.sign() * (-2 * u.abs().clamp(max=0.5 - 2**-54)).log1p()


def tail(x: Tensor, scale: float) -> Tensor:
    """Return the probability that Laplacian noise of this scale is at least x, for each entry of x."""
    near = (-x.abs() / scale).exp() / 2
    return torch.where(x >= 0, near, 1 - near)
