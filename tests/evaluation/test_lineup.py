"""The line-up: the meaning of a rank, the pictures in it, and the ranks of guesses without information."""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.io import savemat
from small_problems import baselines_of, lineup_of, smooth

from leakage.engine.core import generator
from leakage.evaluation import baselines
from leakage.evaluation.baselines import Baselines, measure
from leakage.evaluation.lineup import NEAR, SIZE, Lineup, Origin, draw, lpips_ranks, pixel_ranks, ssim_ranks
from leakage.evaluation.metrics import ssim
from leakage.evaluation.perceptual import Perceptual
from leakage.evaluation.pools import OLIVETTI
from leakage.evaluation.recent import Recent
from leakage.evaluation.verdict import verdict
from leakage.spec.experiment import Experiment, Picture
from leakage.spec.words import SINGLED_OUT
from leakage.workers.adapter import origins
from leakage.workers.private_pictures import load

OFF = Perceptual("", "off")
GALLERY = Experiment(pictures=tuple(Picture(id=id) for id in ("astronaut", "face-0", "digit-3")))


def lined(others: torch.Tensor, count: int = 1) -> Lineup:
    """A line-up in which all of `others` stand beside each of `count` pictures."""
    return Lineup(others, torch.ones(count, len(others), dtype=torch.bool), torch.zeros(count), "")


def gallery() -> tuple[torch.Tensor, Baselines]:
    x, y = load(GALLERY, {})
    return x, baselines_of(GALLERY, x, y)


# ---------------------------------------------------------------- what a rank means


@pytest.mark.parametrize(
    ("own", "others", "rank"),
    [
        (0.1, [0.2, 0.3, 0.4], 1),
        (0.25, [0.2, 0.3, 0.1], 3),
        (0.9, [0.2, 0.3, 0.4], 4),
        (0.2, [0.2, 0.3, 0.2], 2),  # two ties count half each
        (0.0, [0.0, 0.0, 0.0], 2.5),  # nothing tells them apart: the middle of 1 to 4
    ],
)
def test_a_rank_counts_who_is_nearer_and_ties_half(own: float, others: list[float], rank: float) -> None:
    assert lined(torch.zeros(3, 1, 1, 1)).rank(torch.tensor([own]), torch.tensor([others])).tolist() == [rank]


def test_a_distance_that_is_no_number_has_no_rank() -> None:
    ranks = lined(torch.zeros(2, 1, 1, 1), 2).rank(torch.tensor([torch.nan, 0.5]), torch.tensor([[torch.nan, torch.nan], [0.1, 0.9]]))
    assert ranks.isnan().tolist() == [True, False]
    assert float(ranks[1]) == 2


def test_who_does_not_stand_beside_a_picture_is_not_counted() -> None:
    lineup = Lineup(torch.zeros(3, 1, 1, 1), torch.tensor([[True, False, True]]), torch.zeros(1), "")
    assert lineup.rank(torch.tensor([0.5]), torch.tensor([[0.1, 0.2, 0.9]])).tolist() == [2]
    assert lineup.size == 3


def test_the_distance_is_that_from_the_guess_and_not_from_the_truth() -> None:
    others, truth = torch.tensor([0.0, 0.625, 1.0]).view(3, 1, 1, 1), torch.tensor([[[[0.5]]]])
    for guess, rank in ((0.53125, 1), (0.75, 2.5), (0.875, 3)):  # for 0.75, 0.625 is nearer than 0.5, and 1.0 as far
        assert pixel_ranks(torch.tensor([[[[guess]]]]), truth, lined(others)).tolist() == [rank]


@pytest.mark.long
def test_an_exact_reconstruction_ranks_first_of_100_by_every_distance() -> None:
    x, held = gallery()
    scores = measure(x, x, held.lineup, held.perceptual)
    assert held.lineup.size == SIZE == 100
    assert scores["rank_pixel"].tolist() == scores["rank_ssim"].tolist() == scores["rank"].tolist() == [1, 1, 1]
    assert held.perceptual.model is None or scores["rank_lpips"].tolist() == [1, 1, 1]


@pytest.mark.long
def test_the_rank_is_the_median_over_the_distances_that_there_are() -> None:
    x, held = gallery()
    scores = measure(0.3 * x.roll(2, 3) + 0.3, x, held.lineup, OFF)
    assert scores["rank_lpips"].isnan().all()
    assert scores["rank"].tolist() == ((scores["rank_pixel"] + scores["rank_ssim"]) / 2).tolist()


