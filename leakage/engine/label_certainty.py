"""How certain labels are: the fraction that rehearsals expect to be right, corrected by how much was right where they expected it.

Rehearsals are played with made-up pictures, and those of a naive attacker without the protection, so they expect too much or too little.
certainty = sigmoid(SLOPE logit(p) + OFFSET), p the fraction expected; the constants were fitted to readings with known labels of networks,
stages of training and seeds other than those that test them: benchmarks/published/label_certainty.py.
Source: Platt 1999, section 2 (probabilities from a classifier's output by a fitted sigmoid).
"""

import math

from torch import Tensor

from leakage.engine.label_counts import expected_right

SLOPE, OFFSET = 0.708, 0.095
CLOSEST = 1e-12  # to 0 and to 1 that an expectation counts


def certainty_of(labels: Tensor, chances: Tensor) -> float:
    """The fraction, 0 to 1, of labels (B,) that is expected to be right, given the rehearsals' P(n_c = k) (K, B + 1)."""
    return calibrated(expected_right(labels, chances))


def calibrated(expected: float) -> float:
    """The fraction, 0 to 1, that was right where rehearsals expected this fraction."""
    p = min(max(expected, CLOSEST), 1 - CLOSEST)
    return 1 / (1 + math.exp(-(SLOPE * math.log(p / (1 - p)) + OFFSET)))
