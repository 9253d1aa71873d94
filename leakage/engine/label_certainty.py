"""The certainty of labels: the fraction that rehearsals expect to be right, calibrated on readings with known labels.

Rehearsals use made-up pictures, and a naive attacker's rehearsals leave out the protection, so they expect too much or too little.
logit(certainty) = logit(g) + COEFFICIENT (logit(p) - logit(g)), where p is the fraction expected and g the fraction that a guess gets
right. An attacker without knowledge has the certainty of a guess. COEFFICIENT was fitted to readings with known labels. Their networks,
stages of training and pictures differ from those that test it: benchmarks/published/label_certainty.py.
Source: Platt 1999, section 2 (probabilities from a classifier's output by a fitted sigmoid).
"""

import math

from torch import Tensor

from leakage.engine.label_counts import expected_right, guessed_right

COEFFICIENT = 0.906
CLOSEST = 1e-12  # least distance of an expectation from 0 and from 1


def certainty_of(labels: Tensor, probabilities: Tensor) -> float:
    """Return the calibrated fraction, 0 to 1, of labels that is expected to be right.

    Args:
        labels: the labels that a rule found, (B,).
        probabilities: how probable it is that class c has k labels in the batch, for k from 0 to B, (K, B + 1).
    """
    return calibrated(expected_right(labels, probabilities), guessed_right(len(labels), len(probabilities)))


def calibrated(expected: float, guessed: float) -> float:
    """Correct an expected fraction of right labels: logit(result) = logit(guessed) + COEFFICIENT (logit(expected) - logit(guessed)).

    Args:
        expected: the fraction that simulated clients (rehearsals) let expect.
        guessed: the fraction that an attacker without knowledge gets right on average.
    """
    return 1 / (1 + math.exp(-(logit(guessed) + COEFFICIENT * (logit(expected) - logit(guessed)))))


def logit(p: float) -> float:
    """Return log(p / (1 - p)), finite at 0 and 1 as well."""
    p = min(max(p, CLOSEST), 1 - CLOSEST)
    return math.log(p / (1 - p))
