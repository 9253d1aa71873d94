"""R-GAP: the attack solves linear equations layer by layer, from the output back to the picture."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from leakage.attacks._dense import Dense, invert_last_layer
from leakage.attacks._labels import labels_of
from leakage.attacks._logit import LastLayer, one_output
from leakage.attacks._recursion import BALANCED, SYSTEMS, Recursion, RecursionStep
from leakage.engine.chain import Chain, NoChainError, chain
from leakage.engine.chain_layer import ChainLayer
from leakage.engine.core import Attack, Observation, Params, Snapshot, choice
from leakage.engine.equations import Solved, TooLargeError
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.engine.losses import classes_of, loss_of
from leakage.engine.matching import grey_pictures
from leakage.engine.pixel_map import PixelMap
from leakage.engine.whole_distance import flatten
from leakage.engine.with_result import WithResult

MOST = 3  # the most explanations of the last layer's gradient that are followed if there are several outputs
BOX = 0.02  # pixels may leave [0, 1] by so much
NOT_A_CHAIN = (
    "R-GAP needs a chain of convolutions, residual blocks, means and linear layers, the last one linear; BatchNorm with its stored "
    "statistics. This network has {}. Choose such a chain, as CNN6, or a search."
)
TOO_LARGE = "The equations of {} do not fit into memory. Choose smaller pictures or a smaller network, or a search."
MIXTURE = "R-GAP takes the gradient for that of one picture. Of several it finds one mixture, shown in every place."
BROKEN = "This update passes no gradient through {} that a picture could have sent: R-GAP can go no further, and answers with grey."
UNREADABLE = "This update holds numbers that are not finite: no equation can be made of it."
MISSING = "The gradient of {} is zero, or its phone keeps it: going layer by layer ends there. A search goes on with the others."
SILENT = (
    "The last layer's gradient is zero, as behind a ReLU that lets nothing through or a hinge loss with its margin met, or its phone keeps "
    "it: there are no equations to begin with."
)
UNDECIDED = "{} pictures explain this gradient, and nothing in it says which is the private one. The first is shown, none is the answer."
SHORT = "Layer {}: {:,} equations determine {:,} of {:,} unknowns. The rest is guessed: the shortest solution."
ALL_SHORT = "From layer {} on all layers together: {:,} equations determine {:,} of {:,} unknowns. The rest is guessed."
APART = "Layer {} has too few equations, and is too large to be solved together with those below it. From there on down it is a guess."
STUCK = "From layer {} on all layers together have equations enough, but the search for their solution ended {:.1g} away from it."


@dataclass(frozen=True, kw_only=True)
class RGap(Attack):
    """A recursion from the last layer to the first: each layer's input x follows from linear equations in the layer's weights and gradient.

    For the activation a, z = a^-1(x of the layer above) and k = dL/dz = (W^T k of the layer above) * a'(z). A linear layer gives x by
    least squares over the rows of its gradient k x^T. A convolution gives gradient equations (k and x give dL/dw) and weight equations
    (w * x = z), except where ReLU gives 0. The logit times the label's sign, mu, solves <g, w> = mu l'(mu) for the loss l: one root for
    mu < 0, two for mu > 0, and one for a hinge loss. All roots are followed; if several give pixels in [0, 1], the result is called
    undecided. The label is read from the sign of the last layer's gradient; if that is not certain, both labels are tried. If the last
    layer has a bias, k is the bias's gradient; with several outputs and no bias, k's length is searched. Of a batch the attack finds a
    mixture. It imitates no protection: it takes the update for a gradient.
    BatchNorm is folded into its convolution with the statistics that the server sends with the model. The gradient of BatchNorm's weight
    gives an equation for each filter; that of its bias checks k. In a residual block f = W_n x_n + skip(x_1), x_n follows from the gradient
    of W_n, and x_1 from the equations of W_1 and of the skip; if these are too few, Gauss-Newton steps solve all equations of the block.
    `system` is "balanced", or "as published" (float32 between layers, rows unbalanced), or "together": a layer with too few equations is
    solved with the layers below it, which uses the paper's virtual constraints. At kinks that search may end beside the picture; an event
    says so.
    Unlike the paper: float64 and balanced rows by default; both roots; several outputs; blocks and virtual constraints are counted.
    Source: Zhu and Blaschko 2021, algorithm 1 with equations 6 to 15, appendices C and D.
    """

    title = "Solve layer by layer (R-GAP)"
    short = "R-GAP"
    plain = "Works the picture out by solving equations, from the last layer back to the first. Where these suffice nothing is guessed."
    hint = "For chains of convolutions, blocks and means, such as CNN6, LeNet* or nets A to E. Where equations are too few, it shows noise."
    source = "https://arxiv.org/abs/2010.07733"
    reads_labels = True
    strongest = {}
    fits = {"pictures": (1,), "precision": ("float64",)}
    way = "Solve layer by layer, from the output down."
    loss_name = "relative gradient distance"
    ends_without = "the weight of each layer, and the bias of the last layer"

    system: str = choice(
        BALANCED,
        SYSTEMS,
        "How each layer is solved: well scaled in float64, as in the authors' code, or, with too few equations, with the layers below it.",
    )

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        labels, note = labels_of(seen, "best")
        read = solvable_chain(seen)
        layers = list(read.layers)
        grey = grey_pictures(seen)
        blank = Snapshot(0, grey, labels, distance(seen, grey, labels), note)
        if seen.batch.size > 1:
            blank = replace(blank, note={**note, "event": MIXTURE})
            yield blank
        weights = {name: value.detach().cpu().double() for name, value in seen.received.weights.items()}
        gradient = {name: value.detach().cpu().double() for name, value in seen.as_gradient().items()}
        last = layers[-1]
        steps = [
            RecursionStep(solution, last, solution.x.view(last.x), last.input_gradient(weights, solution.k))
            for solution in self._last_layers(seen, last, weights, gradient, labels, note)
        ]
        recursion, short = Recursion(weights, gradient, self.system), ""
        for depth, layer in enumerate([last, *layers[-2::-1]]):
            try:
                if depth:
                    search = WithResult(recursion.next_steps(steps, layer))
                    for missed in search:
                        yield replace(blank, step=depth, note={**note, "layer": layer.name, "missed": missed})
                    steps = search.result
            except TooLargeError as error:
                raise DoesNotApplyError(TOO_LARGE.format(error)) from None
            if not steps:
                yield replace(blank, step=depth + 1, note={**note, "event": BROKEN.format(layer.name)})
                return
            best = steps[0]
            details = {**note, **best.note, "explanations": len(steps)}
            if best.solved and best.short not in ("", short):
                short, of = best.short, best.solved
                details["event"] = SHORT.format(short, of.equations, of.rank, of.unknowns) if short == layer.name else APART.format(short)
            if layer is layers[0] and best.open and best.solved:
                details["event"] = open_layers_event(best.open.layers[-1].name, best.solved)
            yield replace(blank, step=depth + 1, note=details, views={f"{layer.name}, {step.title}": step.x for step in steps})
        yield self._answer(seen, read.pixels, steps, replace(blank, step=len(layers), note=note))

    def _last_layers(
        self, seen: Observation, last: ChainLayer, weights: Params, gradient: Params, labels: Tensor, note: dict[str, str | int | float]
    ) -> list[LastLayer]:
        """Return the explanations of the last layer's gradient, at most MOST if it has several outputs and no bias."""
        weight, weight_gradient, k = weights[f"{last.name}.weight"], gradient[f"{last.name}.weight"], gradient.get(f"{last.name}.bias")
        label = int(classes_of(labels)[0])
        if k is not None:
            return [LastLayer(label, k, k @ weight_gradient / k.square().sum())]
        if len(weight) > 1:
            candidates = invert_last_layer(
                Dense(last.name, weight, bias=False, activation=last.activation), weight_gradient, loss_of(seen.model)
            )
            return [LastLayer(int(d.argmin()), d, x) for x, d in candidates[:MOST]]
        sure = seen.granted.labels is not None or note.get("label certainty") == 1
        labels_left = [label] if sure else [label, 1 - label]
        return one_output(weight, weight_gradient, labels_left, lambda out: last.derivative(last.inverse(out)), loss_of(seen.model))

    def _answer(self, seen: Observation, pixels: PixelMap, steps: list[RecursionStep], blank: Snapshot) -> Snapshot:
        """Return a Snapshot with the first explanation that has its pixels in [0, 1] as the answer, and all explanations as views.

        If no explanation has all pixels in [0, 1], the answer is the explanation that exceeds [0, 1] least.
        """
        shown = [pixels.pixels(step.x.flatten()).view(1, *seen.batch.image_shape).to(seen.device, seen.dtype) for step in steps]
        beyond = [float(torch.maximum(-x, x - 1).max()) for x in shown]
        inside = [index for index, excess in enumerate(beyond) if excess <= BOX]
        chosen = inside[0] if inside else beyond.index(min(beyond))
        last_layer, note = steps[chosen].last_layer, {**blank.note, "explanations": len(steps)}
        if seen.batch.size > 1:
            note["event"] = MIXTURE
        if len(inside) > 1:
            note["event"] = UNDECIDED.format(len(inside))
        if last_layer.mu is not None:
            note["mu"] = last_layer.mu
        x = shown[chosen].expand(seen.batch.size, -1, -1, -1)
        labels = blank.y if seen.batch.size > 1 or blank.y.dim() == 2 else torch.full_like(blank.y, last_layer.label)
        names = [step.title for step in steps] if len(steps) > 1 else ["the answer"]
        views = dict(zip(names, shown, strict=True))
        return Snapshot(blank.step, x, labels, distance(seen, x, labels), note, views)


