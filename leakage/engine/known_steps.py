"""Steps of a forward pass whose mathematics is known: linear layers, convolutions, BatchNorm, activations, means of pixels."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from leakage.engine.chain_layer import ChainLayer, GlobalMean, Norm, square_side
from leakage.engine.computation import WEIGHTED, Computation, Step
from leakage.engine.core import generator

ADDS = ("add", "iadd", "radd")
POOLS = ("avg_pool2d", "mean", "adaptive_avg_pool2d")


def first_input(recorded: Computation) -> int:
    """Return the number of the value that enters the first layer: steps before it, such as a normalisation, only change the pixels."""
    number = 0
    while len(readers := recorded.readers(number)) == 1 and recorded.steps[readers[0] - 1].function not in (*WEIGHTED, *POOLS):
        number = readers[0]
    return number


def linear_layer(model: nn.Module, step: Step, shape: tuple[int, ...]) -> ChainLayer | None:
    """Return the layer of a linear step or of a convolution, given the shape of one picture's input; None for other steps."""
    name, out = step.layer, tuple(step.value.shape[1:])
    module = model.get_submodule(name) if name else None
    if name and isinstance(module, nn.Linear) and step.function == "linear":
        return ChainLayer(name, module, shape, out) if len(shape) == 1 else None
    if name is None or not isinstance(module, nn.Conv2d) or step.function != "conv2d" or not _plain(module):
        return None
    inner = getattr(module, "norm", None)
    norm = Norm(f"{name}.norm", inner) if isinstance(inner, nn.BatchNorm2d) and stored(inner) else None
    return ChainLayer(name, module, shape, out, norm=norm) if norm or isinstance(inner, nn.Identity | None) else None


def norm_of(model: nn.Module, step: Step) -> Norm | None:
    """Return the BatchNorm of a step; None unless it uses its stored statistics and its scale and shift are parameters."""
    name = step.layer_of(3, 4) if step.function == "batch_norm" else None
    module = model.get_submodule(name) if name else None
    return Norm(name, module) if name and isinstance(module, nn.BatchNorm2d) and stored(module) else None


def activation_of(step: Step, entered: Tensor) -> nn.Module | None:
    """Return what a step does to each number: ReLU, LeakyReLU, sigmoid or tanh; nn.Identity where it only reshapes; None for other steps.

    The step is called again on random numbers of both signs, shaped like its input `entered` (P, ...), because its name is no proof.
    """
    numbers = 2 * torch.randn(entered.shape, generator=generator(0, "activation"), dtype=torch.float64).to(entered)
    out = step.again(numbers)
    if out is None or out.shape[:1] != numbers.shape[:1] or out.numel() != numbers.numel():
        return None
    x, out = numbers.flatten(1), out.flatten(1)
    below = out[x < 0] / x[x < 0]
    negative = float(below.median()) if len(below) else 0.0
    known: list[nn.Module] = [nn.Identity(), nn.ReLU(), nn.Sigmoid(), nn.Tanh()] + [nn.LeakyReLU(negative)] * (0 < negative < 1)
    return next((activation for activation in known if torch.allclose(activation(x), out, rtol=1e-5, atol=1e-6)), None)


def mean_of(step: Step, shape: tuple[int, ...]) -> ChainLayer | None:
    """Return the layer of a step that averages pixels, over adjacent squares or over whole channels; None for other steps."""
    if step.function not in POOLS or len(shape) != 3:
        return None
    if step.function == "avg_pool2d":
        names = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")
        size, stride, padding, ceil, _, divisor = (step.argument(1 + index, name) for index, name in enumerate(names))
        side, paces = square_side(size), square_side(stride or size)
        if side != paces or side < 1 or padding not in (0, (0, 0)) or ceil or divisor:
            return None
        return ChainLayer(step.where or step.function, nn.AvgPool2d(side), shape, (shape[0], *(length // side for length in shape[1:])))
    numbers = torch.randn((1, *shape), generator=generator(0, "mean"), dtype=torch.float64).to(step.value)
    out = step.again(numbers.expand(len(step.value), *shape))
    whole = out is not None and out[0].numel() == shape[0] and torch.allclose(out[0].flatten(), numbers[0].mean((1, 2)), atol=1e-5)
    return ChainLayer(step.where or step.function, GlobalMean(), shape, shape[:1]) if whole else None


def max_pool(step: Step) -> tuple[int, int, int] | None:
    """Return side, stride and padding of a step that takes the maxima of square windows; None for other steps."""
    if step.function not in ("max_pool2d", "max_pool2d_with_indices"):
        return None
    size, stride, padding, dilation, ceil = (
        step.argument(1 + index, name) for index, name in enumerate(("kernel_size", "stride", "padding", "dilation", "ceil_mode"))
    )
    window = square_side(size), square_side(stride or size), square_side(padding or 0)
    return window if min(window[:2]) > 0 and square_side(dilation or 1) == 1 and not ceil else None


def linear_function(step: Step, entered: Tensor) -> Callable[[Tensor], Tensor] | None:
    """Return the function of a step that is linear, takes no other tensor, and treats each picture alone; None for other steps.

    Random numbers test it, shaped like its input `entered` (P, ...). Its calls can be differentiated.
    """
    call, before, after, named = step.call, step.given[: step.enters], step.given[step.enters + 1 :], dict(step.named)
    if step.module or step.enters < 0 or any(isinstance(value, Tensor) for value in tree_leaves((before, after, named))):
        return None

    def function(x: Tensor) -> Tensor:
        out: Tensor = call(*before, x, *after, **named)
        return out

    rng = generator(0, "linear")
    first, second = (torch.randn(entered.shape, generator=rng, dtype=torch.float64).to(entered) for _ in range(2))
    try:
        with torch.no_grad():
            outs = [function(x) for x in (first, second, first + second, first[:1])]
    except (RuntimeError, TypeError, IndexError):  # the call takes no other number of pictures
        return None
    if not all(
        isinstance(out, Tensor) and out.dim() and len(out) == pictures for out, pictures in zip(outs, [len(first)] * 3 + [1], strict=True)
    ):
        return None
    sums, alone = (outs[0] + outs[1], outs[2]), (outs[0][:1], outs[3])
    close = all(torch.allclose(one, other, rtol=1e-4, atol=1e-5) for one, other in (sums, alone))
    return function if close else None


def stored(module: nn.BatchNorm2d) -> bool:
    """Return whether a BatchNorm uses stored statistics and has scale and shift."""
    return module.affine and not module.training and module.running_mean is not None


def _plain(conv: nn.Conv2d) -> bool:
    """Return whether a convolution has square kernels, strides and padding, pads with zeros, and has no groups and no dilation."""
    if isinstance(conv.padding, str):  # "same" may pad the two sides differently
        return False
    same = conv.kernel_size[0] == conv.kernel_size[1] and conv.stride[0] == conv.stride[1] and conv.padding[0] == conv.padding[-1]
    return same and conv.groups == 1 and max(conv.dilation) == 1 and conv.padding_mode == "zeros"
