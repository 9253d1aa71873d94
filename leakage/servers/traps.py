"""Trap weights: a first layer of which the units are switched on by few pictures, so that its gradient gives single pictures."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.engine.core import Params, Round, Server, param
from leakage.servers._pixel_layer import pixel_layer


@dataclass(frozen=True, kw_only=True)
class Traps(Server):
    """Draw the weights of the first fully connected layer anew: half of the entries of a row are negative, and slightly larger.

    A random half of the n entries of a row is -|N(0, sigma^2)|; the other half has the same magnitudes, times `scale`. Biases are 0. For
    pixels in [0, 1] the sum of a row is negative for most pictures, so ReLU switches the unit on for few of them. A row that a single
    picture of the batch switches on has the gradient of this picture alone: dL/dW_j / dL/db_j is the picture. With a larger `scale` more
    pictures switch on a unit: small batches then have more rows for each picture, and large batches more mixtures.
    Source: Boenisch et al. 2023, trap weights.
    """

    title = "Sets the first layer so that few pictures switch on each unit (trap weights)"
    short = "Trap weights"
    plain = "The server picks a random first layer so that few pictures switch on each unit. A unit with one picture gives it away."
    hint = "Choose the MLP with 1,000 units and 8 to 64 pictures. Then change the scale: small batches need a higher value."
    source = "https://arxiv.org/abs/2112.02918"
    reading = ("linear_layer",)
    models = {
        "mlp": {"activation": ("relu",), "normalise": ("none",)},
        "fcn3": {"activation": ("relu",), "bias": (True,), "normalise": ("none",)},
    }
    needs_model = (
        "Trap weights need a network that begins with a fully connected layer with biases and ReLU, which raw pixels enter. "
        "Choose the MLP with ReLU, or FCN3 with ReLU and biases, without normalisation."
    )

    scale: float = param(
        0.95, 0, 1, "The size of a row's positive entries, as a fraction of the negative ones. At 1, half of the pictures switch a unit on."
    )
    sigma: float = param(0.5, 0.001, 10, "The standard deviation of the normal distribution from which the sizes of the weights are drawn.")

    def rebuild(self, model: nn.Module, image_shape: tuple[int, int, int], members: int) -> nn.Module:
        found, first = pixel_layer(model.eval(), image_shape), first_layer_of(model)
        fits = found and found.name == first and found.pixels.is_raw and isinstance(found.activation, nn.ReLU)
        if not fits or dict(model.named_parameters()).get(f"{first}.bias") is None:
            raise ValueError(self.needs_model)
        return model

    def hand_out(self, model: nn.Module, weights: Params, history: Sequence[Round], rng: torch.Generator) -> Params:
        weight, bias = (f"{first_layer_of(model)}.{part}" for part in ("weight", "bias"))
        drawn = trap_rows(*weights[weight].shape, scale=self.scale, sigma=self.sigma, rng=rng)
        return {**weights, weight: drawn.to(weights[weight]), bias: torch.zeros_like(weights[bias])}


def first_layer_of(model: nn.Module) -> str:
    """Return the name of the first linear layer of a network, in the order of its modules; "" if there is none."""
    return next((name for name, layer in model.named_modules() if isinstance(layer, nn.Linear)), "")


def trap_rows(rows: int, inputs: int, *, scale: float, sigma: float, rng: torch.Generator) -> Tensor:
    """Draw the weights (rows, inputs) of trap rows; with an odd number of inputs one entry of each row is 0.

    >>> row = trap_rows(1, 6, scale=0.5, sigma=1.0, rng=torch.Generator().manual_seed(0)).sort().values
    >>> bool((row < 0).sum() == 3), torch.allclose(row[:, 3:], -0.5 * row[:, :3].flip(1))
    (True, True)
    """
    sizes = sigma * torch.randn(rows, inputs // 2, generator=rng, dtype=torch.float64).abs()
    entries = torch.cat([-sizes, scale * sizes, sizes.new_zeros(rows, inputs % 2)], 1)
    return entries.gather(1, torch.rand(rows, inputs, generator=rng).argsort(1))
