"""The verdict: its rule at the borders, and whether it says what one sees."""

import math

import pytest
import torch
from problems import baselines_of
from torchvision.transforms.functional import gaussian_blur

from leakage.evaluation.baselines import Baselines, measure
from leakage.evaluation.perceptual import Perceptual
from leakage.evaluation.verdict import RULE, verdict, way
from leakage.spec.experiment import Experiment, Picture
from leakage.workers.private_pictures import load

NAMES = ("astronaut", "chelsea", "coffee", "retina", "face-0", "digit-3")


def scores(ssim: list[float], lpips: list[float], rank: list[float]) -> dict[str, torch.Tensor]:
    found = {"psnr": [20.0] * len(ssim), "ssim": ssim, "lpips": lpips, "rank": rank}
    return {name: torch.tensor(value).double() for name, value in found.items()}


def judged(ssim: float, lpips: float, rank: float) -> dict[str, str]:
    """Best baselines 0.2 and 0.5: half of the way is 0.6 and 0.25, 15 % of it 0.32 and 0.425."""
    return verdict(scores([ssim], [lpips], [rank]), {"ssim": torch.tensor([0.2]), "lpips": torch.tensor([0.5])}, size=100)


@pytest.mark.parametrize(
    ("ssim", "lpips", "rank", "word"),
    [
        (0.61, 0.5, 1, "recognisable"),
        (0.2, 0.24, 1, "recognisable"),  # either is enough
        (0.61, 0.24, 1.5, "partly recognisable"),  # identification comes first
        (0.59, 0.26, 1, "partly recognisable"),
        (0.33, 0.5, 5, "partly recognisable"),
        (0.2, 0.42, 5, "partly recognisable"),
        (1.0, 0.0, 5.5, "not recognisable"),
        (0.31, 0.43, 1, "not recognisable"),  # a blob of the right colour: first in the line-up, and nothing to see
        (0.61, math.nan, 1, "recognisable"),
        (0.31, math.nan, 1, "not recognisable"),
        (math.nan, 0.24, 1, "recognisable"),
        (math.nan, math.nan, 1, "partly recognisable"),
        (math.nan, math.nan, 2, "not recognisable"),
    ],
)
def test_the_verdict_on_one_picture_obeys_its_rule_at_the_border(ssim: float, lpips: float, rank: float, word: str) -> None:
    found = judged(ssim, lpips, rank)
    assert found["word"] == word
    assert found["rule"] == RULE
    assert f"rank {rank:g} of 100" in found["why"]
    assert ("no SSIM, whose window needs 7 pixels" in found["why"]) == math.isnan(ssim)
    assert ("LPIPS" in found["why"]) == (not math.isnan(lpips))


def test_the_way_is_0_at_the_best_baseline_and_1_at_an_exact_copy() -> None:
    best = {"ssim": torch.tensor([0.9, 0.9]).double(), "lpips": torch.tensor([0.1, 0.1]).double()}
    assert way(scores([0.9, 1.0], [0.1, 0.0], [1, 1]), best).tolist() == pytest.approx([0, 1])
    assert way(scores([0.95, 0.9], [0.2, 0.05], [1, 1]), best).tolist() == pytest.approx([0.5, 0.5])  # the larger of both


@pytest.mark.parametrize(
    ("similar", "word", "counted"),
    [
        ([0.9, 0.9, 0.9], "recognisable", "3 of 3 pictures are recognisable, 0 partly"),
        ([0.9, 0.4, 0.0], "recognisable", "1 of 3 pictures are recognisable, 1 partly"),
        ([0.4, 0.0, 0.0], "partly recognisable", "0 of 3 pictures are recognisable, 1 partly"),
        ([0.0, 0.0, 0.0], "not recognisable", "0 of 3 pictures are recognisable, 0 partly"),
    ],
)
def test_a_batch_is_judged_by_its_clearest_picture(similar: list[float], word: str, counted: str) -> None:
    best = {"ssim": torch.zeros(3), "lpips": torch.ones(3)}
    found = verdict(scores(similar[::-1], [math.nan] * 3, [1] * 3), best, size=100)
    assert found["word"] == word
    assert found["why"].startswith(counted)
    assert f"SSIM {max(similar):.2f}" in found["why"]


def test_a_picture_of_one_colour_can_be_partly_recognisable_at_most() -> None:
    """Its own mean colour is an exact copy, but for rounding: nothing is left that a guess could show."""
    best = {"ssim": torch.ones(1) - 1e-7, "lpips": torch.full((1,), 1e-7)}
    found = verdict(scores([1.0], [0.0], [1]), best, size=100)
    assert math.isnan(float(way(scores([1.0], [0.0], [1]), best)))
    assert found["word"] == "partly recognisable"


