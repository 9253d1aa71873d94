"""The base class of models that can be trained, and attacked. Import it from `leakage.engine.core`."""

from torch import nn

from leakage.engine.plugin import Plugin
from leakage.spec.declarations import ModelDeclarations


class Model(Plugin, ModelDeclarations):
    """A network to be trained.

    Example:
        >>> import torch
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Flat(Model):
        ...     def build(self, image_shape, num_classes):
        ...         return nn.Sequential(nn.Flatten(), nn.Linear(torch.Size(image_shape).numel(), num_classes))
        >>> tuple(Flat().build((3, 8, 8), 10)(torch.rand(2, 3, 8, 8)).shape)
        (2, 10)
    """

    def build(self, image_shape: tuple[int, int, int], num_classes: int) -> nn.Module:
        """Build the untrained network. Its weights come from torch's global generator, which the engine forks and seeds.

        Args:
            image_shape: (C, H, W) of one picture.
            num_classes: K.

        Returns:
            A module that maps pictures (B, C, H, W) in [0, 1] to logits (B, K).

        Raises:
            ValueError: the network cannot take pictures of this shape.
        """
        raise NotImplementedError
