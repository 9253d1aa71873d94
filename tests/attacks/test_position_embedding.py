"""The position embedding of a vision transformer gives one picture away; where it cannot, a sentence says why."""

from typing import Any

import pytest
import torch
from small_problems import smooth
from torch import Tensor, nn

import leakage
from leakage.spec.words import INAPPLICABLE, RECOGNIZABLE


class VisionTransformer(nn.Module):
    """A vision transformer as it is usually written: patches by a convolution, tokens in front, a position embedding, blocks, a head.

    tokens   how many learned tokens stand in front of the patches
    fixed    whether the position embedding is a buffer: known, and not trained
    """

    def __init__(self, units: int = 48, patch: int = 8, side: int = 32, *, tokens: int = 1, fixed: bool = False) -> None:
        super().__init__()
        self.tokens = nn.Parameter(torch.randn(1, tokens, units)) if tokens else None
        position = 0.1 * torch.randn(1, tokens + (side // patch) ** 2, units)
        if fixed:
            self.register_buffer("position", position)
        else:
            self.position = nn.Parameter(position)
        self.embed = nn.Conv2d(3, units, patch, stride=patch)
        self.blocks = nn.Sequential(*(nn.TransformerEncoderLayer(units, 4, 64, norm_first=True, batch_first=True) for _ in range(2)))
        self.head = nn.Linear(units, 5)

    def forward(self, x: Tensor) -> Tensor:
        z = self.embed(x).flatten(2).transpose(1, 2)
        if self.tokens is not None:
            z = torch.cat([self.tokens.expand(len(z), -1, -1), z], 1)
        return self.head(self.blocks(z + self.position).mean(1))


@pytest.fixture(autouse=True)
def seeded() -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def attacked(model: nn.Module, x: Tensor, **more: Any) -> leakage.Result:
    return leakage.attack(model, x, torch.arange(len(x)) + 2, attack="position_embedding", **more)


@pytest.mark.parametrize("tokens", [0, 1, 3])
def test_one_picture_follows_exactly(tokens: int) -> None:
    x = smooth(1, 3, 32)
    result = attacked(VisionTransformer(tokens=tokens), x, normalization=((0.5, 0.4, 0.3), (0.2, 0.3, 0.4)))
    assert result.verdict
    assert result.verdict["word"] == RECOGNIZABLE
    assert float((result.reconstruction - x).square().mean()) < 1e-8
    assert result.labels == [2]
    assert result.note["read from"] == "position and embed"


def test_pixels_that_no_patch_covers_stay_grey() -> None:
    x = smooth(1, 3, 36)  # 4 by 4 patches of 8 pixels cover 32 of 36
    result = attacked(VisionTransformer(), x)
    assert float((result.reconstruction[..., :32, :32] - x[..., :32, :32]).square().mean()) < 1e-8
    assert result.reconstruction[..., 32:, :].unique().tolist() == [0.5]
    assert result.reconstruction[..., 32:].unique().tolist() == [0.5]


class Zeroed(VisionTransformer):
    """Torchvision's vision transformer begins with a head of zeros."""

    def __init__(self) -> None:
        super().__init__()
        nn.init.zeros_(self.head.weight)


@pytest.mark.parametrize(
    ("make", "count", "sentence"),
    [
        (VisionTransformer, 2, "is a sum over the 2 pictures in the update"),
        (lambda: VisionTransformer(units=12), 1, "There are 16 patches and only 12 units for each"),
        (Zeroed, 1, "No gradient reaches embed, because a layer behind it passes none back"),
        (lambda: VisionTransformer(fixed=True), 1, "no trained parameter is added to the patches of embed"),
        (lambda: nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.Flatten(), nn.LazyLinear(5)), 1, "no convolution that the pixels enter"),
    ],
    ids=["a batch", "more patches than units", "a head of zeros", "a fixed embedding", "no transformer"],
)
def test_where_it_cannot_work_the_reason_is_told(make: Any, count: int, sentence: str) -> None:
    model = make()
    model(torch.rand(1, 3, 32, 32))  # a lazy layer gets its shape
    result = attacked(model, smooth(count, 3, 32))
    assert result.verdict
    assert result.verdict["word"] == INAPPLICABLE
    assert sentence in result.verdict["why"]


def test_a_convolution_that_overlaps_is_no_patch_embedding() -> None:
    model = VisionTransformer()
    model.embed = nn.Conv2d(3, 48, 10, stride=8, padding=1)
    result = attacked(model, smooth(1, 3, 32))
    assert result.verdict
    assert result.verdict["word"] == INAPPLICABLE


def test_noise_in_the_update_is_no_exact_answer() -> None:
    x = smooth(1, 3, 32)
    clean, noisy = (
        attacked(VisionTransformer(), x),
        attacked(VisionTransformer(), x, defenses=[leakage.plugin("gaussian_noise", scale=0.01)]),
    )
    assert noisy.scores["mse"] > 1e3 * clean.scores["mse"]
