"""DLG's published network, as its authors wrote and initialised it."""

import torch
from torch import Tensor, nn


class PublishedLeNet(nn.Module):
    """Three convolutions, sigmoids, and a view; all weights and biases ~ U(-0.5, 0.5), drawn by the seed.

    For digits of 28 pixels: 1 channel, 588 features, 10 classes; for CIFAR-100: 3 channels, 768 features, 100 classes.
    Source: the code of Zhu et al. 2019.
    """

    def __init__(self, seed: int, *, channels: int = 1, features: int = 588, classes: int = 10) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            sizes = ((channels, 12, 2), (12, 12, 2), (12, 12, 1))
            layers = [part for c, d, step in sizes for part in (nn.Conv2d(c, d, 5, stride=step, padding=2), nn.Sigmoid())]
            self.body, self.fc = nn.Sequential(*layers), nn.Sequential(nn.Linear(features, classes))
            for value in self.parameters():
                nn.init.uniform_(value, -0.5, 0.5)

    def forward(self, x: Tensor) -> Tensor:
        out = self.body(x)
        out = out.view(out.size(0), -1)
        logits: Tensor = self.fc(out)
        return logits