@pytest.mark.parametrize("shade", [0.5, 0.0])
@pytest.mark.long
def test_over_200_draws_a_guess_that_knows_nothing_averages_the_middle(shade: float) -> None:
    # The true picture is any of the pool with equal probability, so its rank is uniform on 1..100: 50.5 +- 28.9 / sqrt(200) = 2.04.
    pool, rng = smooth(400, 3, 8, seed=5) ** 2, torch.Generator().manual_seed(0)
    guess, by_pixel, by_ssim = torch.full((1, 3, 8, 8), shade), [], []
    for _ in range(200):
        drawn = pool[torch.randperm(400, generator=rng)[:100]]
        truth, lineup = drawn[:1], lined(drawn[1:])
        by_pixel.append(float(pixel_ranks(guess, truth, lineup)))
        by_ssim.append(float(ssim_ranks(guess, ssim(guess, truth), lineup)))
    for ranks in (by_pixel, by_ssim):
        assert sum(ranks) / 200 == pytest.approx(50.5, abs=3 * 2.04)
        assert min(ranks) < 10  # although low-contrast pictures are always nearest to grey
        assert max(ranks) > 90


def test_pictures_below_the_window_of_ssim_have_no_rank_by_it() -> None:
    assert ssim_ranks(smooth(2, 1, 6), ssim(smooth(2, 1, 6), smooth(2, 1, 6)), lined(smooth(5, 1, 6), 2)).isnan().all()
    assert lpips_ranks(smooth(1), OFF.distance(smooth(1), smooth(1)), lined(smooth(5)), OFF).isnan().all()


# ---------------------------------------------------------------- the pictures in a line-up


@pytest.mark.long
def test_beside_a_gallery_picture_stand_99_crops_of_others_of_its_kind_but_none_of_itself() -> None:
    x, held = gallery()
    lineup = held.lineup
    assert lineup.competitors.sum(1).tolist() == [99, 99, 99]
    assert not (lineup.competitors.sum(0) > 1).any()  # a photograph, a face and a digit share nobody
    for number in range(3):
        competitors = lineup.others[lineup.competitors[number]]
        assert (competitors - x[number]).abs().mean((1, 2, 3)).min() > 0.02
        colourful = (competitors.amax(1) - competitors.amin(1)).amax() > 0.1
        assert bool(colourful) == (number == 0)
    assert lineup.words.startswith("99 crops of the other photographs in the gallery; 99 crops of the other faces")


def test_the_line_up_of_a_batch_does_not_lack_the_batchs_other_pictures() -> None:
    both = Experiment(pictures=(Picture(id="astronaut"), Picture(id="chelsea")))
    x, y = load(both, {})
    lineup = lineup_of(both, x, y)
    nearest = [float((lineup.others[lineup.competitors[one]] - x[other]).abs().mean((1, 2, 3)).min()) for one, other in ((0, 1), (1, 0))]
    assert max(nearest) < 0.01  # the whole of the other picture is among the crops


def test_a_near_duplicate_of_the_true_picture_stands_elsewhere() -> None:
    coffee = Experiment(pictures=(Picture(id="coffee"),))
    x, y = load(coffee, {})
    twin = Experiment(pictures=(Picture(source="upload", id="u", label=2),))  # somebody uploads what the gallery has
    alone, crops = lineup_of(coffee, x, y), lineup_of(twin, x, y)
    assert crops.size == alone.size == 100
    cropped = crops.others[crops.competitors[0]]
    assert (cropped - x[0]).abs().mean((1, 2, 3)).min() >= NEAR
    assert (crops.others - x[0]).abs().mean((1, 2, 3)).min() < 0.01


def test_a_line_up_is_the_same_each_time_and_leaves_the_global_generator_alone() -> None:
    x, y = load(GALLERY, {})
    state = torch.get_rng_state()
    first, second = lineup_of(GALLERY, x, y), lineup_of(GALLERY, x, y)
    assert torch.equal(first.others, second.others)
    assert torch.equal(first.competitors, second.competitors)
    assert torch.equal(state, torch.get_rng_state())


