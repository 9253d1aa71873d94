"""The text of a network and its steps: the parser, the writer, and a list of all linear maps with their sizes. No torch.

    conv 5@12 /2 p2     12 filters of 5 x 5, stride 2, padding 2
    block 32 /2         a residual block: two convolutions 3 x 3 with 32 filters, the first with stride 2, and a skip past both
    block 32 /2 cut     the same without its skip
    conv 3@16 norm, block 32 norm    BatchNorm with its stored statistics after every convolution of the step
    deep 16             a bottleneck: convolutions 1 x 1, 3 x 3 and 1 x 1 with 16, 16 and 64 filters, and a skip past all three
    mean 2, max 2       the mean or the largest of every 2 x 2 pixels; "mean" alone: of the whole picture
    linear 500          500 units, each connected to everything before

Steps are joined by " - ". An activation follows every convolution, block and linear step; a linear layer to the classes comes last.
"""

import re
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

Shape = tuple[int, ...]  # (C, H, W), or (n,) after a linear layer
JOINT = " - "
MOST_STEPS, MOST_CHARACTERS = 60, 2000
MOST_NUMBERS = 50_000_000  # weights of a network that is built, and numbers that its layers make of one picture
FORMS = "conv 3@16 /2 p1, block 16 /2, block 16 cut, deep 16, block 16 norm, mean 2, max 2, mean, linear 100"
GRAMMAR = """One step per line, or joined by " - ", from the picture to the outputs; a linear layer to the outputs comes last by itself.

- `conv 3@16 /2 p1`: 16 filters of 3 x 3 pixels, stride 2, padding 1
- `block 16 /2`: a residual block, two convolutions and a skip past both; `block 16 cut`: without its skip
- `deep 16`: a bottleneck of three convolutions and a skip
- `norm` at the end of these: BatchNorm after each convolution, with stored statistics; it changes no count
- `mean 2`, `max 2`: the mean or largest of every 2 x 2; `mean` alone: of everything
- `linear 100`: 100 units, each connected to everything before"""


class NetworkError(ValueError):
    """A network that cannot be built; the message names the step, what is wrong and what is allowed."""


@dataclass(frozen=True)
class Conv:
    """A convolution with `filters` filters of size x size."""

    size: int
    filters: int
    stride: int = 1
    padding: int = 0
    norm: bool = False

    def __str__(self) -> str:
        padded = f" p{self.padding}" if self.padding else ""
        return f"conv {self.size}@{self.filters}{_stride(self.stride)}{padded}{_norm(self.norm)}"


@dataclass(frozen=True)
class Block:
    """A residual block: conv 3 - conv 3, or (deep) conv 1 - conv 3 - conv 1 with four times the filters at its end."""

    filters: int
    stride: int = 1
    skip: bool = True
    deep: bool = False
    norm: bool = False

    def __str__(self) -> str:
        cut = "" if self.skip else " cut"
        return f"{'deep' if self.deep else 'block'} {self.filters}{_stride(self.stride)}{cut}{_norm(self.norm)}"

    @property
    def convolutions(self) -> tuple[Conv, ...]:
        """The convolutions of the block, in their order."""
        if self.deep:
            return Conv(1, self.filters), Conv(3, self.filters, self.stride, 1), Conv(1, 4 * self.filters)
        return Conv(3, self.filters, self.stride, 1), Conv(3, self.filters, 1, 1)


@dataclass(frozen=True)
class Pool:
    """A layer that takes the mean or the largest of every size x size pixels; size 0: of the whole picture."""

    kind: Literal["mean", "max"]
    size: int = 0

    def __str__(self) -> str:
        return f"{self.kind} {self.size}" if self.size else self.kind


@dataclass(frozen=True)
class Linear:
    """A linear layer with `units` units, each connected to all outputs of the step before."""

    units: int

    def __str__(self) -> str:
        return f"linear {self.units}"


Step = Conv | Block | Pool | Linear


@dataclass(frozen=True)
class Map:
    """A layer of a network without its activation: a linear map x -> z (convolution, linear layer or mean), or max pooling."""

    name: str
    kind: Literal["conv", "linear", "mean", "max"]
    x: Shape
    """The shape of the input for one picture, without padding."""
    z: Shape
    """The shape of the output for one picture."""
    weights: int
    """Numbers in the kernel or matrix, biases not counted."""
    step: int
    """The index of the map's step in the network, from 0."""
    size: int = 0
    stride: int = 1
    padding: int = 0
    block: Block | None = None
    """The residual block that contains the map; None outside blocks."""
    last: bool = True
    """Whether the map is the last of its step."""
    shortcut: int = 0
    """Weights in the convolution of the block's skip, at the last map of the block; 0 without such a convolution."""

    @property
    def inputs(self) -> int:
        """How many numbers the input x has."""
        return prod(self.x)

    @property
    def outputs(self) -> int:
        """How many numbers the output z has."""
        return prod(self.z)


def parse(text: str) -> tuple[Step, ...]:
    """Parse the text of a network into its steps. Raises NetworkError."""
    if len(text) > MOST_CHARACTERS:
        raise NetworkError(f"A network has at most {MOST_CHARACTERS} characters; this one has {len(text)}.")
    words = [step.strip() for step in re.split(r"\s+-\s+|\n", text.strip()) if step.strip()]
    if len(words) > MOST_STEPS:
        raise NetworkError(f"A network has at most {MOST_STEPS} steps; this one has {len(words)}.")
    return tuple(_step(number, step) for number, step in enumerate(words, 1))


