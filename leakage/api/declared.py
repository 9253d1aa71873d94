"""The check of what the caller declared of a client: whether it can have made the update, and which declaration fits better."""

from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from math import prod, sqrt

import torch
from torch import Tensor, nn

from leakage.api.arrival import MODES, Arrival, Mode, stores_statistics
from leakage.attacks._lbfgs import search_once
from leakage.engine.core import Observation, generator
from leakage.engine.label_probes import Head, head
from leakage.engine.labels import recover
from leakage.engine.losses import CustomLoss, client_loss
from leakage.engine.matching import from_pixels
from leakage.evaluation.metrics import gradient_distances
from leakage.evaluation.referee import Frame

FITS = 0.1  # largest relative distance at which a reconstruction explains an update
MISSES = 0.3  # relative distance above which other declarations are tried
SHORTER = 6  # the direction fits and the length does not where the distance is more than this many times the angle
HALF = 0.5  # another declaration fits better where it leaves less than this fraction of the angle
POLISH = 5  # L-BFGS steps on the distance, which may correct the length
ROUNDING = 0.02  # largest rounding error of half precision and of a sum over classes, as a fraction of the gradient's size
CANNOT = "What you declared cannot have made this update: "


@dataclass(frozen=True)
class UpdateFit:
    """How well a reconstruction explains an update without known pictures, if the client is as the caller's arguments declare it.

    Args:
        distance: between the update that the reconstruction would have made and the received update, as a fraction of the latter's length
        cosine: of the angle between the two updates
        length: of the update that the reconstruction would have made, as a multiple of the received update's length
        batch_norm: the statistics of BatchNorm that were assumed, "eval" or "batch"
        better: each change of the arguments that fits better, in words, with the relative distance that it would leave
        warnings: sentences on what was declared; empty where nothing speaks against it
    """

    distance: float
    cosine: float
    length: float
    batch_norm: str
    better: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def fit_of(arrival: Arrival, seen: Observation, batch_norm: Mode, last: Frame) -> UpdateFit:
    """Return how well an attack's answer explains an update without known pictures, with warnings on the caller's arguments.

    Args:
        arrival: the update and the arguments of the call.
        seen: what the attacker observed.
        batch_norm: the statistics of BatchNorm that the attack assumed.
        last: the last Frame of the attack, its answer.
    """
    y = _labels_of(seen, last)
    x = last.x.to(seen.device, seen.dtype)
    distance, cosine, length = _compared(seen, x, y)
    fit = UpdateFit(distance, cosine, length, batch_norm)
    if not arrival.arguments.federation.adaptive:
        return fit  # a naive attacker declares nothing
    federation = arrival.arguments.federation
    plain = not federation.protections and not federation.aggregation.is_aggregation
    warnings, better = contradictions(seen, arrival) if plain else [], dict[str, float]()
    angle = sqrt(max(0.0, 1 - cosine**2))
    if distance > MISSES and angle > MISSES:
        better = _try_other_declarations(arrival, batch_norm, angle)
        badly = f"The reconstruction explains the update badly: relative distance {distance:.2g}."
        warnings += [f"{badly} {words.capitalize()} a short search already comes to {left:.2g}." for words, left in better.items()]
    elif plain and distance > max(FITS, SHORTER * angle) and (warnings or _length_stays(seen, x, y, distance)):
        better = {"with its length matched": angle}
        warnings += [_length_words(arrival, length)]
    if plain and distance > FITS and not warnings:
        warnings += [
            f"The reconstruction explains the update badly: relative distance {distance:.2g}, where 0 is exact. Either the search was too "
            "short, or the client did something else than declared: protocol, rate, steps, batch size, loss, normalization or a protection."
        ]
    return UpdateFit(distance, cosine, length, batch_norm, better, tuple(warnings))


# ---------------------------------------------------------------- evidence in the update alone


