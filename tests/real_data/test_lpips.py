"""LPIPS with the SqueezeNet in the data folder: published values, and the verdict on LPIPS's own example pictures."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from small_problems import baselines_of, lineup_of

from leakage.data.datasets import data_folder
from leakage.data.images import datasets, read
from leakage.evaluation import metrics
from leakage.evaluation.baselines import Baselines, measure
from leakage.evaluation.lineup import pixel_ranks
from leakage.evaluation.perceptual import Perceptual, perceptual
from leakage.evaluation.verdict import verdict
from leakage.spec.experiment import Experiment, Picture
from leakage.spec.words import SINGLED_OUT

FOLDER = data_folder() / "lpips_squeeze"
pytestmark = pytest.mark.skipif(not (FOLDER / "squeezenet1_1_features.pth").exists(), reason="no lpips_squeeze in the data folder")


@pytest.fixture(scope="module")
def eye() -> Perceptual:
    found = perceptual()
    if found.net != "squeeze":
        pytest.skip(f"another backbone is preferred on this machine: {found.net}")
    return found


def example(name: str) -> torch.Tensor:
    with Image.open(FOLDER / f"{name}.png") as image:
        return torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)[None].float() / 255


def test_it_equals_the_reference_values(eye: Perceptual) -> None:
    expected = json.loads(Path(FOLDER / "reference_values_squeeze_v0.1.json").read_text())
    for name in ("ex_p0", "ex_p1", "ex_ref"):
        assert float(eye.distance(example("ex_ref"), example(name))) == pytest.approx(expected[f"ex_ref vs {name}"], abs=1e-4)
    rng = torch.Generator().manual_seed(42)
    one, other = torch.rand(2, 3, 100, 100, generator=rng), torch.rand(2, 3, 100, 100, generator=rng)
    seeded = next(value for name, value in expected.items() if "seed 42" in name)
    assert eye.distance(one, other).tolist() == pytest.approx(seeded, abs=1e-4)
    assert seeded == pytest.approx([0.1024, 0.0938], abs=5e-5)  # as documented in torchmetrics


@pytest.fixture(scope="module")
def owned() -> tuple[torch.Tensor, Baselines]:
    """The example's reference picture as somebody's upload."""
    x = example("ex_ref")
    return x, baselines_of(Experiment(pictures=(Picture(source="upload", id="u", label=9),)), x, torch.tensor([9]))


@pytest.mark.parametrize(
    ("name", "word"),
    [("ex_ref", "recognizable"), ("ex_p1", "recognizable"), ("ex_p0", SINGLED_OUT)],  # itself; warped but sharp; blurred
)
@pytest.mark.long
def test_the_verdict_on_the_example_pictures_of_lpips(eye: Perceptual, owned: tuple[torch.Tensor, Baselines], name: str, word: str) -> None:
    x, held = owned
    assert verdict(measure(example(name), x, held.lineup, eye), held.reference)["word"] == word


def test_the_verdict_without_lpips_misses_what_is_warped(owned: tuple[torch.Tensor, Baselines]) -> None:
    x, held = owned
    best = {**held.reference.best, "lpips": torch.tensor([torch.nan])}
    found = measure(example("ex_p1"), x, held.lineup, Perceptual("", "off"))
    assert verdict(found, replace(held.reference, best=best))["word"] == SINGLED_OUT


@pytest.mark.long
def test_over_200_cifar_pictures_grey_ranks_in_the_middle_although_flat_pictures_are_near_it() -> None:
    if not datasets()["cifar10"].is_available:
        pytest.skip("no CIFAR-10 in the data folder")
    # The 200 truths share the first 2,000 test pictures with their line-ups: each rank is uniform on 1..100, 50.5 +- 2.04.
    ranks, levels = [], []
    for number in range(200):
        id = str(10 * number)
        experiment = Experiment(pictures=(Picture(source="cifar10", id=id),), seed=number)
        x = torch.from_numpy(read("cifar10", id, 32, 3)).permute(2, 0, 1)[None].float() / 255
        lineup = lineup_of(experiment, x, torch.tensor([0]))
        ranks.append(float(pixel_ranks(torch.full_like(x, 0.5), x, lineup)))
        levels.append(float(metrics.psnr(torch.full_like(x, 0.5), x)))
        assert lineup.size == 100
    assert sum(ranks) / 200 == pytest.approx(50.5, abs=3 * 2.04)
    assert np.corrcoef(ranks, levels)[0, 1] < -0.9  # one picture's rank by grey says how flat it is, and nothing else
