"""DLG against FedADMM: the naive attack that was reported to fail, and the adaptive attack that succeeds."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from leakage.attacks._admm import MISTAKES, REPAIR_SCALE, REPAIR_STATE, with_imitation
from leakage.attacks._lbfgs import descend
from leakage.engine.core import Attack, Observation, Snapshot, flag, param


@dataclass(frozen=True, kw_only=True)
class DLGADMM(Attack):
    """argmin over x, y of ||S(x, softmax(y)) - S*||^2 by L-BFGS; S is the weighted sum of gradients in what a FedADMM client sends.

    S(x, p) is that sum for pictures x with label probabilities p, S* the sum in the received update.

    A naive attacker imitates the client with a state that is kept from call to call, and takes the sent increment, divided by minus the
    step size, for the gradient (`attacks/_admm.py`). A reproduction report attacked in this way and concluded that ADMM does not leak. An
    adaptive attacker starts every differentiable imitation from the client's state, which the server can compute round by round.
    Unlike the report: L-BFGS, where its algorithms 1 and 2 print gradient descent on x and y.
    Source: Zhu et al. 2019, algorithm 1, on the client of Gong et al. 2022 (FedADMM); algorithm 2 of the reproduction report.
    """

    title = "Guess and compare for FedADMM (DLG-ADMM)"
    short = "DLG-ADMM"
    plain = "DLG against a phone that trains by ADMM: it imitates the phone's whole local training, picture and label together."
    hint = "Choose FedADMM as what is sent. The naive attacker fails and the adaptive one does not: the failure was no protection."
    evaluations_per_step = 10
    loss_name = "squared gradient distance"
    mistakes = MISTAKES
    source = "https://arxiv.org/abs/1906.08935"

    steps: int = param(300, 1, 2000, "L-BFGS steps per start, 20 imitations of the client at most in each.")
    restarts: int = param(8, 1, 16, "How many random starts to try at most, until one succeeds.")
    repair_state: bool = flag(False, REPAIR_STATE)
    repair_scale: bool = flag(False, REPAIR_SCALE)

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        seen, attacker = with_imitation(seen, stateless=self.repair_state, same_scale=self.repair_scale)
        rule = "searched together with the picture" if seen.granted.labels is None else "granted"
        note = {"label rule": rule, "attacker": attacker}
        yield from descend(seen, rng, labels=seen.granted.labels, note=note, steps=self.steps, restarts=self.restarts)
