"""The network that DLG was published with, on a color picture of CIFAR-100, attacked with the authors' settings."""

import pytest
import torch
from torch import Tensor, nn

import leakage
from leakage.data.images import read


class ColorLeNet(nn.Module):
    """As in the code of Zhu et al. 2019 for CIFAR-100: three convolutions, sigmoids, and a view; all weights ~ U(-0.5, 0.5)."""

    def __init__(self) -> None:
        super().__init__()
        sizes = ((3, 12, 2), (12, 12, 2), (12, 12, 1))
        layers = [part for c, d, step in sizes for part in (nn.Conv2d(c, d, 5, stride=step, padding=2), nn.Sigmoid())]
        self.body, self.fc = nn.Sequential(*layers), nn.Sequential(nn.Linear(768, 100))

    def forward(self, x: Tensor) -> Tensor:
        out = self.body(x)
        out = out.view(out.size(0), -1)
        return self.fc(out)


@pytest.mark.slow
def test_dlgs_published_network_gives_a_color_picture_back_above_40_db() -> None:
    """300 steps of L-BFGS, as the authors take."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1236)
        model = ColorLeNet()
        for value in model.parameters():
            nn.init.uniform_(value, -0.5, 0.5)
    x = torch.from_numpy(read("cifar100", "cattle/bos_taurus_s_000308.png", 32, 3)).permute(2, 0, 1)[None] / 255
    result = leakage.attack(model, x, torch.tensor([74]), attack=leakage.plugin("idlg", steps=300, tries=3), seed=2)
    assert result.scores["psnr"] > 40
    assert result.labels == [74]
