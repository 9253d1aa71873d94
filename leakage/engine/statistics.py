"""Mean and variance of the inputs of a model's BatchNorm layers: those of a batch, and those that the model stores."""

from contextlib import ExitStack

from torch import Tensor, nn

from leakage.engine.core import Statistics


def batch_statistics(model: nn.Module, x: Tensor) -> Statistics:
    """Compute the mean and the biased variance (C,) of the input of each BatchNorm layer, for pictures x (B, C, H, W).

    Mean and variance are taken over pictures and positions, and are differentiable in x. The keys of the result are the layers' names.
    """
    statistics: Statistics = {}

    def note(name: str, inputs: Tensor) -> None:
        statistics[name] = (inputs.mean((0, 2, 3)), inputs.var((0, 2, 3), unbiased=False))

    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.BatchNorm2d)}
    with ExitStack() as hooks:
        for name, layer in layers.items():
            hooks.enter_context(layer.register_forward_pre_hook(lambda _, inputs, name=name: note(name, inputs[0])))
        model(x)
    return statistics


def stored_statistics(model: nn.Module) -> Statistics:
    """Return copies of the running mean and variance (C,) of every BatchNorm layer that stores them, by the layer's name."""
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.BatchNorm2d)}
    return {
        name: (layer.running_mean.clone(), layer.running_var.clone())
        for name, layer in layers.items()
        if layer.running_mean is not None and layer.running_var is not None
    }
