"""A network as a chain of layers, from picture to outputs, read from what it computes: closed forms go back through it to the picture."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from leakage.engine.chain_layer import ChainLayer, GlobalMean, Norm, one_side
from leakage.engine.computation import WEIGHTED, Computation, Step, computation, probes
from leakage.engine.core import generator
from leakage.engine.pixel_map import PixelMap, pixel_map
from leakage.networks.k_curve import Loss

ADDS = ("add", "iadd", "radd")
POOLS = ("avg_pool2d", "mean", "adaptive_avg_pool2d")


class TwoClasses(nn.Module):
    """Behind a network of one output z: logits (0, z), whose cross-entropy is the logistic loss log(1 + exp(-z)) of class 1.

    loss  what the network is trained by, and whoever replays it: see `engine.losses`
    """

    def __init__(self, loss: Loss = "cross-entropy") -> None:
        super().__init__()
        self.loss: Loss = loss

    def forward(self, z: Tensor) -> Tensor:
        return torch.cat([torch.zeros_like(z), z], 1)  # (B, 2)


@dataclass(frozen=True)
class Chain:
    """The layers from the pixels to the outputs, and how the pixels enter the first of them."""

    layers: tuple[ChainLayer, ...]
    pixels: PixelMap


class NoChainError(ValueError):
    """The network is no chain; the message names the step that has no place in one."""


def chain(model: nn.Module, image_shape: tuple[int, int, int]) -> Chain:
    """Return a model's layers from picture to outputs, tried on probes. Raises NoChainError naming the first step that fits no chain."""
    found = computation(model, probes(image_shape, next(model.parameters())))
    number = 0
    while len(readers := found.readers(number)) == 1 and found.steps[readers[0] - 1].function not in (*WEIGHTED, *POOLS):
        number = readers[0]
    pixels = pixel_map(model, number, image_shape)
    if pixels is None or not readers:
        raise NoChainError(found.steps[0].words if found.steps else "nothing that computes with the pictures")
    layers = _Reader(model, found).to_the_end(number)
    _check(model, found, layers, pixels)
    return Chain(tuple(layers), pixels)


def is_last(found: Computation, number: int) -> bool:
    """Whether a value is the logits, or the single output z of the logits (0, z)."""
    value, logits = found.value(number), found.logits.detach()
    single = value.dim() == 2 and value.shape[1] == 1 and logits.shape[1] == 2
    return number == found.last or (single and torch.equal(logits, torch.cat([torch.zeros_like(value), value], 1)))


def activation_of(step: Step, entered: Tensor) -> nn.Module | None:
    """What a step does to every number alike: ReLU, LeakyReLU, sigmoid or tanh; nn.Identity where it only reshapes; None: another thing.

    `entered` (P, ...) is what entered it. It is called again on numbers of both signs: its name is not believed.
    """
    given = 2 * torch.randn(entered.shape, generator=generator(0, "activation"), dtype=torch.float64).to(entered)
    out = step.again(given)
    if out is None or out.shape[:1] != given.shape[:1] or out.numel() != given.numel():
        return None
    x, out = given.flatten(1), out.flatten(1)
    below = out[x < 0] / x[x < 0]
    negative_slope = float(below.median()) if len(below) else 0.0
    known: list[nn.Module] = [nn.Identity(), nn.ReLU(), nn.Sigmoid(), nn.Tanh()] + [nn.LeakyReLU(negative_slope)] * (0 < negative_slope < 1)
    return next((one for one in known if torch.allclose(one(x), out, rtol=1e-5, atol=1e-6)), None)


