"""The k-curve of a network with one output: from its gradient to the possible logits, for each loss. No torch.

A picture with logit z and label y = +-1 has the margin mu = y z. Without biases the gradient g of the last weights w gives one number,
<g, w> = mu l'(mu) = c, where l(mu) is the loss. Its solution mu gives l'(mu), which is k = dL/dz up to the sign y, and so the
input of the last layer: h = g / k. Two roots of one c are twins: two inputs with one gradient.
Source: Zhu and Blaschko 2021, section 3.1 and figure 1.
"""

import math
from typing import Literal, TypeAlias, get_args

Loss: TypeAlias = Literal["cross-entropy", "exponential", "hinge"]
LOSSES: tuple[Loss, ...] = get_args(Loss)
FAR = 700.0  # exp overflows beyond this margin
TURNS = {  # loss -> the mu at which c is lowest: mu = 1 + exp(-mu); mu = 1; for the hinge the largest number below 1
    "cross-entropy": 1.2784645427610738,
    "exponential": 1.0,
    "hinge": math.nextafter(1.0, 0.0),
}


def derivative(loss: Loss, mu: float) -> float:
    """Return the derivative l'(mu) of a loss by the margin mu, the logit z times the label +1 or -1.

    l is log(1 + exp(-mu)), the cross-entropy of logits 0 and z; exp(-mu); or max(0, 1 - mu).
    """
    if loss == "cross-entropy":
        return -1 / (1 + math.exp(mu))
    return -math.exp(-mu) if loss == "exponential" else -float(mu < 1)


def curve(loss: Loss, mu: float) -> float:
    """Return c = mu l'(mu) for the margin mu and the loss l; c is known to an attacker, as <gradient, weights> of the last layer.

    >>> [round(curve(loss, 0.5), 4) for loss in LOSSES]
    [-0.1888, -0.3033, -0.5]
    """
    return mu * derivative(loss, mu)


def roots(loss: Loss, c: float) -> list[float]:
    """Return every margin mu with mu l'(mu) = c for the loss l, in rising order.

    There is one for c >= 0. For c < 0 there are two for a smooth loss and one for the hinge, and none if c is below the minimum. The hinge
    has c = 0 also for every mu >= 1, where its gradient is 0; only mu = 0 is returned.
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
    """Return every margin mu with mu l'(mu) = c; if c is below the minimum of that curve, as noise can make it, the mu of the minimum."""
    return roots(loss, c) or [TURNS[loss]]


def twin(loss: Loss, mu: float) -> float | None:
    """Return the other margin that gives the same gradient as mu, for a longer or shorter input of the last layer; None if there is none.

    A margin is the logit times the label +1 or -1.

    A hinge has none: below 1 its margin is unique, and from 1 on its gradient is 0.
    """
    if loss == "hinge" or mu <= 0 or mu == TURNS[loss]:
        return None
    low, high = roots(loss, curve(loss, mu))
    return high if mu < TURNS[loss] else low


def halved(loss: Loss, c: float, above: float, below: float) -> float:
    """Find by bisection the margin mu with mu l'(mu) = c, for the loss l.

    The curve mu l'(mu) is above c at the margin `above` and below c at the margin `below`; mu lies between them.
    """
    while (mu := (above + below) / 2) not in (above, below):
        above, below = (mu, below) if curve(loss, mu) >= c else (above, mu)
    return min(above, below, key=lambda mu: abs(curve(loss, mu) - c))
