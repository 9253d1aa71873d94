"""DLG's published network and settings on a color picture of CIFAR-100."""

import pytest
import torch
from published_lenet import PublishedLeNet

import leakage
from leakage.data.images import read


@pytest.mark.slow
def test_dlgs_published_network_gives_a_color_picture_back_above_40_db() -> None:
    """300 steps of L-BFGS, as the authors take."""
    model = PublishedLeNet(1236, channels=3, features=768, classes=100)
    x = torch.from_numpy(read("cifar100", "cattle/bos_taurus_s_000308.png", 32, 3)).permute(2, 0, 1)[None] / 255
    result = leakage.attack(model, x, torch.tensor([74]), attack=leakage.plugin("idlg", steps=300, restarts=3), seed=2)
    assert result.scores["psnr"] > 40
    assert result.labels == [74]
