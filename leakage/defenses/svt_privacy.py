"""SVTPrivacy of NVIDIA FLARE: a share of the entries, chosen by the sparse vector technique, sent with noise."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import changed, drawn
from leakage.defenses.percentile_privacy import STEPS
from leakage.engine.core import AdaptiveStrategy, Client, ClientState, Defense, Params, StepRng, choice, flag, param

AFTER, BEFORE = "after the fix", "before the fix"
SUM, COUNT, BARE = "svt_privacy.sum.", "svt_privacy.count.", "svt_privacy.bare."  # of what arrived in the rounds watched, by parameter


@dataclass(frozen=True, kw_only=True)
class SVTPrivacy(Defense):
    """Of N entries u = Delta / steps, n = ceil(fraction N) are sent as clip(u_j + Lap(2 gamma / noise_var), -gamma, gamma), the rest as 0.

    Which: again and again all that remain are asked whether |clip(u_j)| + Lap(4 gamma n / e2) >= tau + Lap(2 gamma / epsilon), with
    e2 = epsilon (2n)^(2/3) and one threshold for all, until n have said yes; of those that did, n are drawn (with replacement: fewer).
    How often an entry is asked is drawn here in one step: it is geometric.
    Before the fix (NVFlare issue 343, 2022) those that said yes and were not drawn were sent as they were: no noise, no limit.
    Epsilon, as FLARE adds it up: epsilon + e2 + n noise_var, for all of one phone. With its defaults and a million entries that is 10,342.

    An attacker who knows it expects of an entry u, where one arrived, the mean of clip(u + noise), which is nearly a sign where u exceeds
    the noise; an entry beyond gamma can only be one sent as it was. Over several rounds it takes the mean of each entry's arrivals.
    Source: Lyu et al. 2017 (algorithm 7), Li et al. 2019, as NVIDIA FLARE 2.x has it, with its defaults, up to the version of April 2026,
    which cuts off before it adds the noise.
    """

    title = "A share of the entries chosen and sent with noise (SVTPrivacy of NVFlare)"
    short = "SVTPrivacy"
    plain = "The phone sends a tenth of the changes, chosen almost at random, tiny and with much noise; the others it leaves out."
    hint = (
        "With its defaults little but signs is left of a change, and often not those: there is little to learn from. "
        "Before its fix in 2022 most changes went out as they were: choose that version and attack."
    )
    stage = "update"
    elementwise = True
    source = "https://github.com/NVIDIA/NVFlare/blob/2.5/nvflare/app_common/filters/svt_privacy.py"
    presets = {"NVFlare before the fix of issue 343": {"version": BEFORE}}

    version: str = choice(AFTER, (AFTER, BEFORE), "Before its fix in 2022, entries that passed and were not drawn went out as they were.")
    fraction: float = param(0.1, 1e-4, 1, "Share of the entries that are sent.")
    epsilon: float = param(0.1, 1e-3, 1e4, "Privacy budget of the threshold; by far not the whole one.")
    noise_var: float = param(0.1, 1e-3, 1e6, "Privacy budget of each number sent, whatever its name says: larger is less noise.")
    gamma: float = param(1e-5, 1e-9, 1e3, "No entry is larger than this after one local step.")
    tau: float = param(1e-6, 0, 1e3, "The threshold, before its noise.")
    replace: bool = flag(True, "Entries are drawn with replacement, as FLARE does by default: some twice, so fewer are sent.")
    steps: int = param(1, 1, 10000, STEPS)

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        return drawn(client, step_rng, "svt_privacy", self.filtered)

    def surrogate(self, client: Client, received: Params) -> Client:
        """The mean of what would have been sent, of entries that arrived; an entry beyond the limit as it is."""

        def expected(name: str, g: Tensor) -> Tensor:
            got = received[name]
            return torch.where(self.bare(got), g, torch.where(got != 0, self.mean(g), torch.zeros_like(g)))

        return changed(client, lambda update: {name: expected(name, g) for name, g in update.items()})

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {
            "what arrived": AdaptiveStrategy(
                "known: the guess is compared as noise leaves it on average, where an entry arrived; what passed without noise as it is",
                self.surrogate,
            ),
            "average the rounds": AdaptiveStrategy(
                "known: each entry is averaged over the rounds in which it arrived, and counts for as many",
                self.surrogate,
                invert_update=self._averaged,
                entry_weights=lambda received, state: _by_name(self._noted(received, state), COUNT),
                infer_state=self._noted,
                averaging=True,
            ),
        }

    def pure_epsilon(self, entries: int) -> float:
        n = self.count(entries)
        return math.inf if self.version == BEFORE else self.epsilon + self.epsilon * (2 * n) ** (2 / 3) + n * self.noise_var

    def privacy_unit(self) -> str:
        return "all that one phone holds, as FLARE counts it, if every change is cut off at gamma"

    def count(self, entries: int) -> int:
        """How many of so many entries are sent at most."""
        return min(math.ceil(entries * self.fraction), entries)

    @property
    def limit(self) -> float:
        """The largest number that is sent with noise."""
        return self.gamma * self.steps

    def filtered(self, update: Params, rng: torch.Generator) -> Params:
        """One draw; what it decides and adds is no function of the update, as far as derivatives go."""
        u = torch.cat([g.detach().flatten() for g in update.values()]).double().cpu() / self.steps  # (N,)
        accepted = self.accepted(u, rng)
        number = self.count(len(u))
        places = torch.randint(len(accepted), (number,), generator=rng) if self.replace else torch.randperm(len(accepted), generator=rng)
        chosen = torch.zeros(len(u), dtype=torch.bool)
        chosen[accepted[places[:number]]] = True
        bare = torch.zeros_like(chosen)
        bare[accepted] = self.version == BEFORE
        noise = laplace(len(u), 2 * self.gamma / self.noise_var, rng) * self.steps
        result, sizes = Params(), [g.numel() for g in update.values()]
        for (name, g), own, plain, added in zip(update.items(), chosen.split(sizes), bare.split(sizes), noise.split(sizes), strict=True):
            noisy = (g + added.view(g.shape).to(g)).clamp(-self.limit, self.limit)
            rest = torch.where(plain.view(g.shape).to(g.device), g, torch.zeros_like(g))
            result[name] = torch.where(own.view(g.shape).to(g.device), noisy, rest)
        return result

    def accepted(self, u: Tensor, rng: torch.Generator) -> Tensor:
        """Places of the entries (N,) that pass the test before enough have: n at least.

        An entry passes with the same probability p each time it is asked, so the first time is 1 + floor(ln U / ln(1 - p)), U ~ U(0, 1).
        """
        number = self.count(len(u))
        threshold = self.tau + laplace(1, 2 * self.gamma / self.epsilon, rng)
        scale = 4 * self.gamma * number / (self.epsilon * (2 * number) ** (2 / 3))
        p = tail(threshold - u.abs().clamp(max=self.gamma), scale)
        first = ((1 - torch.rand(len(u), generator=rng, dtype=torch.float64)).log() / (-p).log1p()).floor()
        return (first <= first.kthvalue(number).values).nonzero().flatten()

    def mean(self, g: Tensor) -> Tensor:
        """What is sent of an entry that was drawn, on average over the noise: -l + the integral of P(g + noise > t) from -l to l."""
        limit, scale = self.limit, 2 * self.limit / self.noise_var

        def integral(s: Tensor) -> Tensor:
            return s.clamp(max=0) - scale / 2 * (-s.abs() / scale).exp()

        return integral(limit - g) - integral(-limit - g) - limit

    def bare(self, received: Tensor) -> Tensor:
        """Which entries were surely sent as they were: those beyond the limit."""
        return received.abs() > received.new_tensor(self.limit) * (1 + 1e-6)

    def _noted(self, received: Params, state: ClientState) -> ClientState:
        """What arrived in this round, beside what did before: of each entry the sum, how often, and the last one sent as it was."""
        noted = dict(state)
        for name, g in received.items():
            noted[SUM + name] = g + state.get(SUM + name, torch.zeros_like(g))
            noted[COUNT + name] = (g != 0) + state.get(COUNT + name, torch.zeros_like(g))
            noted[BARE + name] = g.where(self.bare(g), state.get(BARE + name, torch.zeros_like(g)))
        return noted

    def _averaged(self, received: Params, state: ClientState) -> Params:
        noted = self._noted(received, state)
        means = {name: noted[SUM + name] / noted[COUNT + name].clamp(min=1) for name in received}
        return {name: bare.where(bare != 0, means[name]) for name, bare in _by_name(noted, BARE).items()}


def _by_name(state: ClientState, prefix: str) -> Params:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def laplace(count: int, scale: float, rng: torch.Generator) -> Tensor:
    """Numbers (count,) with density exp(-|x| / scale) / (2 scale)."""
    u = torch.rand(count, generator=rng, dtype=torch.float64) - 0.5
    return -scale * u.sign() * (-2 * u.abs().clamp(max=0.5 - 2**-54)).log1p()


def tail(x: Tensor, scale: float) -> Tensor:
    """The probability of such a number to reach x."""
    near = (-x.abs() / scale).exp() / 2
    return torch.where(x >= 0, near, 1 - near)
