"""R-GAP: the picture worked out layer by layer, from the output back, by linear equations."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from leakage.attacks._dense import Dense, from_loss
from leakage.attacks._labels import labels_of
from leakage.attacks._logit import Top, one_output
from leakage.engine.chain import Link, chain
from leakage.engine.core import Attack, Observation, Params, Snapshot, choice
from leakage.engine.equations import Solved, solve, solve_as_published
from leakage.engine.losses import loss_of
from leakage.engine.matching import flatten, grey_pictures, to_pixels

SYSTEMS = ("balanced", "as published")
ALIKE = 10.0  # an explanation is kept while its equations hold at most so many times worse than the best one's
EXACT = 1e-6  # ... or as well as this
MOST = 3  # lengths of the last layer's input that are followed, where there are several outputs
BOX = 0.02  # pixels may leave [0, 1] by so much
NOT_A_CHAIN = "R-GAP needs a plain chain of convolutions and linear layers. This network has {}, so it answers with grey."
MIXTURE = "R-GAP takes the gradient for that of one picture. Of several it finds one mixture, shown in every place."
BROKEN = "This update holds numbers that are not finite, or passes no gradient through {}: R-GAP can go no further, and answers with grey."
MISSING = "The gradient of {} is zero, or its phone keeps it: going layer by layer ends there. A search goes on with the others."
SILENT = (
    "The last layer's gradient is zero, as behind a ReLU that lets nothing through or a hinge loss whose margin is met, or its phone keeps "
    "it: it says nothing here."
)
UNDECIDED = "{} pictures explain this gradient, and nothing in it says which is the private one. The first is shown, none is the answer."
SHORT = "Layer {}: {:,} equations determine {:,} of {:,} unknowns. The rest is guessed: the shortest solution."


@dataclass(frozen=True)
class Climb:
    """One explanation of the gradient, worked out down to the input x of one layer, from k = dL/dz of that layer.

    solved     how that layer's equations were solved; None for a linear one
    residual   the largest of all layers so far
    short      the first layer whose equations did not determine its input
    """

    top: Top
    link: Link
    x: Tensor
    k: Tensor
    solved: Solved | None = None
    residual: float = 0.0
    short: str = ""

    @property
    def words(self) -> str:
        """Its name for the page."""
        return f"label {self.top.label}" + (f", mu = {self.top.mu:.3g}" if self.top.mu is not None else "")

    @property
    def note(self) -> dict[str, str | int | float]:
        """The layer in numbers."""
        told: dict[str, str | int | float] = {"layer": self.link.name}
        return told | ({name: value for name, value in vars(self.solved).items() if name != "x"} if self.solved else {})


@dataclass(frozen=True, kw_only=True)
class RGap(Attack):
    """Recursion from the last layer: z = bend^-1(x of the layer above), k = (W^T k above) * bend'(z), then x from linear equations.

    A linear layer gives x by least squares over the rows of k x^T. A convolution gives gradient equations (k against dL/dw) and weight
    equations (w * x = z), without those of a ReLU's zeros. The logit follows from <g, w> = mu l'(mu): one root for mu < 0, two for mu > 0,
    of a hinge loss one; all are worked out, and where pixels in [0, 1] do not decide none is called the answer. The label is read from the
    sign of the last layer's gradient; where that is not certain, from which label's equations are solved. With a bias in the last layer k
    is its gradient; with several outputs and none, k's length is searched. "as published": float32 between layers, rows unbalanced. Of a
    batch it finds a mixture. It imitates no protection: it takes the update for a gradient.
    Unlike the paper: float64 and balanced rows by default; both roots; several outputs.
    Source: Zhu and Blaschko 2021, algorithm 1, equations 4 to 9.
    """

    title = "Solve layer by layer (R-GAP)"
    short = "R-GAP"
    plain = "Works the picture out by solving equations, from the last layer back to the first. No search, no luck."
    hint = "For plain chains without skips and pooling, such as CNN6, LeNet* or nets A to E. Where equations are too few, it shows noise."
    source = "https://arxiv.org/abs/2010.07733"
    reads_labels = True
    strongest = {}
    fits = {"pictures": (1,), "precision": ("float64",)}
    way = "Solve layer by layer, from the output down."
    loss_name = "relative gradient distance"
    ends_without = "the weight of any layer, and of the last first of all (with its bias), where it begins"

    system: str = choice("balanced", SYSTEMS, "How each layer is solved: well scaled in float64, or as the authors' code does it.")

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        labels, note = labels_of(seen, "best")
        grey = grey_pictures(seen)
        blank = Snapshot(0, grey, labels, distance(seen, grey, labels), note)
        try:
            links = chain(seen.model, seen.image_shape)
        except ValueError as error:
            yield replace(blank, note={**note, "event": NOT_A_CHAIN.format(error)})
            return
        if seen.batch_size > 1:
            blank = replace(blank, note={**note, "event": MIXTURE})
            yield blank
        weights = {name: value.detach().cpu().double() for name, value in seen.weights.items()}
        gradient = {name: value.detach().cpu().double() for name, value in seen.as_gradient().items()}
        last = links[-1]
        if not all(bool(value.isfinite().all()) for value in gradient.values()):
            yield replace(blank, note={**note, "event": BROKEN.format("some layer")})
            return
        if not bool(gradient[f"{last.name}.weight"].any()):
            yield replace(blank, note={**note, "event": SILENT})
            return
        if gone := [link.name for link in links if not bool(gradient[f"{link.name}.weight"].any())]:
            yield replace(blank, note={**note, "event": MISSING.format(gone[-1])})
            return
        climbs = [Climb(top, last, top.x.view(last.x), top.k) for top in self._tops(seen, last, weights, gradient, labels, note)]
        for step, link in enumerate([last, *links[-2::-1]]):
            if step:
                climbs = agreeing([self._down(climb, link, weights, gradient) for climb in climbs])
            if not climbs:
                yield replace(blank, step=step + 1, note={**note, "event": BROKEN.format(link.name)})
                return
            best = climbs[0]
            told = {**note, **best.note, "explanations": len(climbs)}
            if best.short == link.name and best.solved:
                told["event"] = SHORT.format(link.name, best.solved.equations, best.solved.rank, best.solved.unknowns)
            yield replace(blank, step=step + 1, note=told, views={f"{link.name}, {climb.words}": climb.x for climb in climbs})
        yield self._answer(seen, climbs, replace(blank, step=len(links), note=note))

    def _tops(
        self, seen: Observation, last: Link, weights: Params, gradient: Params, labels: Tensor, note: dict[str, str | int | float]
    ) -> list[Top]:
        """Every explanation of the last layer's gradient."""
        weight, slopes, k = weights[f"{last.name}.weight"], gradient[f"{last.name}.weight"], gradient.get(f"{last.name}.bias")
        label = int(labels[0])
        if k is not None:
            return [Top(label, k, k @ slopes / k.square().sum())]
        if len(weight) > 1:
            ends = from_loss(Dense(last.name, weight, bias=False, activation=last.activation), slopes)
            return [Top(int(d.argmin()), d, x) for x, d in ends[:MOST]]
        sure = seen.labels is not None or note.get("label certainty") == 1
        labels_left = [label] if sure else [label, 1 - label]
        return one_output(weight, slopes, labels_left, lambda out: last.slope(last.before(out)), loss_of(seen.model))

    def _down(self, climb: Climb, link: Link, weights: Params, gradient: Params) -> Climb:
        """One layer further down: the input of `link`, whose output is the input that has been found."""
        out = climb.x.reshape(link.z)
        z = link.before(out)
        k = climb.link.pull(weights[f"{climb.link.name}.weight"], climb.k).reshape(link.z) * link.slope(z)
        finite = bool((k.sum() + z.sum()).isfinite())
        if not finite or not bool(k.any()):  # noise; or nothing passes: a ReLU lets nothing through, or a wrong label says so
            return replace(climb, link=link, residual=math.inf)
        g, w, bias = gradient[f"{link.name}.weight"], weights[f"{link.name}.weight"], weights.get(f"{link.name}.bias")
        if w.dim() == 2:
            x = k @ g / k.square().sum()
            off = float((torch.outer(k, x) - g).norm() / g.norm())
            return replace(climb, link=link, x=x.view(link.x), k=k, solved=None, residual=max(off, climb.residual))
        known = z > 0 if isinstance(link.activation, torch.nn.ReLU) else torch.ones_like(out, dtype=torch.bool)
        z = z if bias is None else z - bias.view(-1, 1, 1)
        how = solve if self.system == "balanced" else solve_as_published
        solved = how(k, g, w, z, known, stride=link.stride, padding=link.padding, sides=(link.x[1], link.x[2]))
        short = climb.short or (link.name if solved.rank < solved.unknowns else "")
        return Climb(climb.top, link, solved.x, k, solved, max(climb.residual, solved.residual), short)

    def _answer(self, seen: Observation, climbs: list[Climb], blank: Snapshot) -> Snapshot:
        """The explanation whose pixels are pixels; all of them beside it where that does not decide."""
        pixels = to_pixels(seen)
        shown = [pixels(climb.x.view(1, *seen.image_shape).to(seen.device, seen.dtype)) for climb in climbs]
        beyond = [float(torch.maximum(-x, x - 1).max()) for x in shown]
        inside = [place for place, far in enumerate(beyond) if far <= BOX]
        chosen = inside[0] if inside else beyond.index(min(beyond))
        top, note = climbs[chosen].top, {**blank.note, "explanations": len(climbs)}
        if len(inside) > 1:
            note["event"] = UNDECIDED.format(len(inside))
        if top.mu is not None:
            note["mu"] = top.mu
        x = shown[chosen].expand(seen.batch_size, -1, -1, -1)
        labels = blank.y if seen.batch_size > 1 else torch.full_like(blank.y, top.label)
        names = [climb.words for climb in climbs] if len(climbs) > 1 else ["the answer"]
        views = dict(zip(names, shown, strict=True))
        return Snapshot(blank.step, x, labels, distance(seen, x, labels), note, views)


def agreeing(climbs: list[Climb]) -> list[Climb]:
    """Those whose equations hold about as well as the best one's, which comes first: a wrong label soon contradicts itself."""
    climbs = sorted((climb for climb in climbs if math.isfinite(climb.residual)), key=lambda climb: climb.residual)
    return [climb for climb in climbs if climb.residual <= max(ALIKE * climbs[0].residual, EXACT)]


def distance(seen: Observation, x: Tensor, labels: Tensor) -> Tensor:
    """||g(x, y) - g*|| / ||g*||."""
    target = flatten(seen.as_gradient())
    share: Tensor = (flatten(seen.gradient(x, labels)) - target).norm().detach() / target.norm()
    return share