def test_a_verdict_names_the_best_baseline() -> None:
    names = {"ssim": ["black"], "lpips": ["noise"]}
    told = verdict(scores([0.9], [0.1], [1]), {"ssim": torch.zeros(1), "lpips": torch.ones(1)}, size=100, names=names)["why"]
    assert "SSIM 0.90 (best baseline 0.00, black), LPIPS 0.10 (best baseline 1.00, noise)" in told


def test_a_verdict_by_pixels_alone_says_so() -> None:
    best, known = {"ssim": torch.zeros(1), "lpips": torch.ones(1)}, scores([0.9], [math.nan], [1])
    assert "rank 1 of 100 in the line-up (by pixels alone)," in verdict(known, best, size=100)["why"]
    assert "rank 1 of 100 in the line-up," in verdict({**known, "rank_ssim": torch.ones(1)}, best, size=100)["why"]


# ---------------------------------------------------------------- what one sees


@pytest.fixture(scope="module")
def gallery() -> tuple[torch.Tensor, Baselines]:
    experiment = Experiment(pictures=tuple(Picture(id=id) for id in NAMES))
    x, y = load(experiment, {})
    return x, baselines_of(experiment, x, y)


def words(guess: torch.Tensor, x: torch.Tensor, held: Baselines, *, lpips: bool) -> list[str]:
    """The verdict on each picture alone."""
    found = measure(guess.clamp(0, 1), x, held.lineup, held.perceptual if lpips else Perceptual("", "off"))
    best = held.best if lpips else held.best | {"lpips": torch.full((len(x),), torch.nan)}
    one = [({k: v[n : n + 1] for k, v in found.items()}, {k: v[n : n + 1] for k, v in best.items()}) for n in range(len(x))]
    return [verdict(mine, floor, size=held.lineup.size)["word"] for mine, floor in one]


def noise(x: torch.Tensor) -> torch.Tensor:
    return torch.randn(x.shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("lpips", [False, True])
def test_exact_and_lightly_noised_or_blurred_copies_are_recognisable(gallery: tuple[torch.Tensor, Baselines], lpips: bool) -> None:
    x, held = gallery
    for guess in (x, x + 0.04 * noise(x), gaussian_blur(x, [7, 7], [0.7, 0.7]), gaussian_blur(x, [7, 7], [1.0, 1.0])):
        assert words(guess, x, held, lpips=lpips) == ["recognisable"] * len(NAMES)


@pytest.mark.parametrize("lpips", [False, True])
def test_a_portrait_under_heavy_noise_or_blur_is_partly_recognisable(gallery: tuple[torch.Tensor, Baselines], lpips: bool) -> None:
    x, held = gallery
    for guess in (x + 0.4 * noise(x), gaussian_blur(x, [19, 19], [3.0, 3.0])):
        assert words(guess, x, held, lpips=lpips)[0] == "partly recognisable"
    assert "recognisable" not in words(x + 0.4 * noise(x), x, held, lpips=lpips)


@pytest.mark.parametrize("lpips", [False, True])
def test_what_shows_nothing_of_the_picture_is_not_recognisable(gallery: tuple[torch.Tensor, Baselines], lpips: bool) -> None:
    x, held = gallery
    blind = [
        torch.zeros_like(x),
        torch.full_like(x, 0.5),
        torch.ones_like(x),
        x.mean((2, 3), keepdim=True).expand_as(x),
        held.lineup.mean,
        torch.rand(x.shape, generator=torch.Generator().manual_seed(1)),
    ]
    for guess in blind:
        assert words(guess, x, held, lpips=lpips) == ["not recognisable"] * len(NAMES)


@pytest.mark.parametrize("lpips", [False, True])
def test_another_picture_of_the_kind_is_never_recognisable_and_partly_once_in_twenty_times_at_most(
    gallery: tuple[torch.Tensor, Baselines], lpips: bool
) -> None:
    x, held = gallery
    beside = [row.nonzero()[:, 0] for row in held.lineup.competitors]
    others = [torch.stack([held.lineup.others[row[place]] for row in beside]) for place in (0, 30, 60, 90)]
    found = [word for guess in others for word in words(guess, x, held, lpips=lpips)]
    assert found.count("recognisable") == 0
    assert found.count("partly recognisable") <= len(found) / 20  # one face of eleven resembles another


def test_a_blob_of_the_right_colours_is_at_most_partly_recognisable(gallery: tuple[torch.Tensor, Baselines]) -> None:
    x, held = gallery
    blob = gaussian_blur(x, [31, 31], [8.0, 8.0])
    assert "recognisable" not in words(blob, x, held, lpips=True)
