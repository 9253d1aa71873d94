"""Improved DLG (iDLG) against FedADMM: the label is read from the sum of gradients; then the picture is searched."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from leakage.attacks._admm import MISTAKES, REPAIR_SCALE, REPAIR_STATE, with_imitation
from leakage.attacks._labels import labels_of
from leakage.attacks._lbfgs import descend
from leakage.engine.core import Attack, Observation, Snapshot, flag, param
from leakage.engine.labels import rule_field


@dataclass(frozen=True, kw_only=True)
class IDLGADMM(Attack):
    """The label y is read from the last layer's gradient; then x is argmin over x of ||S(x, y) - S*||^2 by L-BFGS.

    S, the weighted sum of gradients in what a FedADMM client sends, and both attackers, naive and adaptive, are those of DLG-ADMM.
    Source: Zhao et al. 2020, section 3, on the client of Gong et al. 2022 (FedADMM).
    """

    title = "Guess and compare for FedADMM (iDLG-ADMM)"
    short = "iDLG-ADMM"
    plain = "As DLG-ADMM, but reads the label first: only the picture has to be searched."
    hint = "Choose FedADMM as what is sent, and compare the naive with the adaptive attacker."
    evaluations_per_step = 10
    loss_name = "squared gradient distance"
    mistakes = MISTAKES
    source = "https://arxiv.org/abs/2001.02610"
    reads_labels = True

    steps: int = param(300, 1, 2000, "L-BFGS steps per start, 20 imitations of the client at most in each.")
    restarts: int = param(8, 1, 16, "How many random starts to try at most, until one succeeds.")
    repair_state: bool = flag(False, REPAIR_STATE)
    repair_scale: bool = flag(False, REPAIR_SCALE)
    label_rule: str = rule_field()

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        seen, attacker = with_imitation(seen, stateless=self.repair_state, same_scale=self.repair_scale)
        labels, note = labels_of(seen, self.label_rule)
        yield from descend(seen, rng, labels=labels, note={**note, "attacker": attacker}, steps=self.steps, restarts=self.restarts)
