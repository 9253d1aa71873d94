"""A network as a chain of links, from picture to outputs, read from what it computes: what closed forms climb from output to picture."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from leakage.engine.computation import WEIGHTED, Computation, Step, computation, probes
from leakage.engine.core import generator
from leakage.engine.link import GlobalMean, Link, Norm, one_side
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
    """The links from the pixels to the outputs, and how the pixels enter the first of them."""

    links: tuple[Link, ...]
    pixels: PixelMap


class NoChainError(ValueError):
    """The network is no chain; the message names the step that has no place in one."""


def chain(model: nn.Module, image_shape: tuple[int, int, int]) -> Chain:
    """The links of a model from picture to outputs, tried on probes. Raises NoChainError naming the first step that has no place in one."""
    found = computation(model, probes(image_shape, next(model.parameters())))
    number = 0
    while len(readers := found.readers(number)) == 1 and found.steps[readers[0] - 1].function not in (*WEIGHTED, *POOLS):
        number = readers[0]
    pixels = pixel_map(model, number, image_shape)
    if pixels is None or not readers:
        raise NoChainError(found.steps[0].words if found.steps else "nothing that computes with the pictures")
    links = _Reader(model, found).to_the_end(number)
    _check(model, found, links, pixels)
    return Chain(tuple(links), pixels)


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
    slope = float(below.median()) if len(below) else 0.0
    known: list[nn.Module] = [nn.Identity(), nn.ReLU(), nn.Sigmoid(), nn.Tanh()] + [nn.LeakyReLU(slope)] * (0 < slope < 1)
    return next((one for one in known if torch.allclose(one(x), out, rtol=1e-5, atol=1e-6)), None)


class _Reader:
    """Reads links from the steps of a computation."""

    def __init__(self, model: nn.Module, found: Computation) -> None:
        self.model, self.found = model, found

    def to_the_end(self, number: int) -> list[Link]:
        """The links from a value to the outputs. Raises NoChainError."""
        links: list[Link] = []
        while not is_last(self.found, number):
            readers = self.found.readers(number)
            if len(readers) == 1:
                links = self.extended(links, number, readers[0])
                number = readers[0]
            elif len(readers) == 2:
                link, number = self.block(number, readers)
                links.append(link)
            else:
                raise NoChainError(self.found.steps[readers[0] - 1].words if readers else "steps that lead nowhere")
        return links

    def extended(self, links: list[Link], number: int, place: int) -> list[Link]:
        """The links with a step that reads the value behind them. Raises NoChainError."""
        step, entered = self.found.steps[place - 1], self.found.value(number)
        shape, last = tuple(entered.shape[1:]), links[-1] if links else None
        if step.inputs != (number,):
            raise NoChainError(step.words)
        if link := self.linear(step, shape) or _mean(step, shape):
            return [*links, link]
        if norm := self.norm(step):
            if last and last.is_convolution and not (last.norm or last.activation):
                return [*links[:-1], replace(last, norm=norm)]
            raise NoChainError(step.words)
        activation = activation_of(step, entered)
        if isinstance(activation, nn.Identity):
            return links
        if activation and last and last.activation is None:
            return [*links[:-1], replace(last, activation=activation)]
        raise NoChainError(step.words)

    def linear(self, step: Step, shape: tuple[int, ...]) -> Link | None:
        """The link of a linear layer or of a convolution that has a place in a chain."""
        name, out = step.layer, tuple(step.value.shape[1:])
        layer = self.model.get_submodule(name) if name else None
        if name and isinstance(layer, nn.Linear) and step.function == "linear":
            return Link(name, layer, shape, out) if len(shape) == 1 else None
        if name is None or not isinstance(layer, nn.Conv2d) or step.function != "conv2d" or not _plain(layer):
            return None
        inner = getattr(layer, "norm", None)
        norm = Norm(f"{name}.norm", inner) if isinstance(inner, nn.BatchNorm2d) and _stored(inner) else None
        return Link(name, layer, shape, out, norm=norm) if norm or isinstance(inner, nn.Identity | None) else None

    def norm(self, step: Step) -> Norm | None:
        """BatchNorm that uses its stored statistics, and scale and shift that are weights."""
        name = step.layer_of(3, 4) if step.function == "batch_norm" else None
        layer = self.model.get_submodule(name) if name else None
        return Norm(name, layer) if name and isinstance(layer, nn.BatchNorm2d) and _stored(layer) else None

    def block(self, number: int, readers: Sequence[int]) -> tuple[Link, int]:
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
        return Link(name, nn.Identity(), shape, inner[-1].z, body=tuple(inner), skip=skip[0] if skip else None), ways[0][-1]

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

    def along(self, number: int, steps: Sequence[int]) -> list[Link]:
        """The links of some steps, one behind the other."""
        links: list[Link] = []
        for place in steps:
            links, number = self.extended(links, number, place), place
        return links


def _stored(layer: nn.BatchNorm2d) -> bool:
    """Whether it uses its stored statistics, and has scale and shift."""
    return layer.affine and not layer.training and layer.running_mean is not None


def _plain(layer: nn.Conv2d) -> bool:
    """Zeros around it, and square."""
    if isinstance(layer.padding, str):  # "same": as many as the sides need
        return False
    same = layer.kernel_size[0] == layer.kernel_size[1] and layer.stride[0] == layer.stride[1] and layer.padding[0] == layer.padding[-1]
    return same and layer.groups == 1 and max(layer.dilation) == 1 and layer.padding_mode == "zeros"


def _mean(step: Step, shape: tuple[int, ...]) -> Link | None:
    """The link of a mean of pixels: of squares side by side, or of whole channels."""
    if step.function not in POOLS or len(shape) != 3:
        return None
    if step.function == "avg_pool2d":
        names = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")
        size, stride, padding, ceil, _, divisor = (step.argument(1 + place, name) for place, name in enumerate(names))
        side, paces = one_side(size), one_side(stride or size)
        if side != paces or side < 1 or padding not in (0, (0, 0)) or ceil or divisor:
            return None
        return Link(step.where or step.function, nn.AvgPool2d(side), shape, (shape[0], *(length // side for length in shape[1:])))
    given = torch.randn((1, *shape), generator=generator(0, "mean"), dtype=torch.float64).to(step.value)
    out = step.again(given.expand(len(step.value), *shape))
    whole = out is not None and out[0].numel() == shape[0] and torch.allclose(out[0].flatten(), given[0].mean((1, 2)), atol=1e-5)
    return Link(step.where or step.function, GlobalMean(), shape, shape[:1]) if whole else None


def _check(model: nn.Module, found: Computation, links: Sequence[Link], pixels: PixelMap) -> None:
    """Raises NoChainError unless the links have layers of their own, and give the outputs of the probes."""
    names = [part.name for link in links for part in link.weighted]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise NoChainError(f"{twice} (used {names.count(twice)} times)")
    weights = {name: value.detach().cpu().double() for name, value in model.named_parameters()}
    logits = found.logits.detach().cpu().double()
    for picture, expected in zip(found.pictures.cpu().double(), logits, strict=True):
        x = pixels.inputs(picture.flatten()).view(links[0].x) if links else picture
        for link in links:
            x = link.activate(link.map(weights, x.reshape(link.x)))
        if not torch.allclose(x.flatten(), expected[-len(x.flatten()) :], rtol=1e-3, atol=1e-4 * float(expected.abs().max())):
            raise NoChainError("steps that a chain does not reproduce")
