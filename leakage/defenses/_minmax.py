"""Inversion of MinMax sampling: the sums that a server keeps of all draws, and the gradient that follows from them.

A draw sends v = g + C / g for the entries that it keeps, and 0 for the others. C is the same for all entries of a draw and is not sent.
1. |v| >= 2 sqrt(C), with equality at |g| = sqrt(C). With many entries, the smallest |v| therefore gives C = (min |v| / 2)^2.
2. |g| is one of the two roots (|v| +- sqrt(v^2 - 4 C)) / 2; their product is C.
3. If an entry is kept in two draws, the true root is the same in both; the other root changes with C.
4. An entry is kept with probability g^2 / (g^2 + C). So |g| ~ sqrt(C p / (1 - p)), where p is the fraction of the draws that keep it,
   and the upper root is the likelier root of an entry that more than half of the draws keep.
5. v has the sign of g.
Derived here; GLAUS (Hu et al. 2024) uses the fourth fact. There is a sum for each entry of each tensor, in float64, with signs.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from leakage.engine.core import ClientState, Params

NAME = "minmax_sampling"
ROUNDS, LEVEL = f"{NAME}.rounds", f"{NAME}.level"  # draws so far, and the sum of sqrt(C) over them
STEADY = 1e-6  # a relative deviation that is rounding
TINY = 1e-300
FLOOR = 0.01  # the error at which an entry has weight 1/2, as a fraction of the gradient's root mean square


@dataclass(frozen=True)
class DrawSums:
    """Sums for each entry of a tensor, over the rounds (draws of MinMax sampling) in which the entry was sent.

    For a sent v = g + C / g, |g| is the lower or the upper root (|v| -+ sqrt(v^2 - 4 C)) / 2; C is the draw's threshold.
    """

    count: Tensor
    """In how many draws the entry was kept."""
    lower: Tensor
    """The sum of the lower root, with the sign of the entry."""
    lower_squared: Tensor
    """The sum of the squared lower root."""
    upper: Tensor
    """The sum of the upper root, with the sign of the entry."""
    upper_squared: Tensor
    """The sum of the squared upper root."""

    def mean_roots(self) -> tuple[Tensor, Tensor]:
        """Return the means, over the draws that kept an entry, of the two candidates for g: the lower and the upper root.

        0 for an entry that was never kept.
        """
        count = self.count.clamp(min=1)
        return self.lower / count, self.upper / count

    def root_deviations(self) -> tuple[Tensor, Tensor]:
        """Return the standard deviations, over the draws that kept an entry, of the lower and of the upper root of each entry."""
        count, (lower, upper) = self.count.clamp(min=1), self.mean_roots()
        squares = (self.lower_squared / count - lower.square(), self.upper_squared / count - upper.square())
        return squares[0].clamp(min=0).sqrt(), squares[1].clamp(min=0).sqrt()

    def solve(self, rounds: int, *, rare: bool) -> tuple[Tensor, Tensor]:
        """Return an estimate of each entry of the gradient, and its error; an entry that was never kept is 0 with an infinite error.

        What is sent for an entry g is v = g + C / g, so |g| is the upper root u or the lower root l of |g| + C / |g| = |v|; C is the draw's
        threshold. After several draws the estimate is the mean of the likelier root. As u l = C, an entry of
        size u is kept with probability u / (u + l), an entry of size l with l / (u + l): being kept in n of N draws is evidence of
        (2 n - N) ln(u / l) for u. The true root hardly changes between draws: the relative deviations are evidence of
        (n - 1) ln(deviation of l / deviation of u) for u. After one draw the estimate is the lower root if `rare`, otherwise the entry as
        it was sent, which is the sum of both roots.

        Args:
            rounds: N, the number of draws.
            rare: whether most of the entries that a draw sends are smaller than sqrt(C).
        """
        (lower, upper), (below, above) = self.mean_roots(), self.root_deviations()
        size = [root.abs().clamp(min=TINY) for root in (lower, upper)]
        steady = [(deviation / root).clamp(min=STEADY) for deviation, root in zip((below, above), size, strict=True)]
        evidence = (2 * self.count - rounds) * (size[1] / size[0]).log() + (self.count - 1) * (steady[0] / steady[1]).log()
        estimate, error = torch.where(evidence > 0, upper, lower), torch.where(evidence > 0, above, below)
        gap = (upper - lower).abs()
        if rounds == 1:
            estimate = lower if rare else torch.where(gap > 0, lower + upper, lower)
        return estimate, torch.where(self.count > 1, error, torch.where(self.count == 1, gap / 2, torch.inf))

    def estimate_from_counts(self, rounds: int, level: float) -> Tensor:
        """Estimate each entry as sign sqrt(C p / (1 - p)), from the fraction p of the draws that kept it; 0 if never kept.

        Args:
            rounds: the number of draws.
            level: the sum over the draws of sqrt(C), where C is the threshold of a draw (`infer_threshold`).
        """
        fraction = (self.count / rounds).clamp(0.5 / rounds, 1 - 0.5 / rounds)
        return self.lower.sign() * level / rounds * (fraction / (1 - fraction)).sqrt()


def infer_threshold(received: Params, most: int) -> Tensor:
    """Infer the threshold C of MinMax sampling from what a client sent, v = g + C / g; 0 if every nonzero entry was sent unchanged.

    `most` is the largest number of entries that a client sends. C is () and follows from the smallest |v|.
    """
    sizes = torch.cat([v.detach().flatten().double().abs() for v in received.values()])
    nonzero = sizes[sizes > 0]
    return (nonzero.min() / 2).square() if most <= len(nonzero) < len(sizes) else sizes.new_zeros(())


def add_draw(received: Params, state: ClientState, most: int) -> ClientState:
    """Return the attacker's state with what was received in a round, at most `most` entries, added to the sums (`DrawSums`)."""
    c = infer_threshold(received, most)
    after = {ROUNDS: torch.tensor(int(state.get(ROUNDS, 0)) + 1), LEVEL: state.get(LEVEL, 0) + c.sqrt()}
    for layer, v in received.items():
        size, sign = v.detach().double().abs(), v.detach().double().sign()
        upper = (size + (size.square() - 4 * c).clamp(min=0).sqrt()) / 2
        lower = torch.where(size > 0, c / upper.clamp(min=TINY), 0) if c > 0 else upper
        draw = DrawSums(sign.abs(), sign * lower, lower.square(), sign * upper, upper.square())
        for part, value in vars(draw).items():
            after[sum_key(part, layer)] = value + state.get(sum_key(part, layer), 0)
    return {**state, **after}


def read_sums(state: ClientState, layer: str) -> DrawSums:
    """Return the sums over draws of the tensor `layer` in the attacker's state."""
    return DrawSums(**{part: state[sum_key(part, layer)] for part in DrawSums.__dataclass_fields__})


def sum_key(part: str, layer: str) -> str:
    """Return the key in the attacker's state of a sum (`part` is a field of `DrawSums`) for the tensor `layer`."""
    return f"{NAME}.{part}.{layer}"


def assign_sizes(counts: Tensor, sizes: Tensor) -> Tensor:
    """Return a size for each entry, assigned by rank: the largest size to the entry that was kept most often.

    Args:
        counts: in how many draws each entry was kept (D,).
        sizes: the sizes (D,) of another client's entries, in any order.

    Returns:
        The size of each entry (D,).
    """
    assigned = torch.empty_like(sizes)
    assigned[counts.argsort(descending=True, stable=True)] = sizes.sort(descending=True).values
    return assigned