def test_nobody_stands_beside_a_picture_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """40 people, ten pictures each: the shade of the left half is the person, that of the right half the picture's number."""
    monkeypatch.setenv("LEAKAGE_DATA", str(tmp_path))
    person, number = np.arange(400) // 10, np.arange(400) % 10
    pixels = np.zeros((400, 64, 64), np.uint8)
    pixels[:, :, :32], pixels[:, :, 32:] = person[:, None, None] * 6, number[:, None, None] * 25
    (tmp_path / OLIVETTI).parent.mkdir()
    savemat(tmp_path / OLIVETTI, {"faces": pixels.transpose(0, 2, 1).reshape(400, 4096).T})
    asked = Experiment(pictures=tuple(Picture(source="faces", id=id) for id in ("25", "31", "29")), size=64, channels=1, seed=4)
    lineup = lineup_of(asked, *load(asked, {}))
    shades = (lineup.others[:, 0, 0, 0] * 255 / 6).round().int().tolist()
    order = torch.randperm(400, generator=generator(4, "lineup", "faces")).tolist()
    for beside, own in zip(lineup.competitors, (2, 3, 2), strict=True):
        expected = [place // 10 for place in order if place not in (25, 31, 29) and place // 10 != own][:99]
        assert [shade for shade, stands in zip(shades, beside.tolist(), strict=True) if stands] == expected
    assert lineup.words == "99 others, of other people, of the first 400 Olivetti faces test pictures, drawn by the seed"


# ---------------------------------------------------------------- baselines


def test_measuring_takes_one_thread_and_gives_the_others_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before, seen = torch.get_num_threads(), []
    torch.set_num_threads(2)
    try:
        monkeypatch.setattr(baselines, "_recent", Recent[Baselines](0, lambda _: 1))
        monkeypatch.setattr(baselines, "draw", lambda *given, **more: seen.append(torch.get_num_threads()) or draw(*given, **more))
        gallery()
        assert seen == [1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_baselines_of_the_last_batches_are_remembered_but_not_those_of_uploads() -> None:
    first, again = gallery()[1], gallery()[1]
    assert again is first
    x, y = load(GALLERY, {})
    assert baselines_of(GALLERY, x, 1 - y) is not first
    assert baselines_of(GALLERY.model_copy(update={"seed": 5}), x, y) is not first
    uploads = [Origin("upload", "a", file=b"a"), *origins(GALLERY)[1:]]
    assert baselines.make_baselines(uploads, x, y, seed=0) is not baselines.make_baselines(uploads, x, y, seed=0)


@pytest.mark.long
def test_the_last_picture_of_a_large_batch_is_judged_as_the_first() -> None:
    count, different = 30, 12
    many = Experiment(pictures=tuple(Picture(id=f"face-{n % different}") for n in range(count)))
    x, y = load(many, {})
    held = baselines_of(many, x, y)
    scores = measure(x, x, held.lineup, OFF)
    assert scores["rank"].tolist() == [1] * count
    firsts = held.reference.firsts["rank_pixel"]
    assert firsts[different:] == firsts[: count - different]
    words = verdict(scores | {"ssim": torch.zeros(count)}, held.reference)["each"]
    assert words == (SINGLED_OUT,) * count  # exact by PSNR, and first in the line-up


@pytest.mark.long
def test_baselines_are_grey_noise_the_mean_of_the_line_up_and_another_of_the_class() -> None:
    x, held = gallery()
    assert list(held.scores) == ["grey", "mean", "noise", "mean_colour", "blurred", "same_class"]
    again = measure(held.lineup.mean, x, held.lineup, held.perceptual)
    assert held.scores["mean"]["psnr"] == pytest.approx(float(again["psnr"].mean()))
    assert torch.allclose(held.lineup.mean[1], held.lineup.others[held.lineup.competitors[1]].mean(0), atol=1e-6)
    assert held.lineup.same_class.isnan().flatten(1).any(1).tolist() == [True, False, False]  # the gallery has one astronaut
    face = held.lineup.same_class[1]
    assert float((face - x[1]).abs().mean()) > 0.02


@pytest.mark.long
def test_a_black_picture_gives_grey_6_decibels_and_noise_the_mean_square_of_a_uniform_number() -> None:
    held = baselines_of(Experiment(), torch.zeros(1, 3, 64, 64), torch.tensor([0]))
    assert held.scores["grey"]["psnr"] == pytest.approx(6.0206, abs=1e-3)  # 10 log10 4
    assert held.scores["noise"]["mse"] == pytest.approx(1 / 3, rel=0.02)  # E u^2 of 12288 uniform numbers: known to 0.8 %
    assert "same_class" not in held.scores
    assert held.reference.best["ssim"].tolist() == pytest.approx([1])  # black itself is a plain colour


@pytest.mark.long
def test_noise_comes_from_the_experiments_seed() -> None:
    x, y = load(Experiment(), {})
    one, same, other = (baselines_of(Experiment(seed=seed), x, y).scores["noise"]["mse"] for seed in (1, 1, 2))
    assert one == same != other
    noise = torch.rand(x.shape, generator=generator(1, "baseline"))
    assert one == pytest.approx(float((noise - x).double().square().mean()))