def write(steps: tuple[Step, ...]) -> str:
    """Write steps as the text that `parse` reads."""
    return JOINT.join(map(str, steps))


def canonical(text: str) -> str:
    """Return the canonical text of a network: equal for equal networks. Raises NetworkError."""
    return write(parse(text))


def check_fit(text: str, image_shape: tuple[int, int, int], outputs: int) -> None:
    """Raise NetworkError unless the network can be built for such pictures and is no larger than MOST_NUMBERS."""
    maps = unroll(parse(text), image_shape, outputs)
    numbers = {
        "weights": sum(layer.weights + layer.shortcut for layer in maps),
        "numbers made of one picture by its layers": sum(layer.outputs for layer in maps),
    }
    for what, count in numbers.items():
        if count > MOST_NUMBERS:
            remedy = "Take fewer filters or units, longer strides or smaller pictures."
            raise NetworkError(f"A network has at most {MOST_NUMBERS:,} {what}; this one would have {count:,}. {remedy}")


def unroll(steps: tuple[Step, ...], image_shape: tuple[int, int, int], outputs: int) -> tuple[Map, ...]:
    """List every linear map, from the picture to the outputs. Raises NetworkError where a step does not fit its input."""
    maps: list[Map] = []
    shape: Shape = image_shape
    for index, step in enumerate((*steps, Linear(outputs))):
        head = index == len(steps)
        before = shape
        if isinstance(step, Linear):
            name = "linear" if head else f"linear{index + 1}"
            maps.append(Map(name, "linear", shape, (step.units,), prod(shape) * step.units, index))
        elif len(shape) == 1:
            raise NetworkError(f"Step {index + 1} ({step}) needs a picture, and a linear step has made a list of it. Move it before.")
        elif isinstance(step, Pool):
            maps.append(_pool(index, step, shape))
        elif isinstance(step, Conv):
            maps.append(_conv(index, f"conv{index + 1}", step, shape))
        else:
            parts = step.convolutions
            for number, part in enumerate(parts, 1):
                layer = _conv(index, f"block{index + 1}.conv{number}", part, shape)
                maps.append(replace(layer, block=step, last=number == len(parts)))
                shape = layer.z
            if step.skip and (step.stride > 1 or before[0] != shape[0]):
                maps[-1] = replace(maps[-1], shortcut=before[0] * shape[0])
        shape = maps[-1].z
    return tuple(maps)


def _step(number: int, text: str) -> Step:
    words = text.lower().split()
    kind, rest = words[0], words[1:]
    stride, padding, skip, norm, plain = 1, 0, True, False, list[str]()
    for word in rest:
        if re.fullmatch(r"/\d{1,9}", word):
            stride = int(word[1:])
        elif re.fullmatch(r"p\d{1,9}", word):
            padding = int(word[1:])
        elif word == "cut":
            skip = False
        elif word == "norm":
            norm = True
        else:
            plain.append(word)
    found = " ".join(plain)
    try:
        if kind == "conv" and skip and (form := re.fullmatch(r"(\d{1,9})@(\d{1,9})", found)):
            return _within(Conv(int(form[1]), int(form[2]), stride, padding, norm))
        if kind in ("block", "deep") and not padding and re.fullmatch(r"\d{1,9}", found):
            return _within(Block(int(found), stride, skip, deep=kind == "deep", norm=norm))
        if kind == "mean" and len(rest) == len(plain) and re.fullmatch(r"\d{0,9}", found):
            return _within(Pool("mean", int(found or 0)))
        if kind == "max" and len(rest) == len(plain) and re.fullmatch(r"\d{1,9}", found):
            return _within(Pool("max", int(found)))
        if kind == "linear" and len(rest) == len(plain) and re.fullmatch(r"\d{1,9}", found):
            return _within(Linear(int(found)))
    except NetworkError as error:
        raise NetworkError(f"Step {number} ({text}): {error}") from None
    raise NetworkError(f"Step {number}: {text[:60]!r} is not a step. Allowed are steps such as: {FORMS}.")


LIMITS = {"size": (0, 11), "filters": (1, 512), "stride": (1, 4), "padding": (0, 5), "units": (1, 4096)}


def _within(step: Step) -> Step:
    for name, (low, high) in LIMITS.items():
        low = 1 if name == "size" and isinstance(step, Conv) else low
        value = getattr(step, name, low)
        if not low <= value <= high:
            raise NetworkError(f"{name} must lie between {low} and {high}; given was {value}.")
    return step


def _conv(index: int, name: str, step: Conv, shape: Shape) -> Map:
    channels, *sides = shape
    after = [(side + 2 * step.padding - step.size) // step.stride + 1 for side in sides]
    if min(after) < 1:
        raise NetworkError(f"Step {index + 1} ({step}) needs at least {step.size} pixels a side, and {sides[0]} x {sides[1]} reach it.")
    return Map(
        name,
        "conv",
        shape,
        (step.filters, *after),
        step.filters * channels * step.size**2,
        index,
        size=step.size,
        stride=step.stride,
        padding=step.padding,
    )


def _pool(index: int, step: Pool, shape: Shape) -> Map:
    channels, height, width = shape
    after = (height // step.size, width // step.size) if step.size else (1, 1)
    if min(after) < 1:
        raise NetworkError(f"Step {index + 1} ({step}) needs at least {step.size} pixels a side, and {height} x {width} reach it.")
    return Map(f"{step.kind}{index + 1}", step.kind, shape, (channels, *after), 0, index, size=step.size)


def _stride(stride: int) -> str:
    return f" /{stride}" if stride > 1 else ""


def _norm(norm: bool) -> str:
    return " norm" if norm else ""
