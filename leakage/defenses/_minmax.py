"""MinMax sampling solved: what the server adds up of every draw, and the gradient that follows from it.

One draw sends v = g + C / g of the entries that it keeps, and 0 else; C is the same for all entries of a draw, and not sent. But
1. |v| >= 2 sqrt(C), with equality at |g| = sqrt(C): of many entries the smallest |v| tells C = (min |v| / 2)^2;
2. |g| is one of two roots, (|v| +- sqrt(v^2 - 4 C)) / 2, whose product is C;
3. of an entry that was kept in two draws the true root is the same in both, the other one changes with C;
4. an entry is kept with probability g^2 / (g^2 + C), so that |g| ~ sqrt(C p / (1 - p)) from its share p of the draws, and the upper root
   is the likely one of what is kept in more than half of them;
5. v has the sign of g.
Derived here; the fourth is what GLAUS (Hu et al. 2024) makes use of. Sums are of one tensor, in float64, with signs.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from leakage.engine.core import ClientState, Params

NAME = "minmax_sampling"
ROUNDS, LEVEL = f"{NAME}.rounds", f"{NAME}.level"  # draws so far, and the sum of sqrt(C) over them
STEADY = 1e-6  # a relative deviation that is rounding
TINY = 1e-300
FLOOR = 0.01  # errors below this share of the gradient's rms count as that


@dataclass(frozen=True)
class Kept:
    """What a server has added up of the draws in which an entry was kept, each of a tensor's shape.

    count   in how many draws
    lower, lower_squared   the sum of the lower root, with its sign, and of its square
    upper, upper_squared   the same of the upper root
    """

    count: Tensor
    lower: Tensor
    lower_squared: Tensor
    upper: Tensor
    upper_squared: Tensor

    def means(self) -> tuple[Tensor, Tensor]:
        """The mean lower root and the mean upper root; 0 of an entry that was never kept."""
        count = self.count.clamp(min=1)
        return self.lower / count, self.upper / count

    def deviations(self) -> tuple[Tensor, Tensor]:
        """The standard deviations of both roots over the draws."""
        count, (lower, upper) = self.count.clamp(min=1), self.means()
        squares = (self.lower_squared / count - lower.square(), self.upper_squared / count - upper.square())
        return squares[0].clamp(min=0).sqrt(), squares[1].clamp(min=0).sqrt()

    def solved(self, rounds: int, *, rare: bool) -> tuple[Tensor, Tensor]:
        """The entries of the gradient, and by how much each may be wrong; infinitely where it was never kept, and is taken for 0.

        Of several draws: the mean of the likelier root. As u l = C, an entry of size u is kept with probability u / (u + l), one of size l
        with l / (u + l): n of N draws speak for u by (2 n - N) ln(u / l). And the true root hardly changes: the relative deviations speak
        for u by (n - 1) ln(deviation of l / deviation of u). Of one draw: the lower root where entries below sqrt(C) are the likely ones
        (`rare`), else as it was sent, which is the sum of both roots.
        """
        (lower, upper), (below, above) = self.means(), self.deviations()
        size = [root.abs().clamp(min=TINY) for root in (lower, upper)]
        steady = [(deviation / root).clamp(min=STEADY) for deviation, root in zip((below, above), size, strict=True)]
        evidence = (2 * self.count - rounds) * (size[1] / size[0]).log() + (self.count - 1) * (steady[0] / steady[1]).log()
        found, wrong = torch.where(evidence > 0, upper, lower), torch.where(evidence > 0, above, below)
        gap = (upper - lower).abs()
        if rounds == 1:
            found = lower if rare else torch.where(gap > 0, lower + upper, lower)
        return found, torch.where(self.count > 1, wrong, torch.where(self.count == 1, gap / 2, torch.inf))

    def counted(self, rounds: int, level: float) -> Tensor:
        """sign sqrt(C p / (1 - p)) from the share p of the draws alone, with the mean of sqrt(C); 0 of an entry that was never kept."""
        share = (self.count / rounds).clamp(0.5 / rounds, 1 - 0.5 / rounds)
        return self.lower.sign() * level / rounds * (share / (1 - share)).sqrt()


def threshold(received: Params, most: int) -> Tensor:
    """C of one draw of at most so many entries; 0 where all that is not zero was sent, as it is."""
    sizes = torch.cat([v.detach().flatten().double().abs() for v in received.values()])
    kept = sizes[sizes > 0]
    return (kept.min() / 2).square() if most <= len(kept) < len(sizes) else sizes.new_zeros(())


def tallied(received: Params, state: ClientState, most: int) -> ClientState:
    """The state with this draw of at most so many entries added to its sums."""
    c = threshold(received, most)
    after = {ROUNDS: torch.tensor(int(state.get(ROUNDS, 0)) + 1), LEVEL: state.get(LEVEL, 0) + c.sqrt()}
    for layer, v in received.items():
        size, sign = v.detach().double().abs(), v.detach().double().sign()
        upper = (size + (size.square() - 4 * c).clamp(min=0).sqrt()) / 2
        lower = torch.where(size > 0, c / upper.clamp(min=TINY), 0) if c > 0 else upper
        draw = Kept(sign.abs(), sign * lower, lower.square(), sign * upper, upper.square())
        for part, value in vars(draw).items():
            after[key(part, layer)] = value + state.get(key(part, layer), 0)
    return {**state, **after}


def kept(state: ClientState, layer: str) -> Kept:
    """What was added up of a tensor."""
    return Kept(**{part: state[key(part, layer)] for part in Kept.__dataclass_fields__})


def key(part: str, layer: str) -> str:
    """Under which name the state holds a sum."""
    return f"{NAME}.{part}.{layer}"


def ranked(counts: Tensor, sizes: Tensor) -> Tensor:
    """The sizes (D,) of somebody else's entries, dealt out by rank of counts (D,): the largest to the entry that was kept most often."""
    dealt = torch.empty_like(sizes)
    dealt[counts.argsort(descending=True, stable=True)] = sizes.sort(descending=True).values
    return dealt
