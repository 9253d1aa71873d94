"""Twin data: a second picture with exactly the same gradient."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from leakage.attacks._lbfgs import one_start
from leakage.attacks.r_gap import RGap, distance
from leakage.engine.core import Attack, Observation, Snapshot, param
from leakage.engine.matching import from_pixels

NONE = "There is one explanation of this gradient only, so no twin. A twin needs one output, the label the network says itself, no biases."


@dataclass(frozen=True, kw_only=True)
class TwinData(Attack):
    """The picture at the other root of the logit, and DLG started near it.

    In a network without biases whose bends are ReLU or LeakyReLU, with one output and mu > 0, the picture x and a x have the same gradient,
    where a = mu2 / mu1 for the two roots of -mu / (1 + exp(mu)) = c. Both are worked out by R-GAP; of the two the answer is the one that
    is less like a picture (further outside [0, 1]), then L-BFGS starts at it, with noise of `noise` times its deviation, and ends at it.
    Source: Zhu and Blaschko 2021, appendix B.
    """

    title = "Twin data"
    plain = "Finds a second picture that would have sent exactly the same gradient: a search can end at either."
    hint = "Choose net A, one output, its label as it says itself. Both pictures send the same; only one has the colours of a picture."
    source = "https://arxiv.org/abs/2010.07733"
    evaluations_per_step = 10
    loss_name = "relative gradient distance"

    steps: int = param(24, 1, 2000, "L-BFGS steps of DLG, started near the twin.")
    noise: float = param(0.1, 0, 1, "Noise added to the twin before the search starts, as a share of its own deviation.")

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        answer: Snapshot | None = None
        for answer in RGap().run(seen, rng):
            yield answer
        assert answer is not None
        others = {name: x for name, x in answer.views.items() if answer.note.get("explanations", 1) != 1 and not torch.equal(x, answer.x)}
        if not others:
            yield replace(answer, note={**answer.note, "event": NONE})
            return
        name, twin = next(iter(others.items()))
        note = {key: value for key, value in answer.note.items() if key != "event"} | {"twin": name}
        note |= {"distance of the picture": float(answer.loss), "distance of the twin": float(distance(seen, twin, answer.y))}
        z = from_pixels(seen, twin)
        begin = z + self.noise * z.std() * torch.randn(z.shape, generator=rng).to(z)
        last = answer
        for moment in one_start(seen, rng, labels=answer.y, steps=self.steps, begin=begin):
            last = replace(moment, step=answer.step + moment.step, loss=distance(seen, moment.x, answer.y), note=note)
            yield last
        yield replace(last, note={**note, "from the twin": float((last.x - twin).square().mean())}, views={**answer.views, "found": last.x})
