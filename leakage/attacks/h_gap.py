"""H-GAP: the attack runs R-GAP and DLG, and answers with the less noisy of both pictures."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from leakage.attacks._labels import labels_of
from leakage.attacks._lbfgs import descend
from leakage.attacks.r_gap import RGap
from leakage.engine.core import Attack, Observation, Snapshot, param


@dataclass(frozen=True, kw_only=True)
class HGap(Attack):
    """R-GAP, then DLG with the label known (iDLG); the answer is the picture with the lower salt-and-pepper score ||x - mean3x3(x)||.

    A worse reconstruction has more isolated noise, which the score measures without the truth. The score is wrong where a wrong picture is
    smooth.
    Unlike the paper: DLG has at most `steps` and `restarts`; the paper does not state how long it ran.
    Source: Zhu and Blaschko 2021, table 1.
    """

    title = "Solve or guess and keep the better (H-GAP)"
    short = "H-GAP"
    plain = "Tries both ways, equations and search, and keeps the picture with less isolated noise."
    hint = "Compare CNN6 with CNN6-d: on the first the equations win, on the second the search does."
    source = "https://arxiv.org/abs/2010.07733"
    reads_labels = True
    way = "Solve layer by layer; then guess, compare, improve."
    evaluations_per_step = 10
    loss_name = "squared gradient distance"

    steps: int = param(300, 1, 2000, "L-BFGS steps per start of DLG, 20 evaluations of the gradient at most in each.")
    restarts: int = param(3, 1, 16, "How many random starts DLG tries at most, until one succeeds.")

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        labels, note = labels_of(seen, "best")
        solved: Snapshot | None = None
        for solved in RGap().run(seen, rng):
            yield replace(solved, note={**solved.note, "way": "R-GAP"})
        assert solved is not None
        found: Snapshot | None = None
        for moment in descend(seen, rng, labels=labels, note=note, steps=self.steps, restarts=self.restarts):
            found = replace(moment, step=solved.step + moment.step, note={**moment.note, "way": "DLG"})
            yield found
        assert found is not None
        scores = {"R-GAP": salt_and_pepper(solved.x), "DLG": salt_and_pepper(found.x)}
        way = min(scores, key=lambda name: scores[name])
        score_note = {f"noise of {name}": value for name, value in scores.items()}
        chosen = solved if way == "R-GAP" else found
        kept = {name: value for name, value in chosen.note.items() if name != "event"}
        yield replace(chosen, step=found.step, note={**kept, **score_note, "way": way}, views={"R-GAP": solved.x, "DLG": found.x})


def salt_and_pepper(x: Tensor) -> float:
    """Compute ||x - mean3x3(x)||_2 of pictures (B, C, H, W), with repeated edges; infinite if a pixel is NaN."""
    means = F.avg_pool2d(F.pad(x, (1, 1, 1, 1), mode="replicate"), 3, stride=1)
    score = float((x - means).norm())
    return score if score == score else float("inf")
