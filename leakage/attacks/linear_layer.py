"""The bias attack: a fully connected layer's gradient contains its input, scaled, so the attack needs no search."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

from leakage.attacks._dense import invert_last_layer, invert_layers, received, rows_of, rows_of_sums
from leakage.attacks._labels import class_scores, labels_of, readable
from leakage.attacks._read_layers import Reading
from leakage.attacks._rows import ESTIMATES, are_copies, estimate, separate
from leakage.engine.core import Attack, Observation, Snapshot, choice, param
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.engine.labels import rule_field
from leakage.engine.logit_layer import last_layer
from leakage.engine.losses import fractions_of, loss_of
from leakage.engine.tensor_names import OF

ROUNDING = 1e-10  # a squared relative distance below this counts as 0
AS_GOOD = 10.0  # guesses within so many times the smallest distance explain the gradient equally well
EXACT = 1e-4  # 1 % of the gradient's length, squared: subtracting rounded weights stays below, noise and protections exceed it


@dataclass(frozen=True)
class RowsFound:
    """The guesses that follow from the rows of a gradient.

    x        guesses of the whole batch, (B, n) each, pixels in float64
    origin   the rows and the layer from which the guesses were read, in words
    agreed   the number of pictures on which at least two rows agree
    """

    x: list[Tensor]
    origin: str
    agreed: int = 1


@dataclass(frozen=True, kw_only=True)
class LinearLayer(Attack):
    """x = dL/dW_j / dL/db_j: the weight's gradient is d x^T and the bias's is d, so every row of the first layer is a copy of the picture.

    `estimate` selects how the copies become a picture (`attacks/_rows.py`). If the first layer has no bias, the attack starts at the
    first layer with a bias and goes back to the pixels. If no layer has a bias, it starts at the last layer, with the derivative that the
    loss allows (`attacks/_dense.py`).
    For a batch every row is a mixture of pictures, but a row that ReLU leaves active for a single picture is a copy of that picture. The
    answer is the pictures on which most rows agree, ordered by their labels with the last layer's gradient. If sums over fewer clients
    arrive beside the sum over all clients (a ring of clients, layers that are not encrypted), their rows count too: a client with a single
    picture sends copies of it. The attack finds the first layer by tracing the network's computation, and undoes how the network scales and
    moves each pixel before that layer.
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

    estimate: str = choice("least squares", ESTIMATES, "How the copies of the picture, one in every row of the gradient, are combined.")
    threshold: float = param(1e-12, 0, 1, "Rows with a bias gradient below this fraction of the largest are left out.")
    label_rule: str = rule_field()

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        labels, note = labels_of(seen, self.label_rule)
        rows = self._batch(seen) if seen.batch.size > 1 else self._single(seen)
        found = [snapshot_of(seen, in_order(seen, x, labels), labels) for x in rows.x]
        least = min(float(snapshot.loss) for snapshot in found)
        likely = [snapshot for snapshot in found if float(snapshot.loss) <= max(ROUNDING, AS_GOOD * least)]
        answer = min(likely, key=lambda snapshot: float((snapshot.x - snapshot.x.clamp(0, 1)).abs().max()))
        event = warning_of(rows, seen.batch.size, float(answer.loss))
        yield replace(answer, note={**note, "read from": rows.origin} | ({"event": event} if event else {}))

    def _single(self, seen: Observation) -> RowsFound:
        """Reconstruct a single picture, from the first layer with a bias, or without biases from the last layer, back to the pixels.

        Raises DoesNotApplyError where dead units or another kind of layer block the way back.
        """
        reading, gradient = Reading.of(seen), seen.as_gradient()
        first, pixels = reading.pixel_layer()
        layers, stop = reading.dense(first.number)
        start = next((index for index, layer in enumerate(layers) if layer.bias), None)
        if start is not None:
            weight_gradient, d = rows_of(gradient, layers[start].name, self.threshold)
            whole = received(gradient, f"{layers[start].name}.bias")
            below, ends = layers[: start + 1], [(estimate(self.estimate, weight_gradient, d), whole)]
            where = f"{len(d)} rows of {layers[start].name}"
        elif stop:
            raise DoesNotApplyError(f"Without any bias this attack begins at the last layer, and there is no way back through {stop}.")
        else:
            weight_gradient = received(gradient, f"{layers[-1].name}.weight")
            below, ends = layers, invert_last_layer(layers[-1], weight_gradient, loss_of(seen.model))
            where = f"{layers[-1].name} and the loss"
        found, dead = [], ""
        for x, d in ends:
            try:
                found.append(pixels.pixels(invert_layers(below, gradient, x, d).unsqueeze(0)))
            except DoesNotApplyError as error:
                dead = dead or str(error)
        if not found:
            raise DoesNotApplyError(dead)
        layers_back = f", {len(below) - 1} layers back" if len(below) > 1 else ""
        return RowsFound(found, where + layers_back)

    def _batch(self, seen: Observation) -> RowsFound:
        """Reconstruct a batch from rows of the first layer that belong to a single picture; mixtures stand for the pictures not found.

        Raises DoesNotApplyError if the first layer has no bias.
        """
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
        relu = isinstance(reading.following_step(first.number), nn.ReLU)
        agreed = sum(size > 1 for size in sizes) if relu else sum(are_copies(*rows) for rows in sums[1:])
        beside = f", in {len(sums)} sums" if len(sums) > 1 else ""
        return RowsFound([x], f"{sum(sizes)} of {len(d)} rows of {first.name}{beside}", agreed)


