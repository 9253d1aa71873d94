"""The layers of a network that a closed-form attack can use, found by what the network computes, not by how it is written."""

from dataclasses import dataclass, replace

import torch
from torch import nn

from leakage.attacks._dense import DERIVATIVES, Dense
from leakage.engine.chain import is_last
from leakage.engine.computation import Computation, Step, computation, probes
from leakage.engine.core import Observation, generator
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.engine.known_steps import activation_of
from leakage.engine.pixel_map import PixelMap, pixel_map

NEEDS = "This attack separates the pictures of a batch by the zeros that ReLU leaves in the gradient of a fully connected layer. "
NONE = NEEDS + "This network has no such layer. Choose the MLP with ReLU."
OTHER = NEEDS + "Here {} follows, which leaves no zeros. Choose ReLU."
NO_BIAS = NEEDS + "Here {} has no bias, which would say how bright each picture is. Choose a network with biases."
FIRST = "This attack needs a network whose first layer is fully connected, as the MLP's; here it is {}."
SHARED = (
    "The gradient of {} is not that of a layer that each picture enters once: the network uses the layer's weights several times, or "
    "computes with other weights. Choose a network that uses this layer once."
)


@dataclass(frozen=True)
class ReadLayer:
    """A fully connected layer with the weight gradient d h^T and the bias gradient d, for its input h and d = dL/dz.

    name    the layer's parameters are NAME.weight (m, n) and NAME.bias (m,)
    number  the number of the step in the traced computation that calls the layer
    enters  the number of the value h, the layer's input, in the traced computation
    bias    whether the layer has a bias
    """

    name: str
    number: int
    enters: int
    bias: bool


@dataclass(frozen=True)
class Reading:
    """The traced computation of an observed model, in which closed-form attacks look up layers."""

    seen: Observation
    computed: Computation

    @staticmethod
    def of(seen: Observation) -> "Reading":
        """Trace the model that the server sent out."""
        return Reading(seen, computation(seen.model, probes(seen.batch.image_shape, next(iter(seen.received.weights.values())))))

    def pixel_layer(self) -> tuple[ReadLayer, PixelMap]:
        """Return the first fully connected layer that the pixels enter, at most scaled and moved, and the map from pixels to its inputs.

        Raises DoesNotApplyError if there is none.
        """
        for number, step, name in self.computed.linear_steps():
            if pixels := pixel_map(self.seen.model, step.inputs[0], self.seen.batch.image_shape):
                self.check(step, name)
                return ReadLayer(name, number, step.inputs[0], _biased(step)), pixels
        raise DoesNotApplyError(FIRST.format(self.first()))

    def relu_layer(self) -> tuple[ReadLayer, PixelMap | None]:
        """Return the first fully connected layer with a bias that ReLU follows, and how the pixels enter it (None: features enter it).

        Raises DoesNotApplyError if there is none.
        """
        why = NONE
        for number, step, name in self.computed.linear_steps():
            following = self.following_step(number)
            if isinstance(following, nn.ReLU) and _biased(step):
                self.check(step, name)
                pixels = pixel_map(self.seen.model, step.inputs[0], self.seen.batch.image_shape)
                return ReadLayer(name, number, step.inputs[0], True), pixels
            if why == NONE and following is not None:
                why = NO_BIAS.format(name) if isinstance(following, nn.ReLU) else OTHER.format(following)
        raise DoesNotApplyError(why)

    def following_step(self, number: int) -> nn.Module | str | None:
        """Return what follows step `number`: a ReLU as a module, another step as the name of its kind; None if the logits follow."""
        while not is_last(self.computed, number):
            readers = self.computed.readers(number)
            if len(readers) != 1:
                return "a branch"
            step = self.computed.steps[readers[0] - 1]
            activation = activation_of(step, self.computed.value(number))
            if not isinstance(activation, nn.Identity):
                return activation if isinstance(activation, nn.ReLU) else step.kind
            number = readers[0]
        return None

    def dense(self, number: int) -> tuple[list[Dense], str]:
        """Return the fully connected layers from step `number` on, and the kind of the step that ends the list ("" for the logits)."""
        step = self.computed.steps[number - 1]
        layers = [self._dense(step)]
        while not is_last(self.computed, number):
            readers = self.computed.readers(number)
            if len(readers) != 1:
                return layers, "a branch"
            step, value = self.computed.steps[readers[0] - 1], self.computed.value(number)
            activation = activation_of(step, value)
            if step.function == "linear" and step.layer is not None and value.dim() == 2:
                layers.append(self._dense(step))
            elif type(activation) in DERIVATIVES and layers[-1].activation is None:
                layers[-1] = replace(layers[-1], activation=activation)
            elif not isinstance(activation, nn.Identity):
                return layers, step.kind
            number = readers[0]
        return layers, ""

    def _dense(self, step: Step) -> Dense:
        name = step.layer
        assert name is not None
        self.check(step, name)
        return Dense(name, self.seen.received.weights[f"{name}.weight"], _biased(step))

    def check(self, step: Step, name: str) -> None:
        """Check on random pictures that a layer's weight gradient is d h^T and its bias gradient d; raise DoesNotApplyError otherwise.

        h is the layer's input in the traced computation and d = dL/dz, both summed over the pictures.
        """
        factors = torch.randn(self.computed.logits.shape, generator=generator(0, "law"), dtype=torch.float64).to(self.computed.logits)
        parameters = [self.seen.model.get_parameter(f"{name}.{part}") for part in ("weight", "bias")[: 1 + _biased(step)]]
        assert step.followed is not None
        total = (self.computed.logits * factors).sum()
        d, *gradients = torch.autograd.grad(total, [step.followed, *parameters], retain_graph=True, allow_unused=True)
        if d is None or gradients[0] is None:
            raise DoesNotApplyError(SHARED.format(name))
        expectations = [d.T @ self.computed.value(step.inputs[0]), d.sum(0)]
        pairs = zip(gradients, expectations, strict=False)
        if any(float((found - expected).norm()) > 1e-3 * float(expected.norm()) for found, expected in pairs):
            raise DoesNotApplyError(SHARED.format(name))

    def first(self) -> str:
        """Return a phrase for an error: the kind of the first step that does more than rearrange or scale pixels, as "a convolution"."""
        for number, step in enumerate(self.computed.steps, 1):
            if step.layer is not None:
                return "a convolution" if step.function == "conv2d" else f"{step.title}, which other numbers enter"
            if pixel_map(self.seen.model, number, self.seen.batch.image_shape) is None:
                return f"of kind {step.kind}"
        return "another"


def _biased(step: Step) -> bool:
    return bool(step.argument(2, "bias") is not None)