class _Reader:
    """Reads layers from the steps of a computation."""

    def __init__(self, model: nn.Module, found: Computation) -> None:
        self.model, self.found = model, found

    def to_the_end(self, number: int) -> list[ChainLayer]:
        """The layers from a value to the outputs. Raises NoChainError."""
        layers: list[ChainLayer] = []
        while not is_last(self.found, number):
            readers = self.found.readers(number)
            if len(readers) == 1:
                layers = self.extended(layers, number, readers[0])
                number = readers[0]
            elif len(readers) == 2:
                layer, number = self.block(number, readers)
                layers.append(layer)
            else:
                raise NoChainError(self.found.steps[readers[0] - 1].words if readers else "steps that lead nowhere")
        return layers

    def extended(self, layers: list[ChainLayer], number: int, place: int) -> list[ChainLayer]:
        """The layers with a step that reads the value behind them. Raises NoChainError."""
        step, entered = self.found.steps[place - 1], self.found.value(number)
        shape, last = tuple(entered.shape[1:]), layers[-1] if layers else None
        if step.inputs != (number,):
            raise NoChainError(step.words)
        if layer := self.linear(step, shape) or _mean(step, shape):
            return [*layers, layer]
        if norm := self.norm(step):
            if last and last.is_convolution and not (last.norm or last.activation):
                return [*layers[:-1], replace(last, norm=norm)]
            raise NoChainError(step.words)
        activation = activation_of(step, entered)
        if isinstance(activation, nn.Identity):
            return layers
        if activation and last and last.activation is None:
            return [*layers[:-1], replace(last, activation=activation)]
        raise NoChainError(step.words)

    def linear(self, step: Step, shape: tuple[int, ...]) -> ChainLayer | None:
        """The layer of a linear layer or of a convolution that has a place in a chain."""
        name, out = step.layer, tuple(step.value.shape[1:])
        module = self.model.get_submodule(name) if name else None
        if name and isinstance(module, nn.Linear) and step.function == "linear":
            return ChainLayer(name, module, shape, out) if len(shape) == 1 else None
        if name is None or not isinstance(module, nn.Conv2d) or step.function != "conv2d" or not _plain(module):
            return None
        inner = getattr(module, "norm", None)
        norm = Norm(f"{name}.norm", inner) if isinstance(inner, nn.BatchNorm2d) and _stored(inner) else None
        return ChainLayer(name, module, shape, out, norm=norm) if norm or isinstance(inner, nn.Identity | None) else None

    def norm(self, step: Step) -> Norm | None:
        """BatchNorm that uses its stored statistics, and scale and shift that are weights."""
        name = step.layer_of(3, 4) if step.function == "batch_norm" else None
        module = self.model.get_submodule(name) if name else None
        return Norm(name, module) if name and isinstance(module, nn.BatchNorm2d) and _stored(module) else None

    def block(self, number: int, readers: Sequence[int]) -> tuple[ChainLayer, int]:
        """A residual block, convolutions and a skip past them whose outputs are added; and the number of its value. Raises NoChainError."""
        ways = sorted((self.way(place) for place in readers), key=len, reverse=True)
        shape, join = tuple(self.found.value(number).shape[1:]), self.found.steps[ways[0][-1] - 1]
        body, past = ([*map(self.found.steps.__getitem__, (place - 1 for place in way[:-1]))] for way in ways)
        ends = [way[-2] if len(way) > 1 else number for way in ways]
        summed = self.found.value(ends[0]) + self.found.value(ends[1])
        if ways[0][-1] != ways[1][-1] or not body or summed.shape != join.value.shape or not torch.allclose(summed, join.value):
            raise NoChainError(join.words)
        inner, skip = (self.along(number, way[:-1]) for way in ways)
        plain = all(one.is_convolution for one in (*inner, *skip)) and len(skip) <= 1 and (bool(skip) or not past)
        if not plain or inner[-1].activation or (skip and skip[0].activation):
            raise NoChainError(join.words)
        name = join.where or inner[-1].name
        return ChainLayer(name, nn.Identity(), shape, inner[-1].z, body=tuple(inner), skip=skip[0] if skip else None), ways[0][-1]

    def way(self, place: int) -> list[int]:
        """The steps from one on, to where it is added to another value; that step comes last. Raises NoChainError."""
        steps = [place]
        while self.found.steps[place - 1].function not in ADDS or len(self.found.steps[place - 1].inputs) != 2:
            readers = self.found.readers(place)
            if len(readers) != 1:
                raise NoChainError(self.found.steps[place - 1].words)
            place = readers[0]
            steps.append(place)
        return steps

    def along(self, number: int, steps: Sequence[int]) -> list[ChainLayer]:
        """The layers of some steps, one behind the other."""
        layers: list[ChainLayer] = []
        for place in steps:
            layers, number = self.extended(layers, number, place), place
        return layers


def _stored(module: nn.BatchNorm2d) -> bool:
    """Whether it uses its stored statistics, and has scale and shift."""
    return module.affine and not module.training and module.running_mean is not None


def _plain(conv: nn.Conv2d) -> bool:
    """Zeros around it, and square."""
    if isinstance(conv.padding, str):  # "same": as many as the sides need
        return False
    same = conv.kernel_size[0] == conv.kernel_size[1] and conv.stride[0] == conv.stride[1] and conv.padding[0] == conv.padding[-1]
    return same and conv.groups == 1 and max(conv.dilation) == 1 and conv.padding_mode == "zeros"


def _mean(step: Step, shape: tuple[int, ...]) -> ChainLayer | None:
    """The layer of a mean of pixels: of squares side by side, or of whole channels."""
    if step.function not in POOLS or len(shape) != 3:
        return None
    if step.function == "avg_pool2d":
        names = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")
        size, stride, padding, ceil, _, divisor = (step.argument(1 + place, name) for place, name in enumerate(names))
        side, paces = one_side(size), one_side(stride or size)
        if side != paces or side < 1 or padding not in (0, (0, 0)) or ceil or divisor:
            return None
        return ChainLayer(step.where or step.function, nn.AvgPool2d(side), shape, (shape[0], *(length // side for length in shape[1:])))
    given = torch.randn((1, *shape), generator=generator(0, "mean"), dtype=torch.float64).to(step.value)
    out = step.again(given.expand(len(step.value), *shape))
    whole = out is not None and out[0].numel() == shape[0] and torch.allclose(out[0].flatten(), given[0].mean((1, 2)), atol=1e-5)
    return ChainLayer(step.where or step.function, GlobalMean(), shape, shape[:1]) if whole else None


def _check(model: nn.Module, found: Computation, layers: Sequence[ChainLayer], pixels: PixelMap) -> None:
    """Raises NoChainError unless each layer is used once, and give the outputs of the probes."""
    names = [part.name for layer in layers for part in layer.weighted]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise NoChainError(f"{twice} (used {names.count(twice)} times)")
    weights = {name: value.detach().cpu().double() for name, value in model.named_parameters()}
    logits = found.logits.detach().cpu().double()
    for picture, expected in zip(found.pictures.cpu().double(), logits, strict=True):
        x = pixels.inputs(picture.flatten()).view(layers[0].x) if layers else picture
        for layer in layers:
            x = layer.activate(layer.map(weights, x.reshape(layer.x)))
        if not torch.allclose(x.flatten(), expected[-len(x.flatten()) :], rtol=1e-3, atol=1e-4 * float(expected.abs().max())):
            raise NoChainError("steps that a chain does not reproduce")
