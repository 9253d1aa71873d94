"""Drawings that look like the chest X-rays of sixteen invented people, made of ellipses and stripes, without a data set. No torch."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from leakage.data.readers import Pixels

COUNT = 16
SIDE = 128  # pixels
GOLDEN = (5**0.5 - 1) / 2  # multiples of the golden ratio, modulo 1, are spread evenly, so that all people have different proportions
Plane = NDArray[np.float64]  # (SIDE, SIDE)


def xray(number: int) -> Pixels:
    """Return the drawing of an invented person, uint8 (SIDE, SIDE, 1); people with odd numbers have a round shadow in a lung."""

    def between(low: float, high: float, proportion: int) -> float:
        """Return the person's value, between `low` and `high`, of the body proportion with the number `proportion`."""
        return low + (high - low) * ((number + 1) * GOLDEN * (proportion + 1) % 1)

    y, x = np.mgrid[-1 : 1 : SIDE * 1j, -1 : 1 : SIDE * 1j]
    wide, tall, turn = between(0.26, 0.36, 0), between(0.5, 0.68, 1), between(-0.06, 0.06, 2)
    x = x - turn * y
    body = _inside(x, y, 0.0, 0.25, between(0.85, 1.0, 3), 1.3)
    lungs = _inside(x, y, -0.42, -0.05, wide, tall) + _inside(x, y, 0.42, -0.05, wide * between(0.85, 1.0, 4), tall)
    heart = _inside(x, y, between(0.05, 0.18, 5), 0.3, between(0.2, 0.34, 6), between(0.24, 0.36, 7))
    spine = np.exp(-((x / 0.08) ** 2)) * (0.8 + 0.2 * np.cos(2 * np.pi * y * between(6, 9, 8)))
    ribs = np.exp(-((np.sin(np.pi * (y + 0.35 * x**2) * between(4.0, 5.5, 9)) / 0.35) ** 2))
    below = 1 / (1 + np.exp(-(y - between(0.5, 0.7, 10) + 0.4 * (np.abs(x) - 0.4) ** 2) / 0.04))
    shade = 0.62 * body - 0.42 * lungs * body + 0.2 * heart + 0.16 * spine * body + 0.1 * ribs * body + 0.25 * below * body
    if number % 2:
        side = 1 if between(0, 1, 11) > 0.5 else -1
        shade += 0.3 * _inside(x, y, 0.42 * side, between(-0.4, 0.15, 12), 0.11, 0.11)
    return cast(Pixels, np.round(255 * np.clip(shade, 0, 1)).astype(np.uint8)[..., None])


def _inside(x: Plane, y: Plane, left: float, top: float, wide: float, tall: float) -> Plane:
    """Return 1 inside an ellipse and 0 outside, with a soft edge; `left` and `top` are its center, `wide` and `tall` its half axes."""
    r = np.sqrt(((x - left) / wide) ** 2 + ((y - top) / tall) ** 2)
    return 1 / (1 + np.exp((r - 1) / 0.06))
