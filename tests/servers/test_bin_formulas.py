"""The formulas behind the benchmark of cheating servers: shares of pictures alone, the error behind noise, the published reading."""

import sys
from functools import cache
from importlib import import_module
from itertools import product
from types import ModuleType

import pytest
import torch
from small_problems import RELU, moments, precision, smooth
from torch import Tensor

from leakage.engine.core import Observation
from leakage.servers._block import normal_edges
from leakage.settings import ROOT
from leakage.spec.experiment import Experiment, Part
from leakage.workers.adapter import observe

LAW = {"mean": 0.5, "deviation": 0.15}  # of the brightness of `smooth` pictures


@cache
def formulas() -> ModuleType:
    """The functions of benchmarks/published/malicious.py."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return import_module("_bins")
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def imprinted(x: Tensor) -> Observation:
    with precision(torch.float64):
        asked = Experiment(model=RELU, server=Part(id="imprint", fields={"bins": 16, **LAW}))
        return observe(asked, x, torch.arange(len(x)) % 10)


@pytest.mark.parametrize(("batch", "bins"), [(1, 3), (2, 3), (4, 3), (5, 2)])
def test_the_expected_share_alone_is_the_mean_over_all_ways_to_fall_into_bins(batch: int, bins: int) -> None:
    ways = [torch.tensor(way) for way in product(range(bins), repeat=batch)]
    counted = sum(int(formulas().are_alone(way, bins).sum()) for way in ways) / len(ways) / batch
    assert formulas().expected_alone(batch, bins) == pytest.approx(counted)


@pytest.mark.parametrize(("batch", "bins", "mini_batch"), [(4, 2, 4), (4, 2, 2), (4, 1, 1), (6, 2, 3)])
def test_the_expected_share_of_bins_that_answer_once_is_the_mean_over_all_ways(batch: int, bins: int, mini_batch: int) -> None:
    ways = [torch.tensor(way) - 1 for way in product(range(bins + 2), repeat=batch)]  # -1 and `bins` are lost
    counted = sum(int(formulas().come_first_alone(way, bins, mini_batch).sum()) for way in ways) / len(ways) / batch
    assert formulas().expected_first_alone(batch, bins, mini_batch) == pytest.approx(counted)
    single = sum(int(formulas().are_alone(way, bins).sum()) for way in ways) / len(ways) / batch
    assert formulas().expected_alone_sparse(batch, bins) == pytest.approx(single)


def test_a_later_picture_of_a_bin_does_not_count_if_its_row_has_moved() -> None:
    of = torch.tensor([0, 1, 1, 1, 0, 2, -1, 3])
    assert formulas().come_first_alone(of, 3, 2).tolist() == [True, True, False, False, False, True, False, False]
    assert formulas().come_first_alone(of, 3, 8).tolist() == formulas().are_alone(of, 3).tolist()


@pytest.mark.parametrize("subtracted", [False, True])
def test_the_predicted_error_is_that_of_rows_under_noise(subtracted: bool) -> None:
    rng = torch.Generator().manual_seed(0)
    x, d, noise = torch.rand((1, 3, 4, 4), generator=rng, dtype=torch.float64), torch.tensor([0.3]).double(), 0.003

    def drawn(*shape: int) -> Tensor:
        own, below = (torch.randn(shape, generator=rng, dtype=torch.float64) * noise for _ in range(2))
        return own - below if subtracted else own

    guesses = (d * x.flatten(1) + drawn(4000, 48)) / (d + drawn(4000, 1))
    measured = (guesses - x.flatten(1)).square().mean()
    predicted = formulas().predicted_mse(x, d, noise, subtracted=subtracted)
    assert float(measured / predicted) == pytest.approx(1, abs=0.05)  # 4,000 draws of an error of which one number is common to all pixels


def test_the_predicted_error_of_a_map_of_ones_is_that_of_its_mean() -> None:
    rng = torch.Generator().manual_seed(0)
    x, d, noise, scale = torch.rand((1, 3, 4, 4), generator=rng, dtype=torch.float64), torch.tensor([0.3]).double(), 0.01, 5.0
    rows = d * scale * x.flatten(1) + torch.randn((4000, 48), generator=rng, dtype=torch.float64) * noise
    ones = d + torch.randn((4000, 16), generator=rng, dtype=torch.float64) * noise
    guesses = rows / ones.mean(1, keepdim=True) / scale
    measured = (guesses - x.flatten(1)).square().mean()
    assert float(measured / formulas().predicted_mse_loki(x, d, noise, scale=scale)) == pytest.approx(1, abs=0.05)


def test_the_benchmark_reads_from_bins_what_the_attack_reads() -> None:
    x = smooth(6, seed=1).double()
    seen = imprinted(x)
    (block,) = formulas().blocks_of(seen)
    answer = moments(Part(id="bins"), seen)[-1].x.double()
    of = formulas().bins_of(x.mean((1, 2, 3)), normal_edges(16, **LAW))
    single = formulas().are_alone(of, 16)
    assert torch.equal(formulas().are_among(answer, x, 1e-5), single)
    assert torch.equal(formulas().are_among(block.pictures(), x, 1e-5), single)
    assert torch.allclose(block.rows[of[single]], block.d[of[single]].unsqueeze(1) * x[single].flatten(1), atol=1e-12)


def test_the_published_differencing_loses_a_picture_in_the_last_bin() -> None:
    x = smooth(3, seed=1).double()
    lights = torch.tensor([0.2, 0.5, 0.95]).view(-1, 1, 1, 1)
    x = (x - x.mean((1, 2, 3), keepdim=True)) * 0.05 + lights
    seen = imprinted(x)
    (block,) = formulas().blocks_of(seen)
    assert formulas().are_among(block.pictures(), x, 1e-5).tolist() == [True, True, True]
    assert formulas().are_among(formulas().published_pictures(seen), x, 1e-5).tolist() == [True, True, False]


def test_stretching_is_right_for_pictures_that_span_0_to_1_and_wrong_for_others() -> None:
    x = torch.tensor([[0.0, 0.25, 1.0], [0.2, 0.3, 0.4]])
    assert torch.allclose(formulas().stretched(-3 * x), torch.tensor([[0.0, 0.25, 1.0], [0.0, 0.5, 1.0]]))
