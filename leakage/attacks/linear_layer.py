"""The bias attack: the gradient of a fully connected layer is its input, scaled. No search, no guess."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

from leakage.attacks._dense import back, from_loss, received, rows_of, rows_of_sums
from leakage.attacks._labels import labels_of, readable, said_of
from leakage.attacks._read_layers import Reading
from leakage.attacks._rows import ESTIMATES, are_copies, estimate, separate
from leakage.engine.core import Attack, Observation, Snapshot, choice, param
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.engine.labels import rule_field
from leakage.engine.logit_layer import last_layer
from leakage.engine.losses import fractions_of, loss_of
from leakage.engine.tensor_names import OF

ROUNDING = 1e-10  # a squared relative distance below this is no distance
AS_GOOD = 10.0  # guesses within so many times the smallest distance explain the gradient equally well
EXACT = 1e-4  # 1 % of the gradient's length: above this something came in between, even where weights were subtracted from each other


@dataclass(frozen=True)
class RowsFound:
    """What the rows say.

    x        guesses at the whole batch, (B, n) each, pixels in float64
    place    where they were read, in words
    agreed   on how many pictures of the batch several rows agree
    """

    x: list[Tensor]
    place: str
    agreed: int = 1


@dataclass(frozen=True, kw_only=True)
class LinearLayer(Attack):
    """x = dL/dW_j / dL/db_j: the weight's gradient is d x^T and the bias's is d, so every row of the first layer is a copy of the picture.

    `estimate` says how the copies become one picture (`attacks/_rows.py`). Without a bias in the first layer: from the first layer that has
    one back to the pixels; without any from the last layer, with the derivative that the loss allows (`attacks/_dense.py`).
    Of a batch every row is a mixture, but a row that ReLU leaves active for one picture alone is that picture: the pictures on which most
    rows agree are the answer, put in the order of their labels by the last layer's gradient. Where sums over fewer clients arrive beside
    that over all (a ring of phones, layers that are not encrypted), their rows count too: those of one client's one picture are copies.
    The first layer is found by what the network computes; what it does to each pixel before that, scaling or moving it, is undone.
    Unlike the papers: least squares over the rows instead of their mean, activations other than ReLU, several classes without any bias.
    Source: Phong et al. 2018, section 3; Geiping et al. 2020, propositions 3.1 and D.1; Zhu and Blaschko 2021, theorem 1.
    """

    title = "Solve the first layer (bias attack)"
    short = "Bias attack"
    plain = "Divides the gradient of the first layer's weights by that of its biases: the result is the picture, without any search."
    hint = "Needs a fully connected first layer: choose the MLP. Then add noise, or a second picture, and see what the rows still agree on."
    way = "Divide one gradient by another: no search."
    loss_name = "squared relative gradient distance"
    ends_without = "the weight or the bias of the first layer"
    source = "https://eprint.iacr.org/2017/715"
    reads_labels = True
    strongest = {}
    fits = {"model": ("mlp", "fcn3")}

    estimate: str = choice("least squares", ESTIMATES, "How the copies of the picture, one in every row of the gradient, become one.")
    threshold: float = param(1e-12, 0, 1, "Rows whose bias's gradient is below this share of the largest are left out.")
    label_rule: str = rule_field()

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        labels, note = labels_of(seen, self.label_rule)
        rows = self._batch(seen) if seen.batch.size > 1 else self._single(seen)
        found = [snapshot_of(seen, in_order(seen, x, labels), labels) for x in rows.x]
        least = min(float(one.loss) for one in found)
        likely = [one for one in found if float(one.loss) <= max(ROUNDING, AS_GOOD * least)]
        answer = min(likely, key=lambda one: float((one.x - one.x.clamp(0, 1)).abs().max()))
        event = words(rows, seen.batch.size, float(answer.loss))
        yield replace(answer, note={**note, "read from": rows.place} | ({"event": event} if event else {}))

    def _single(self, seen: Observation) -> RowsFound:
        """One picture: from the first layer with a bias, or else from the last one, back to the pixels. Raises DoesNotApplyError."""
        reading, gradient = Reading.of(seen), seen.as_gradient()
        first, pixels = reading.pixel_layer()
        layers, stop = reading.dense(first.place)
        start = next((place for place, layer in enumerate(layers) if layer.bias), None)
        if start is not None:
            weight_gradient, d = rows_of(gradient, layers[start].name, self.threshold)
            whole = received(gradient, f"{layers[start].name}.bias")
            below, ends = layers[: start + 1], [(estimate(self.estimate, weight_gradient, d), whole)]
            where = f"{len(d)} rows of {layers[start].name}"
        elif stop:
            raise DoesNotApplyError(f"Without any bias this attack begins at the last layer, and there is no way back through {stop}.")
        else:
            weight_gradient = received(gradient, f"{layers[-1].name}.weight")
            below, ends = layers, from_loss(layers[-1], weight_gradient, loss_of(seen.model))
            where = f"{layers[-1].name} and the loss"
        found, dead = [], ""
        for x, d in ends:
            try:
                found.append(pixels.pixels(back(below, gradient, x, d).unsqueeze(0)))
            except DoesNotApplyError as error:
                dead = dead or str(error)
        if not found:
            raise DoesNotApplyError(dead)
        layers_back = f", {len(below) - 1} layers back" if len(below) > 1 else ""
        return RowsFound(found, where + layers_back)

    def _batch(self, seen: Observation) -> RowsFound:
        """Several pictures: the rows of the first layer that belong to one alone; where those do not suffice, mixtures."""
        reading, gradient = Reading.of(seen), seen.as_gradient()
        first, pixels = reading.pixel_layer()
        if not first.bias:
            raise DoesNotApplyError(
                "Without a bias in the first layer a batch cannot be told apart; of one picture nothing would be hidden."
            )
        whole = rows_of(gradient, first.name, self.threshold)
        sums = rows_of_sums(gradient, first.name, self.threshold)
        weight_gradient, d = (torch.cat(rows) for rows in zip(*sums, strict=True))
        x, sizes = separate(pixels.pixels(weight_gradient / d.unsqueeze(1)), d, seen.batch.size)
        mixture = pixels.pixels(estimate("least squares", *whole).unsqueeze(0))
        x = torch.cat([x, mixture.expand(seen.batch.size - len(x), -1)])
        relu = isinstance(reading.activated(first.place), nn.ReLU)
        agreed = sum(size > 1 for size in sizes) if relu else sum(are_copies(*rows) for rows in sums[1:])
        beside = f", in {len(sums)} sums" if len(sums) > 1 else ""
        return RowsFound([x], f"{sum(sizes)} of {len(d)} rows of {first.name}{beside}", agreed)


def snapshot_of(seen: Observation, x: Tensor, labels: Tensor) -> Snapshot:
    """These pictures with ||g(x, y) - g*||^2 / ||g*||^2, of the gradient of all clients: which picture is whose is not asked."""
    x = as_pictures(seen, x)
    target = {name: g for name, g in seen.as_gradient().items() if OF not in name}
    replayed = seen.gradient(x, labels)
    length = torch.stack([g.square().sum() for g in target.values()]).sum()
    gap = torch.stack([(replayed[name].detach() - g).square().sum() for name, g in target.items()]).sum()
    return Snapshot(step=1, x=x, y=labels, loss=gap / length if length > 0 else gap)


def as_pictures(seen: Observation, x: Tensor) -> Tensor:
    """Pixels (B, ...) where the model is, and as precise: (B, C, H, W)."""
    return x.view(-1, *seen.batch.image_shape).to(seen.device, next(iter(seen.received.weights.values())).dtype)


def in_order(seen: Observation, pixels: Tensor, labels: Tensor) -> Tensor:
    """The pictures (B, n) in the order of their labels (B,), as the last layer's gradient tells; as they are where it cannot be read.

    Raises DoesNotApplyError where it is not finite.
    """
    if len(pixels) == 1 or not readable(seen):
        return pixels
    received(seen.as_gradient(), last_layer(seen)[0])
    said = said_of(seen, as_pictures(seen, pixels))
    wanted = fractions_of(labels.cpu(), said.shape[1]).to(said)  # (B, K)
    _, places = linear_sum_assignment(-(said @ wanted.T).numpy())
    return pixels[torch.as_tensor(places.argsort())]


def words(reading: RowsFound, count: int, loss: float) -> str:
    """What the user must not miss about an answer at this distance; empty where it is exact."""
    if reading.agreed < count and loss > ROUNDING:
        return f"Several rows agree on {reading.agreed} of the {count} pictures; the others shown may be mixtures of several."
    if loss <= EXACT:
        return ""
    return (
        f"The gradient of what was read off is {loss**0.5:.0%} away from the one received: it is no exact copy. "
        "Noise, a protection or local steps came in between."
    )
