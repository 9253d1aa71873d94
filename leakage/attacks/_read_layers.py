"""Which layers of a network a closed form can read: found by what the network computes, not by how it is written."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import nn

from leakage.attacks._dense import DERIVATIVES, Dense
from leakage.engine.chain import activation_of, is_last
from leakage.engine.computation import Computation, Step, computation, probes
from leakage.engine.core import Observation, generator
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.engine.pixel_map import PixelMap, pixel_map

NEEDS = "This attack tells the pictures of a batch apart by the zeros that ReLU leaves in the gradient of a fully connected layer. "
NONE = NEEDS + "This network has no such layer. Choose the MLP with ReLU."
OTHER = NEEDS + "Here {} follows, which leaves none. Choose ReLU."
NO_BIAS = NEEDS + "Here {} has no bias, which would say how bright each picture is. Choose a network with biases."
FIRST = "This attack needs a network whose first layer is fully connected, as the MLP's; here it is {}."
SHARED = (
    "The gradient of {} is not that of one layer that each picture enters once: the network uses its weights several times, or computes "
    "with others. Choose a network in which it has a place of its own."
)


@dataclass(frozen=True)
class ReadLayer:
    """A fully connected layer whose gradient is d h^T, and that of its bias d.

    name    its parameters are NAME.weight (m, n) and NAME.bias (m,)
    place   the number of the step that calls it
    enters  the number of the value h
    bias    whether it has one
    """

    name: str
    place: int
    enters: int
    bias: bool


@dataclass(frozen=True)
class Reading:
    """The computation of an observed model, as its closed forms read it."""

    seen: Observation
    computed: Computation

    @staticmethod
    def of(seen: Observation) -> "Reading":
        """That of the model that the server sent out."""
        return Reading(seen, computation(seen.model, probes(seen.batch.image_shape, next(iter(seen.received.weights.values())))))

    def linear(self) -> Iterator[tuple[int, Step, str]]:
        """The fully connected layers that a list of numbers enters, in the order in which they are called."""
        for place, step in enumerate(self.computed.steps, 1):
            if step.function == "linear" and step.layer is not None and step.enters == 0 and self.computed.value(step.inputs[0]).dim() == 2:
                yield place, step, step.layer

    def pixel_layer(self) -> tuple[ReadLayer, PixelMap]:
        """The first layer that all pixels enter, each by itself and scaled at most, and how. Raises DoesNotApplyError."""
        for place, step, name in self.linear():
            if pixels := pixel_map(self.seen.model, step.inputs[0], self.seen.batch.image_shape):
                self.check(step, name)
                return ReadLayer(name, place, step.inputs[0], _biased(step)), pixels
        raise DoesNotApplyError(FIRST.format(self.first()))

    def relu_layer(self) -> tuple[ReadLayer, PixelMap | None]:
        """The first layer with a bias and ReLU behind it, and how the pixels enter it; None where features do. Raises DoesNotApplyError."""
        why = NONE
        for place, step, name in self.linear():
            following = self.activated(place)
            if isinstance(following, nn.ReLU) and _biased(step):
                self.check(step, name)
                return ReadLayer(name, place, step.inputs[0], True), pixel_map(self.seen.model, step.inputs[0], self.seen.batch.image_shape)
            if why == NONE and following is not None:
                why = NO_BIAS.format(name) if isinstance(following, nn.ReLU) else OTHER.format(following)
        raise DoesNotApplyError(why)

    def activated(self, place: int) -> nn.Module | str | None:
        """What is done to a value: ReLU, LeakyReLU, sigmoid or tanh, another step by its kind; None where it is the logits."""
        while not is_last(self.computed, place):
            readers = self.computed.readers(place)
            if len(readers) != 1:
                return "a branch"
            step = self.computed.steps[readers[0] - 1]
            activation = activation_of(step, self.computed.value(place))
            if not isinstance(activation, nn.Identity):
                return activation if isinstance(activation, nn.ReLU) else step.kind
            place = readers[0]
        return None

    def dense(self, place: int) -> tuple[list[Dense], str]:
        """The fully connected layers from a step on, and after which kind of step the network goes on otherwise ("": it does not)."""
        step = self.computed.steps[place - 1]
        layers = [self._dense(step)]
        while not is_last(self.computed, place):
            readers = self.computed.readers(place)
            if len(readers) != 1:
                return layers, "a branch"
            step, value = self.computed.steps[readers[0] - 1], self.computed.value(place)
            activation = activation_of(step, value)
            if step.function == "linear" and step.layer is not None and value.dim() == 2:
                layers.append(self._dense(step))
            elif type(activation) in DERIVATIVES and layers[-1].activation is None:
                layers[-1] = replace(layers[-1], activation=activation)
            elif not isinstance(activation, nn.Identity):
                return layers, step.kind
            place = readers[0]
        return layers, ""

    def _dense(self, step: Step) -> Dense:
        name = step.layer
        assert name is not None
        self.check(step, name)
        return Dense(name, self.seen.received.weights[f"{name}.weight"], _biased(step))

    def check(self, step: Step, name: str) -> None:
        """Raise DoesNotApplyError unless the gradient of a layer is d h^T, and that of its bias d: tried on the probes."""
        weighed = torch.randn(self.computed.logits.shape, generator=generator(0, "law"), dtype=torch.float64).to(self.computed.logits)
        own = [self.seen.model.get_parameter(f"{name}.{part}") for part in ("weight", "bias")[: 1 + _biased(step)]]
        assert step.followed is not None
        total = (self.computed.logits * weighed).sum()
        d, *gradients = torch.autograd.grad(total, [step.followed, *own], retain_graph=True, allow_unused=True)
        if d is None or gradients[0] is None:
            raise DoesNotApplyError(SHARED.format(name))
        wanted = [d.T @ self.computed.value(step.inputs[0]), d.sum(0)]
        gaps = [float((one - want).norm()) > 1e-3 * float(want.norm()) for one, want in zip(gradients, wanted, strict=False)]
        if any(gaps):
            raise DoesNotApplyError(SHARED.format(name))

    def first(self) -> str:
        """The first step that does more than hand pixels on, in words."""
        for place, step in enumerate(self.computed.steps, 1):
            if step.layer is not None:
                return "a convolution" if step.function == "conv2d" else f"{step.title}, which other numbers enter"
            if pixel_map(self.seen.model, place, self.seen.batch.image_shape) is None:
                return f"of kind {step.kind}"
        return "another"


def _biased(step: Step) -> bool:
    return bool(step.argument(2, "bias") is not None)
