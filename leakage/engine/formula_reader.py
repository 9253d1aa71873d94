"""The formula of a network's gradient, read from a forward pass on random pictures."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from leakage.engine.computation import Computation, Step, computation, probes
from leakage.engine.derivatives import GlobalMeanCall, LinearCall, MaxCall, MeanCall, ReluCall, SmoothCall, StepCall, WeightedLayer
from leakage.engine.formula import Entrance, Formula, Node
from leakage.engine.known_steps import ADDS, activation_of, first_input, linear_function, linear_layer, max_pool, mean_of, norm_of
from leakage.engine.pixel_map import pixel_map


class NoFormulaError(ValueError):
    """The gradient of the network has no formula here; the message names the step that is not known."""


def formula_of(model: nn.Module, image_shape: tuple[int, int, int]) -> Formula:
    """Return the formula of a model's gradient, read from its forward pass on random pictures.

    Args:
        model: the network, with its weights.
        image_shape: (C, H, W) of a picture.

    Raises:
        NoFormulaError: naming the first step that is not known.
    """
    like = next(model.parameters())
    try:
        recorded = computation(model, probes(image_shape, like))
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        raise NoFormulaError("a forward pass for random pictures") from error
    first = first_input(recorded)
    pixels = pixel_map(model, first, image_shape)
    if pixels is None:
        raise NoFormulaError(recorded.steps[0].title if recorded.steps else "nothing that computes with the pictures")
    nodes = _read(model, recorded, first)
    names = [name for node in nodes if node.layer for name in node.layer.names]
    own = {name: value for name, value in model.named_parameters(remove_duplicate=False)}
    if sorted(names) != sorted(own) or not all(value.requires_grad for value in own.values()):
        raise NoFormulaError(next((name for name in own if names.count(name) != 1), "a frozen parameter"))
    entrance = Entrance.of(pixels, tuple(recorded.value(first).shape[1:]), like)
    return Formula(entrance, tuple(nodes), tuple(own))


def _read(model: nn.Module, recorded: Computation, first: int) -> list[Node]:
    """Return the nodes from value `first` of a forward pass to the logits. Raises NoFormulaError."""
    nodes, numbers = list[Node](), {first: 0}  # number in the forward pass -> number of the node
    for number in range(first + 1, recorded.last + 1):
        step = recorded.steps[number - 1]
        if not step.inputs or not all(entered in numbers for entered in step.inputs):
            raise NoFormulaError(step.title)
        norm, before = norm_of(model, step), numbers[step.inputs[0]]
        if norm:
            layer = nodes[before - 1].layer if before else None
            if not layer or layer.layer.norm or not layer.layer.is_convolution or recorded.readers(step.inputs[0]) != [number]:
                raise NoFormulaError(step.title)
            nodes[before - 1] = Node(nodes[before - 1].inputs, layer=WeightedLayer(replace(layer.layer, norm=norm), layer.biased))
            numbers[number] = before
        else:
            node = _node(model, step, [recorded.value(entered) for entered in step.inputs])
            nodes.append(replace(node, inputs=tuple(numbers[entered] for entered in step.inputs)))
            numbers[number] = len(nodes)
    if numbers.get(recorded.last) != len(nodes) or not nodes or recorded.logits.dim() != 2:
        raise NoFormulaError("steps behind the logits")
    return nodes


def _node(model: nn.Module, step: Step, entered: Sequence[Tensor]) -> Node:
    """Return the node of a step with these inputs, still without their numbers. Raises NoFormulaError."""
    shape, x = tuple(step.value.shape[1:]), entered[0]
    if len(entered) == 2 and step.function in ADDS and _same(entered[0] + entered[1], step.value):
        return Node((), partial(StepCall, shape=shape))
    if len(entered) != 1 or step.value.shape[:1] != x.shape[:1]:
        raise NoFormulaError(step.title)
    if layer := linear_layer(model, step, tuple(x.shape[1:])):
        return Node((), layer=WeightedLayer(layer, layer.module.bias is not None))
    if mean := mean_of(step, tuple(x.shape[1:])):
        pool = isinstance(mean.module, nn.AvgPool2d)
        return Node((), partial(MeanCall, side=mean.size) if pool else partial(GlobalMeanCall, shape=shape))
    if window := max_pool(step):
        return Node((), partial(MaxCall, window=window))
    activation = activation_of(step, x)
    if isinstance(activation, nn.Identity):
        return Node((), partial(StepCall, shape=shape))
    if isinstance(activation, nn.ReLU | nn.LeakyReLU):
        return Node((), partial(ReluCall, negative=getattr(activation, "negative_slope", 0.0)))
    if activation is not None:
        return Node((), partial(SmoothCall, activation=activation))
    if function := linear_function(step, x):
        return Node((), partial(LinearCall, function=function))
    raise NoFormulaError(step.title)


def _same(first: Tensor, second: Tensor) -> bool:
    return first.shape == second.shape and torch.allclose(first, second)