def contradictions(seen: Observation, arrival: Arrival) -> list[str]:
    """List sentences, each with a property of the update that no client as the caller declared it can send.

    The client is declared to have this batch, protocol and loss, and no protection.

    Cross-entropy's gradient of the logits is p - e_y for each picture: it sums to 0 over the classes, is negative for the class alone, and
    its absolute values sum to at most 2. The mean over pictures and over steps of SGD has the same properties, but each picture can make
    another class negative. The gradient of a linear layer is a sum of outer products, one for each of its inputs, which bounds its rank.
    """
    if arrival.arguments.federation.protocol.id not in ("fedsgd", "fedavg"):  # other protocols add to the gradient of the loss
        return []
    sentences = _rank_words(seen, arrival)
    if client_loss(seen.model) == "cross-entropy":
        with suppress(ValueError):  # no linear layer makes the logits
            sentences += _head_words(head(seen), seen, arrival)
    return sentences


def _head_words(last: Head, seen: Observation, arrival: Arrival) -> list[str]:
    rows = last.weight_gradient.detach().double() if last.bias is None else last.bias.detach().double().unsqueeze(1)  # (K, D) or (K, 1)
    size, count = float(rows.abs().sum()), seen.batch.size
    if float(rows.sum(0).abs().sum()) > ROUNDING * size:
        return [
            f"{CANNOT}the gradient of the last layer would sum to 0 over the classes, as that of cross-entropy does. Another loss (loss=), "
            "another optimiser than SGD, noise or a protection would do this."
        ]
    if last.bias is None:  # the signs of a weight's rows are those of its inputs too
        return []
    edge = ROUNDING * float(rows.abs().max())
    negative, positive = int((rows < -edge).sum()), int((rows > edge).sum())
    turned = negative > count >= positive
    large = size > 2 * (1 + ROUNDING)
    if turned:
        remedy = "Turn its sign: what is sent is the weights after training minus those before."
        if arrival.arguments.federation.protocol.sends_gradient:
            remedy = 'It may be a difference of weights: declare protocol="fedavg" with its steps and rate.'
        elif large:
            remedy = 'It may be a gradient: declare protocol="fedsgd".'
        return [
            f"{CANNOT}{negative} of {len(rows)} entries of the last bias's gradient are negative, where {_allow(count)} "
            f"{count} at most. With the sign turned they are {positive}. {remedy}"
        ]
    if large:
        return [
            f"{CANNOT}the entries of the last bias's gradient sum to {size:.3g} in size, and the mean cross-entropy allows 2 at most. A "
            "larger rate, more local steps, or a loss that sums over pictures (loss=) would do this."
        ]
    return []


def _rank_words(seen: Observation, arrival: Arrival) -> list[str]:
    """Return a list with a sentence on the first linear layer with a gradient of higher rank than its number of inputs allows.

    The list is empty if there is no such layer.
    """
    steps, gradient = getattr(arrival.arguments.federation.protocol, "epochs", 1), seen.as_gradient()
    for name, count in _inputs_of(seen.model, arrival.probe).items():
        matrix, bound = gradient[f"{name}.weight" if name else "weight"].detach(), count * steps
        if bound >= min(matrix.shape):
            continue
        values = torch.linalg.svdvals(matrix.double())
        if float(values[bound]) > ROUNDING * float(values[0]):
            rank = int((values > ROUNDING * values[0]).sum())
            return [
                f"{CANNOT}the gradient of layer {name or 'Linear'} has rank {rank} at least, and {_allow(seen.batch.size)} {bound} at "
                "most. More pictures (batch_size), more local steps, noise or a protection would do this."
            ]
    return []


def _allow(count: int) -> str:
    return "1 picture allows" if count == 1 else f"{count} pictures allow"


