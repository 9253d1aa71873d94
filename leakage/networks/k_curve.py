"""The k-curve of a loss of one output: what the gradient says of the logit, and how many logits say the same. No torch.

A picture with logit z and label y = +-1 has the margin mu = y z. Without biases the gradient g of the last weights w gives one number,
<g, w> = mu l'(mu) = c, where l(mu) is the loss. Its solution mu gives l'(mu), which is k = dL/dz up to the sign y, and so the
input of the last layer: h = g / k. Two roots of one c are twins: two inputs with one gradient.
Source: Zhu and Blaschko 2021, section 3.1 and figure 1.
"""

import math
from typing import Literal, TypeAlias, get_args

Loss: TypeAlias = Literal["cross-entropy", "exponential", "hinge"]
LOSSES: tuple[Loss, ...] = get_args(Loss)
FAR = 700.0  # beyond it exp overflows
TURNS = {  # where c is lowest: mu = 1 + exp(-mu); mu = 1; and as near below 1, where the hinge's margin is met, as a number can be
    "cross-entropy": 1.2784645427610738,
    "exponential": 1.0,
    "hinge": math.nextafter(1.0, 0.0),
}


def derivative(loss: Loss, mu: float) -> float:
    """Return l'(mu) of log(1 + exp(-mu)), the cross-entropy of logits 0 and z; of exp(-mu); or of max(0, 1 - mu)."""
    if loss == "cross-entropy":
        return -1 / (1 + math.exp(mu))
    return -math.exp(-mu) if loss == "exponential" else -float(mu < 1)


def curve(loss: Loss, mu: float) -> float:
    """Return c = mu l'(mu).

    >>> [round(curve(loss, 0.5), 4) for loss in LOSSES]
    [-0.1888, -0.3033, -0.5]
    """
    return mu * derivative(loss, mu)


def roots(loss: Loss, c: float) -> list[float]:
    """Return every mu with mu l'(mu) = c, rising: one for c >= 0; below, two of a smooth loss, one of the hinge; none below the minimum.

    A hinge whose margin is met, mu >= 1, has c = 0 as well, and no gradient at all: of these only mu = 0 is listed.
    """
    if loss == "hinge":
        return [0.0 - c] if c > -1 else []
    if c == 0:
        return [0.0]
    if c > 0:
        return [halved(loss, c, -math.log1p(c) if loss == "exponential" else -2 * c - 2, 0.0)]
    turn = TURNS[loss]
    if curve(loss, turn) >= c:
        return [turn] if curve(loss, turn) == c else []
    return [halved(loss, c, 0.0, turn), halved(loss, c, FAR, turn)]


def nearest(loss: Loss, c: float) -> list[float]:
    """Return the roots; where noise has put c below its minimum, the mu of the minimum."""
    return roots(loss, c) or [TURNS[loss]]


def twin(loss: Loss, mu: float) -> float | None:
    """Return the other margin with the same gradient up to the length of the last layer's input; None when there is no other.

    Of a hinge there is none: below 1 its margin is unique, and from 1 on nothing is sent.
    """
    if loss == "hinge" or mu <= 0 or mu == TURNS[loss]:
        return None
    low, high = roots(loss, curve(loss, mu))
    return high if mu < TURNS[loss] else low


def halved(loss: Loss, c: float, above: float, below: float) -> float:
    """Find, by bisection to the last digit, where the curve is c, between margins at which it is above and below c."""
    while (mu := (above + below) / 2) not in (above, below):
        above, below = (mu, below) if curve(loss, mu) >= c else (above, mu)
    return min(above, below, key=lambda mu: abs(curve(loss, mu) - c))