def solvable_chain(seen: Observation) -> Chain:
    """Return the chain of the model: its layers in order, each with the output of the layer before as its only input.

    Raises DoesNotApplyError if the model is not a chain that ends in a linear layer, if the update is not finite, or if the gradient of a
    layer's weight is 0.
    """
    try:
        read = chain(seen.model, seen.batch.image_shape)
    except NoChainError as error:
        raise DoesNotApplyError(NOT_A_CHAIN.format(error)) from None
    if not read.layers or not isinstance(read.layers[-1].module, torch.nn.Linear):  # there the recursion begins
        raise DoesNotApplyError(NOT_A_CHAIN.format(f"{read.layers[-1].name if read.layers else 'nothing'} at its end"))
    gradient = seen.as_gradient()
    if not all(bool(value.isfinite().all()) for value in gradient.values()):
        raise DoesNotApplyError(UNREADABLE)
    silent = [part.name for layer in read.layers for part in layer.weighted if not bool(gradient[f"{part.name}.weight"].any())]
    if silent:
        raise DoesNotApplyError(SILENT if silent[-1] == read.layers[-1].name else MISSING.format(silent[-1]))
    return read


def open_layers_event(name: str, solved: Solved) -> str:
    """Return a warning for the page: the layers from the picture up to the layer `name`, solved together, lack equations or do not fit."""
    if solved.rank < solved.unknowns:
        return ALL_SHORT.format(name, solved.equations, solved.rank, solved.unknowns)
    return STUCK.format(name, solved.residual)


def distance(seen: Observation, x: Tensor, labels: Tensor) -> Tensor:
    """Compute the relative distance ||g(x, y) - g*|| / ||g*||, (), between the gradient of pictures (B, C, H, W) and the received one."""
    target = flatten(seen.as_gradient())
    relative: Tensor = (flatten(seen.gradient(x, labels)) - target).norm().detach() / target.norm()
    return relative
