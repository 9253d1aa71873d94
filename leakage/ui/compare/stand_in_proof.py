"""The proof of AdaDefense, computed: equations 6 to 17 of its paper for one entry of a gradient, and what the proof leaves out. No torch.

m_r = beta1 m_(r-1) + (1 - beta1) g, v_r = beta2 v_(r-1) + (1 - beta2) g^2, m^ = m_r / (1 - beta1^r), V = sqrt(v_r / (1 - beta2^r)),
and the client sends m^ / (V + eps). The proof sets V = alpha g (equation 16), which gives the derivative of equation 17.
Source: Hu et al. 2024.
"""

import math
from dataclasses import dataclass

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8
PRINTED = {1: 1.0, 2: 1.0, 1000: 1.258}  # round -> alpha in the paper's appendix


@dataclass(frozen=True)
class GradientEntry:
    """One entry of a client's gradient, with Adam's moments of it, in round `number` (r); the entry was `before` in all earlier rounds.

    The client sends m^ / (V + eps): m^ is the corrected first moment, V the root of the corrected second moment.
    """

    number: int
    before: float

    @property
    def m(self) -> float:
        """Adam's first moment m_(r-1) before this round: (1 - beta1^(r-1)) times `before`.

        >>> round(GradientEntry(2, 1.0).m, 6)
        0.1
        """
        return (1 - BETA1 ** (self.number - 1)) * self.before

    @property
    def v(self) -> float:
        """Adam's second moment v_(r-1) before this round: (1 - beta2^(r-1)) times the square of `before`.

        >>> round(GradientEntry(3, 2.0).v, 6)
        0.007996
        """
        return float((1 - BETA2 ** (self.number - 1)) * self.before**2)

    def first(self, g: float) -> float:
        """Return m^, the first moment with bias correction, for the gradient g of this round."""
        return (BETA1 * self.m + (1 - BETA1) * g) / (1 - BETA1**self.number)

    def root(self, g: float) -> float:
        """Return V, the square root of the second moment with bias correction, for the gradient g of this round.

        It is never negative, and |g| in the first round.

        >>> [round(GradientEntry(1, 0.0).root(g), 6) for g in (-0.5, 0.5)]
        [0.5, 0.5]
        """
        return math.sqrt((BETA2 * self.v + (1 - BETA2) * g * g) / (1 - BETA2**self.number))

    def sent(self, g: float) -> float:
        """Return m^ / (V + eps), which the client sends for the gradient g of this round."""
        return self.first(g) / (self.root(g) + EPS)

    def derivative(self, g: float) -> float:
        """Return the derivative of `sent` with respect to g; NaN where V = 0.

        V depends on g as well: its derivative is (1 - beta2) g / ((1 - beta2^r) V).

        >>> round(GradientEntry(2, 1.0).derivative(1.0), 4)
        0.0261
        """
        root = self.root(g)
        if root == 0:
            return math.nan
        root_derivative = (1 - BETA2) * g / ((1 - BETA2**self.number) * root)
        return ((1 - BETA1) / (1 - BETA1**self.number) * (root + EPS) - self.first(g) * root_derivative) / (root + EPS) ** 2

    def claimed_derivative(self, g: float) -> float:
        """Return the derivative by the AdaDefense paper's equation 17 and its alpha; NaN where g = 0.

        It is -beta1 m_(r-1) / (alpha (1 - beta1^r) g^2), which sets V = alpha g.

        >>> round(GradientEntry(2, 1.0).claimed_derivative(1.0), 4)
        -0.4737
        """
        return -BETA1 * self.m / (PRINTED[self.number] * (1 - BETA1**self.number) * g * g) if g else math.nan


def corrected_twice(number: int) -> float:
    """Return 1 / sqrt(1 - beta2^r) in round r = `number`: the rule behind alpha = 1.258 in the appendix of the AdaDefense paper.

    The rule takes the second moment for g^2, which is its value after bias correction, and corrects it a second time.

    >>> round(corrected_twice(1000), 3)
    1.258
    """
    return float(1 / math.sqrt(1 - BETA2**number))


def constant_ratio(number: int) -> float:
    """Return V / |g| in round `number` for a gradient g that never changed: 1, because Adam's bias correction is made for this case."""
    return GradientEntry(number, 1.0).root(1.0)
