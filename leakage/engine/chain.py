"""A network read as a chain of layers, from picture to outputs; closed-form attacks go back through the chain to the picture."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from leakage.engine.chain_layer import ChainLayer
from leakage.engine.computation import Computation, computation, probes
from leakage.engine.known_steps import ADDS, activation_of, first_input, linear_layer, mean_of, norm_of
from leakage.engine.pixel_map import PixelMap, pixel_map
from leakage.networks.k_curve import Loss


class TwoClasses(nn.Module):
    """A layer behind a network with one output z: z (B, 1) -> logits (0, z), (B, 2); for class 1 their cross-entropy is log(1 + exp(-z)).

    Args:
        loss: the loss that the network is trained with, which an attacker computes too (`engine.losses`)
    """

    def __init__(self, loss: Loss = "cross-entropy") -> None:
        super().__init__()
        self.loss: Loss = loss

    def forward(self, z: Tensor) -> Tensor:
        return torch.cat([torch.zeros_like(z), z], 1)  # (B, 2)


@dataclass(frozen=True)
class Chain:
    """The layers of a network in their order.

    Args:
        layers: from the pixels to the outputs
        pixels: how the pixels enter the first layer
    """

    layers: tuple[ChainLayer, ...]
    pixels: PixelMap


class NoChainError(ValueError):
    """The network is not a chain of layers; the message names the step that does not fit."""


def chain(model: nn.Module, image_shape: tuple[int, int, int]) -> Chain:
    """Return the layers of a model from picture to outputs, read from its forward pass on random pictures.

    Args:
        model: the network; only its forward pass is used.
        image_shape: (C, H, W) of a picture.

    Raises:
        NoChainError: naming the first step that does not fit into a chain.
    """
    recorded = computation(model, probes(image_shape, next(model.parameters())))
    number = first_input(recorded)
    pixels = pixel_map(model, number, image_shape)
    if pixels is None or not recorded.readers(number):
        raise NoChainError(recorded.steps[0].title if recorded.steps else "nothing that computes with the pictures")
    layers = _Reader(model, recorded).layers_from(number)
    _check(model, recorded, layers, pixels)
    return Chain(tuple(layers), pixels)


def is_last(recorded: Computation, number: int) -> bool:
    """Return whether value `number` of a forward pass is the logits, or the single output z of the logits (0, z)."""
    value, logits = recorded.value(number), recorded.logits.detach()
    single = value.dim() == 2 and value.shape[1] == 1 and logits.shape[1] == 2
    return number == recorded.last or (single and torch.equal(logits, torch.cat([torch.zeros_like(value), value], 1)))


class _Reader:
    """Reader of layers from the recorded steps of a forward pass; values and steps are given by their numbers."""

    def __init__(self, model: nn.Module, recorded: Computation) -> None:
        self.model, self.recorded = model, recorded

    def layers_from(self, number: int) -> list[ChainLayer]:
        """Return the layers from a value to the outputs. Raises NoChainError."""
        layers: list[ChainLayer] = []
        while not is_last(self.recorded, number):
            readers = self.recorded.readers(number)
            if len(readers) == 1:
                layers = self.with_step(layers, number, readers[0])
                number = readers[0]
            elif len(readers) == 2:
                layer, number = self.block(number, readers)
                layers.append(layer)
            else:
                raise NoChainError(self.recorded.steps[readers[0] - 1].title if readers else "steps that lead nowhere")
        return layers

    def with_step(self, layers: list[ChainLayer], number: int, reader: int) -> list[ChainLayer]:
        """Return `layers` extended by the step of number `reader`, which takes their output, value `number`. Raises NoChainError.

        The step becomes a layer of its own, or the norm or activation of the last layer; a step that only reshapes is left out.
        """
        step, entered = self.recorded.steps[reader - 1], self.recorded.value(number)
        shape, last = tuple(entered.shape[1:]), layers[-1] if layers else None
        if step.inputs != (number,):
            raise NoChainError(step.title)
        if layer := linear_layer(self.model, step, shape) or mean_of(step, shape):
            return [*layers, layer]
        if norm := norm_of(self.model, step):
            if last and last.is_convolution and not (last.norm or last.activation):
                return [*layers[:-1], replace(last, norm=norm)]
            raise NoChainError(step.title)
        activation = activation_of(step, entered)
        if isinstance(activation, nn.Identity):
            return layers
        if activation and last and last.activation is None:
            return [*layers[:-1], replace(last, activation=activation)]
        raise NoChainError(step.title)

    def block(self, number: int, readers: Sequence[int]) -> tuple[ChainLayer, int]:
        """Return the residual block that value `number` enters, and the number of the block's output. Raises NoChainError.

        Two steps have that value as input (their numbers are `readers`). They begin the branches of the block, convolutions and a skip, and
        the block adds the outputs of both branches.
        """
        branches = sorted((self.branch(reader) for reader in readers), key=len, reverse=True)
        shape, join = tuple(self.recorded.value(number).shape[1:]), self.recorded.steps[branches[0][-1] - 1]
        body, past = ([*map(self.recorded.steps.__getitem__, (reader - 1 for reader in branch[:-1]))] for branch in branches)
        ends = [branch[-2] if len(branch) > 1 else number for branch in branches]
        summed = self.recorded.value(ends[0]) + self.recorded.value(ends[1])
        if branches[0][-1] != branches[1][-1] or not body or summed.shape != join.value.shape or not torch.allclose(summed, join.value):
            raise NoChainError(join.title)
        inner, skip = (self.read_layers(number, branch[:-1]) for branch in branches)
        plain = all(layer.is_convolution for layer in (*inner, *skip)) and len(skip) <= 1 and (bool(skip) or not past)
        if not plain or inner[-1].activation or (skip and skip[0].activation):
            raise NoChainError(join.title)
        name = join.where or inner[-1].name
        return ChainLayer(name, nn.Identity(), shape, inner[-1].z, body=tuple(inner), skip=skip[0] if skip else None), branches[0][-1]

    def branch(self, reader: int) -> list[int]:
        """Return the numbers of the steps from step `reader` to the addition of another value; the addition comes last.

        Raises NoChainError.
        """
        steps = [reader]
        while self.recorded.steps[reader - 1].function not in ADDS or len(self.recorded.steps[reader - 1].inputs) != 2:
            readers = self.recorded.readers(reader)
            if len(readers) != 1:
                raise NoChainError(self.recorded.steps[reader - 1].title)
            reader = readers[0]
            steps.append(reader)
        return steps

    def read_layers(self, number: int, steps: Sequence[int]) -> list[ChainLayer]:
        """Return the layers of consecutive steps, of which the first one reads value `number`."""
        layers: list[ChainLayer] = []
        for reader in steps:
            layers, number = self.with_step(layers, number, reader), reader
        return layers


def _check(model: nn.Module, recorded: Computation, layers: Sequence[ChainLayer], pixels: PixelMap) -> None:
    """Raise NoChainError unless each layer is used once and the layers reproduce the model's outputs on random pictures (`probes`)."""
    names = [part.name for layer in layers for part in layer.weighted]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise NoChainError(f"{twice} (used {names.count(twice)} times)")
    weights = {name: value.detach().cpu().double() for name, value in model.named_parameters()}
    logits = recorded.logits.detach().cpu().double()
    for picture, expected in zip(recorded.pictures.cpu().double(), logits, strict=True):
        x = pixels.inputs(picture.flatten()).view(layers[0].x) if layers else picture
        for layer in layers:
            x = layer.activate(layer.map(weights, x.reshape(layer.x)))
        if not torch.allclose(x.flatten(), expected[-len(x.flatten()) :], rtol=1e-3, atol=1e-4 * float(expected.abs().max())):
            raise NoChainError("steps that a chain does not reproduce")