def _inputs_of(model: nn.Module, x: Tensor) -> dict[str, int]:
    """Count the input vectors that each trained linear layer is given for pictures x (B, C, H, W), by the layer's name."""
    counts: dict[str, int] = {}
    linear = {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.Linear) and layer.weight.requires_grad}

    def count(name: str, given: Tensor) -> None:
        counts[name] = counts.get(name, 0) + prod(given.shape[:-1])

    with ExitStack() as hooks, torch.no_grad():
        for name, layer in linear.items():
            hooks.enter_context(layer.register_forward_pre_hook(lambda _, given, name=name: count(name, given[0])))
        model(x)
    return counts


# ---------------------------------------------------------------- evidence in the reconstruction


def _labels_of(seen: Observation, last: Frame) -> Tensor:
    """Return the labels of an answer: granted, read where a picture may have several, else the classes that the attack assigned."""
    loss = client_loss(seen.model)
    if seen.granted.labels is not None:
        return seen.granted.labels
    if isinstance(loss, CustomLoss) and loss.shows_labels:
        return recover(seen).labels
    return torch.tensor(last.labels, device=seen.device)


def _compared(seen: Observation, x: Tensor, y: Tensor) -> tuple[float, float, float]:
    """Compare the update that pictures x with labels y would have made with the received update.

    Returns:
        Their relative L2 distance, their cosine, and the length of the first as a multiple of the second.
    """
    replayed, arrived = ({name: g.detach() for name, g in update.items()} for update in (seen.gradient(x, y), seen.as_gradient()))
    distances = gradient_distances(replayed, arrived)
    long, short = (sqrt(sum(float(update[name].double().square().sum()) for name in arrived)) for update in (replayed, arrived))
    return distances["relative_l2"], 1 - distances["cosine"], long / short


def _try_other_declarations(arrival: Arrival, batch_norm: Mode, angle: float) -> dict[str, float]:
    """Try what the caller may have declared wrongly, the update's sign or BatchNorm's statistics, by a short search for pictures each.

    Args:
        arrival: the update and the arguments of the call.
        batch_norm: the statistics of BatchNorm that the attack assumed.
        angle: the sine of the angle between the update of the attack's answer and the received update.

    Returns:
        A description of each change that leaves less than half of `angle`, with the sine of the angle that it leaves.
    """
    tries: dict[str, tuple[Mode, bool]] = {"with the sign turned": (batch_norm, True)}
    if stores_statistics(arrival.model):
        other = next(mode for mode in MODES if mode != batch_norm)
        tries["with the statistics of the batch" if other == "batch" else "with the stored statistics of BatchNorm"] = (other, False)
    better: dict[str, float] = {}
    for words, (mode, turned) in tries.items():
        try:
            cosine = 1 - arrival.short_search(mode, negated=turned)["cosine"]
        except ValueError:
            continue
        distance = sqrt(max(0.0, 1 - cosine**2)) if cosine > 0 else 1.0
        if distance < HALF * angle:
            better[words] = distance
    return better


def _length_stays(seen: Observation, x: Tensor, y: Tensor, before: float) -> bool:
    """Return whether the length of the update stays wrong when a search from pictures x minimizes the distance, not only the angle.

    `before` is the relative distance of the update of x, with labels y; it stays wrong if more than half of it is left.
    """
    begin, least = from_pixels(seen, x), before
    for now in search_once(seen, generator(0, "length"), labels=y, steps=POLISH, begin=begin, line_search="strong_wolfe"):
        least = min(least, _compared(seen, now.x, y)[0])
    return least > HALF * before


def _length_words(arrival: Arrival, length: float) -> str:
    protocol = arrival.arguments.federation.protocol
    causes = "A loss that sums over pictures or weighs them (loss=), or a gradient that was scaled"
    if not protocol.sends_gradient:
        rate = getattr(protocol, "rate", None)
        example = "" if rate is None else f" (for example rate={rate / length:.2g} in place of {rate:g})"
        causes = f"Another rate{example}, other local steps, momentum, or a loss that sums over pictures"
    return (
        f"The direction of the update fits and its length does not: it is {1 / length:.2g} times as long as what you declared makes of the "
        f"reconstruction. {causes} would do this; so may, for a trained network, a search that was too short."
    )
