"""What enters the BatchNorm layers of a model: of a batch, and as the model stores it."""

from torch import Tensor, nn

from leakage.engine.core import Statistics


def batch_statistics(model: nn.Module, x: Tensor) -> Statistics:
    """Mean and (biased) variance per channel of what enters each BatchNorm layer, over pictures and places; differentiable in x."""
    found: Statistics = {}

    def note(name: str, entering: Tensor) -> None:
        found[name] = (entering.mean((0, 2, 3)), entering.var((0, 2, 3), unbiased=False))

    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.BatchNorm2d)}
    hooks = [layer.register_forward_pre_hook(lambda _, inputs, name=name: note(name, inputs[0])) for name, layer in layers.items()]
    try:
        model(x)
    finally:
        for hook in hooks:
            hook.remove()
    return found


def stored_statistics(model: nn.Module) -> Statistics:
    """The running mean and variance that every BatchNorm layer keeps."""
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.BatchNorm2d)}
    return {
        name: (layer.running_mean.clone(), layer.running_var.clone())
        for name, layer in layers.items()
        if layer.running_mean is not None and layer.running_var is not None
    }
