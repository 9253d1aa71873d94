"""Twin data: the attack computes a second picture with exactly the same gradient."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from leakage.attacks._gauss_newton import LARGEST, gauss_newton
from leakage.attacks._labels import labels_of
from leakage.attacks._lbfgs import search_once
from leakage.attacks.r_gap import RGap, distance, solvable_chain
from leakage.engine.core import Attack, DoesNotApplyError, Observation, Snapshot, choice, param
from leakage.engine.losses import loss_of
from leakage.engine.matching import from_pixels, to_pixels
from leakage.engine.whole_distance import flatten

SEARCHES = ("Gauss-Newton", "L-BFGS")
SAME = 0.01  # a replayed gradient counts as the received one if it differs by at most this fraction
OTHER = "No twin is shown: replayed, the gradients of the two pictures are {:.2g} % and {:.2g} % away from the one received."
ENDED = "Two pictures, one gradient. Started {:.2g} % away from the twin, the search ended {:.2g} % away."
LARGE = "A gradient of {:,} numbers is too long for Gauss-Newton steps: L-BFGS searches instead, and sticks at kinks before it arrives."
OF_ONE = "A twin is worked out for one picture; of several R-GAP finds one mixture only. Choose a batch of 1."
NONE = "There is one explanation of this gradient only, so no twin. A twin needs the label that the network itself predicts."
NEVER = "This network's gradients have one explanation each, so no twin: it has {}. Choose one output without biases, ReLU, no hinge loss."


@dataclass(frozen=True, kw_only=True)
class TwinData(Attack):
    """R-GAP's second picture, which belongs to the other root of the logit (the twin), and DLG's search started near this picture.

    In a network without biases, with the activations ReLU or LeakyReLU, one output and mu > 0, the pictures x and a x have the same
    gradient, where a = mu2 / mu1 for the two roots of mu l'(mu) = c; l is the logistic or the exponential loss. R-GAP computes both; its
    answer is the picture that exceeds [0, 1] less, and the other picture is the twin. DLG's distance is then minimised from the twin with
    noise of `noise` times its standard deviation, and the search ends at the twin. Gauss-Newton steps arrive after about ten; for one in
    seven of the gallery's pictures they do not arrive, as the distance jumps where a unit changes its sign. L-BFGS, which DLG uses, comes
    nearer, then sticks at such jumps and makes little progress between them. In an untrained network mu1 is small and a often 20 to 300,
    where L-BFGS with step 1 diverges: unlike DLG, it searches along every line here.
    Source: Zhu and Blaschko 2021, appendix B.
    """

    title = "Solve for a second picture with the same gradient (twin data)"
    short = "Twin data"
    plain = "Finds a second picture that would have sent exactly the same gradient: a search can end at either."
    hint = "Choose net A and one output (label = its own prediction). Both pictures send the same; the second is often far too bright."
    source = "https://arxiv.org/abs/2010.07733"
    reads_labels = True
    way = "Solve both ways; then search from the second."
    evaluations_per_step = 1000
    loss_name = "relative gradient distance"

    search: str = choice(
        "Gauss-Newton",
        SEARCHES,
        "How DLG's distance is minimised. L-BFGS is DLG's own; at kinks of the network it sticks.",
    )
    steps: int = param(24, 1, 2000, "Steps of the search, started near the twin. It ends early when it has arrived.")
    noise: float = param(0.01, 0, 1, "Noise added to the twin before the search starts, as a fraction of the twin's deviation.")

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        labels_of(seen, "best")  # raises where R-GAP could not read the label
        if seen.batch.size > 1:
            raise DoesNotApplyError(OF_ONE)
        if lacking := unscalable(seen):
            raise DoesNotApplyError(NEVER.format(lacking))
        answer: Snapshot | None = None
        for answer in RGap().run(seen, rng):
            yield answer
        assert answer is not None
        others = [x for x in answer.views.values() if not torch.equal(x, answer.x)] if answer.note.get("explanations", 1) != 1 else []
        if not others:
            yield replace(answer, note={**answer.note, "event": NONE})
            return
        twin = others[0]
        note = {key: value for key, value in answer.note.items() if key != "event"}
        note |= {"distance of the picture": float(answer.loss), "distance of the twin": float(distance(seen, twin, answer.y))}
        z = from_pixels(seen, twin)
        begin = z + self.noise * z.std() * torch.randn(z.shape, generator=rng).to(z)
        length = len(flatten(seen.as_gradient()))
        if self.search == "Gauss-Newton" and length <= LARGEST:
            moments = gauss_newton(seen, answer.y, begin, self.steps)
        else:
            moments = search_once(seen, rng, labels=answer.y, steps=self.steps, begin=begin, line_search="strong_wolfe")
            if self.search == "Gauss-Newton":
                yield replace(answer, note={**note, "event": LARGE.format(length)})
        last = answer
        for moment in moments:
            last = replace(moment, step=answer.step + moment.step, loss=distance(seen, moment.x, answer.y), note=note)
            yield last
        x = from_pixels(seen, answer.x)
        times = max(1.0, float((z * x).sum() / x.square().sum()))
        dim = f", {times:.3g} times as bright, shown dimmed" if times > 1 else ""
        shown = [to_pixels(seen)(from_pixels(seen, picture) / times) for picture in (twin, last.x)]
        views = {"the picture": answer.x, f"its twin{dim}": shown[0], "where the search ended": shown[1]}
        start, end = (float((at - z).norm() / z.norm()) for at in (begin, from_pixels(seen, last.x)))
        note = {**note, "start from the twin": start, "end from the twin": end, "event": ENDED.format(100 * start, 100 * end)}
        gaps = [float(note[f"distance of {which}"]) for which in ("the picture", "the twin")]
        if max(gaps) > SAME:
            note["event"] = OTHER.format(*(100 * gap for gap in gaps))
        yield replace(answer, step=last.step, note=note, views=views)


def unscalable(seen: Observation) -> str:
    """Return in words why no picture x of this network has a twin, a multiple a x with the same gradient; "" if it can have one.

    The reason is a property of the network, such as "several outputs". Raises DoesNotApplyError if the network is not a chain of layers.
    """
    layers = solvable_chain(seen).layers
    parts = [part for layer in layers for part in layer.weighted]
    curved = any(layer.activation is not None and layer.kink is None for layer in (*layers, *parts))
    biased = any(f"{part.name}.bias" in seen.received.weights or part.norm for part in parts)
    several, hinge = layers[-1].z != (1,), loss_of(seen.model) == "hinge"
    found = {"several outputs": several, "biases or norms": biased, "an activation with a curve": curved, "a hinge loss": hinge}
    return next((what for what, there in found.items() if there), "")