def snapshot_of(seen: Observation, x: Tensor, labels: Tensor) -> Snapshot:
    """Return a Snapshot of pictures (B, ...) with the loss ||g(x, y) - g*||^2 / ||g*||^2, where g* is the sum over all clients."""
    x = as_pictures(seen, x)
    target = {name: g for name, g in seen.as_gradient().items() if OF not in name}
    replayed = seen.gradient(x, labels)
    length = torch.stack([g.square().sum() for g in target.values()]).sum()
    gap = torch.stack([(replayed[name].detach() - g).square_().sum() for name, g in target.items()]).sum()
    return Snapshot(step=1, x=x, y=labels, loss=gap / length if length > 0 else gap)


def as_pictures(seen: Observation, x: Tensor) -> Tensor:
    """Reshape pixels (B, ...) to (B, C, H, W), on the model's device and in its precision."""
    return x.view(-1, *seen.batch.image_shape).to(seen.device, next(iter(seen.received.weights.values())).dtype)


def in_order(seen: Observation, pixels: Tensor, labels: Tensor) -> Tensor:
    """Sort pictures (B, n) into the order of the labels (B,), by the classes that the last layer's gradient gives them.

    The order stays as it is if there is a single picture or if the last layer is not linear. Raises DoesNotApplyError if that gradient is
    not finite.
    """
    if len(pixels) == 1 or not readable(seen):
        return pixels
    return pixels[labels_by_class(seen, pixels, labels, clients=1).argsort()]


def labels_by_class(seen: Observation, pixels: Tensor, labels: Tensor, *, clients: int) -> Tensor:
    """Return which of the labels (B,) each picture (B, n) has, as indices (B,), by the classes that the last layer's gradient gives them.

    Args:
        seen: what the attacker observed; its model has a linear last layer.
        pixels: the pictures.
        labels: the labels.
        clients: the pictures and the labels are shared evenly by so many clients, in their order; a picture has a label of its client.

    Raises:
        DoesNotApplyError: the gradient of the last layer is not finite.
    """
    received(seen.as_gradient(), last_layer(seen)[0])
    scores = class_scores(seen, as_pictures(seen, pixels))
    wanted = fractions_of(labels.cpu(), scores.shape[1]).to(scores)  # (B, K)
    costs = torch.full((len(pixels), len(labels)), torch.inf, dtype=scores.dtype)
    for own in torch.arange(len(pixels)).tensor_split(clients):
        costs[own[:, None], own] = -(scores[own] @ wanted[own].T)
    return torch.as_tensor(linear_sum_assignment(costs.numpy())[1])


def warning_of(reading: RowsFound, count: int, loss: float) -> str:
    """Return a warning about an answer at the squared relative distance `loss`; empty if the answer is exact."""
    if reading.agreed < count and loss > ROUNDING:
        return f"Several rows agree on {reading.agreed} of the {count} pictures; the others shown may be mixtures of several."
    if loss <= EXACT:
        return ""
    return (
        f"The pictures that were read off have a gradient that differs by {loss**0.5:.0%} from the received gradient: the pictures or "
        "their guessed classes are not exact. Wrong guesses of classes, noise, a protection or local steps can be the cause."
    )
