"""Coarse to fine: the derivative by half-size pictures, where each phase of a search moves, and what it gains on LeNet."""

import pytest
import torch
from small_problems import smooth
from torch import Tensor, nn

import leakage
from leakage.attacks._coarse import HalfSize
from leakage.attacks.inverting_gradients import InvertingGradients
from leakage.auditing.protection_effects import planted
from leakage.engine.core import generator
from leakage.models.lenet import LeNet


@pytest.mark.parametrize("shape", [(2, 3, 8, 8), (1, 2, 1, 7, 5), (1, 1, 1, 9)])
def test_the_derivative_by_the_small_pictures_is_the_transpose_of_the_enlargement(shape: tuple[int, ...]) -> None:
    rng, half = torch.Generator().manual_seed(0), HalfSize(torch.Size(shape))
    g = torch.randn(shape, generator=rng, dtype=torch.float64)
    small = torch.randn(half.reduce(g).shape, generator=rng, dtype=torch.float64)
    assert half.enlarge(small).shape == g.shape
    assert float((half.enlarge(small) * g).sum()) == pytest.approx(float((small * half.pull_back(g)).sum()), rel=1e-12)


def distance_from_enlargements(x: Tensor) -> float:
    """How far a picture (C, H, W) is from the nearest enlargement of a picture of half its sides, relative to its length."""
    half, count = HalfSize(x.shape[-2:]), x[0, ::2, ::2].numel()
    rows = torch.eye(count, dtype=torch.float64).reshape(count, 1, 1, *x[0, ::2, ::2].shape)
    matrix = torch.stack([HalfSize(torch.Size([1, 1, *half.shape])).enlarge(row).flatten() for row in rows], 1)
    found = torch.linalg.lstsq(matrix, x.double().flatten(1).T).solution
    return float((matrix @ found - x.double().flatten(1).T).norm() / x.double().norm())


def test_the_first_steps_move_half_size_pictures_and_the_others_every_pixel() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Sigmoid(), nn.Flatten(), nn.Linear(144, 5))
    seen = leakage.observe(model, smooth(1, 3, 8), torch.tensor([2]))
    search = InvertingGradients(steps=10, schedule="coarse first")
    found = [distance_from_enlargements(snapshot.x[0]) for snapshot in search.run(seen, generator(1, "attack"))]
    assert len(found) == 11  # ten steps, and the answer
    assert max(found[:6]) < 1e-6  # the sixth is what the fifth step made
    assert min(found[6:]) > 1e-3


@pytest.mark.parametrize("schedule", ["steps", "coarse first"])
def test_several_starts_and_a_batch_are_searched_too(schedule: str) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Sigmoid(), nn.Flatten(), nn.Linear(4 * 7 * 5, 5))
    search = InvertingGradients(steps=6, schedule=schedule, starts=2, keep_best=True)
    result = leakage.attack(model, torch.rand(2, 3, 9, 7), torch.tensor([2, 0]), attack=search)
    assert result.reconstruction.shape == (2, 3, 9, 7)
    assert result.steps == 6


@pytest.mark.long
def test_the_same_number_of_steps_comes_nearer_on_lenet() -> None:
    """Measured with ten starts (benchmarks/speed/to_picture.py); here one, with room."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = LeNet().build((3, 32, 32), 10)
    x, y = planted(1, (3, 32, 32)), torch.tensor([3])
    plain, coarse = (
        leakage.attack(model, x, y, attack=InvertingGradients(steps=375, tv_weight=0.0001, schedule=schedule)).scores["psnr"]
        for schedule in ("steps", "coarse first")
    )
    assert coarse > plain + 3
