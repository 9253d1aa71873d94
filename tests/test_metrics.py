"""Scores against scikit-image and against values computed by hand; the verdict's rule; which guess belongs to which picture."""

import math

import numpy as np
import pytest
import torch
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from leakage.engine.metrics import (
    PSNR_CAP,
    RULE,
    baselines,
    flat,
    gradient_distances,
    label_overlap,
    mse,
    psnr,
    ssim,
    summary,
    verdict,
)
from leakage.engine.pairing import costs, pair


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


# ---------------------------------------------------------------- MSE, PSNR, SSIM


@pytest.mark.parametrize(("error", "decibels"), [(0.1, 20.0), (0.01, 40.0), (0.5, 6.0206)])
def test_an_error_of_a_tenth_everywhere_is_20_decibels(error: float, decibels: float) -> None:
    truth = torch.full((2, 3, 8, 8), 0.5)
    assert mse(truth + error, truth).tolist() == pytest.approx([error**2] * 2, rel=1e-5)  # 0.5 + error rounds in float32
    assert psnr(truth + error, truth).tolist() == pytest.approx([decibels] * 2, abs=1e-4)


def test_an_error_of_rms_a_tenth_that_is_not_the_same_everywhere_is_20_decibels_too() -> None:
    truth = torch.full((1, 1, 2, 2), 0.5)
    guess = truth + torch.tensor([[0.2, 0.0], [0.0, 0.0]])  # mean of squares 0.04 / 4
    assert float(psnr(guess, truth)) == pytest.approx(20, abs=1e-4)


def test_a_value_is_given_per_picture_and_a_batch_is_summed_up_by_its_mean() -> None:
    truth = torch.full((2, 1, 8, 8), 0.5)
    guess = truth + torch.tensor([0.1, 0.01]).view(2, 1, 1, 1)
    assert psnr(guess, truth).tolist() == pytest.approx([20, 40], abs=1e-4)
    assert summary(guess, truth)["psnr"] == pytest.approx(30, abs=1e-4)  # not the PSNR of the mean error, which is 22.97
    assert summary(guess, truth)["mse"] == pytest.approx(0.00505, rel=1e-5)


@pytest.mark.parametrize(("channels", "side"), [(1, 28), (3, 32), (3, 7), (1, 64)])
def test_scores_equal_those_of_scikit_image(channels: int, side: int) -> None:
    guess, truth = random(3, channels, side, side, seed=1), random(3, channels, side, side, seed=2)
    guess[0] = 0.9 * truth[0] + 0.1 * guess[0]  # one that is close
    for number in range(3):
        a, b = (picture[number].permute(1, 2, 0).numpy().astype(np.float64) for picture in (guess, truth))
        expected = structural_similarity(a, b, channel_axis=-1, data_range=1.0)
        assert float(ssim(guess, truth)[number]) == pytest.approx(expected, abs=1e-12)  # float64 both
        assert float(psnr(guess, truth)[number]) == pytest.approx(peak_signal_noise_ratio(b, a, data_range=1.0), abs=1e-9)


def test_equal_pictures_are_capped_at_100_decibels() -> None:
    truth = random(2, 3, 8, 8)
    assert psnr(truth, truth).tolist() == [PSNR_CAP, PSNR_CAP] == [100, 100]
    assert ssim(truth, truth).tolist() == pytest.approx([1, 1])
    almost = torch.full((1, 1, 8, 8), 0.5).double()
    assert float(psnr(almost + 1e-6, almost)) == PSNR_CAP  # 120 dB without the cap


def test_a_guess_is_clamped_to_the_range_of_pictures_before_it_is_scored() -> None:
    truth = torch.tensor([0.0, 1.0]).view(1, 1, 1, 2).expand(1, 1, 8, 2).repeat(1, 1, 1, 4)
    beyond = truth * 9 - 4  # -4 where black, 5 where white
    assert float(psnr(beyond, truth)) == 100
    assert float(ssim(beyond, truth)) == pytest.approx(1)
    assert float(mse(torch.full_like(truth, 3.0), truth)) == 0.5  # white against half black


def test_similarity_below_its_window_of_7_pixels_is_not_a_number() -> None:
    assert ssim(random(2, 1, 6, 9), random(2, 1, 6, 9)).isnan().all()


# ---------------------------------------------------------------- labels and gradients


@pytest.mark.parametrize(
    ("guess", "truth", "share"),
    [
        ([3], [3], 1.0),
        ([3], [4], 0.0),
        ([1, 2, 3, 4], [4, 3, 2, 1], 1.0),  # the order does not count
        ([1, 1, 2, 2], [1, 2, 2, 2], 0.75),  # |2 - 1| + |2 - 3| = 2 of 8
        ([0, 0, 0, 0], [0, 1, 2, 3], 0.25),
    ],
)
def test_label_overlap_by_hand(guess: list[int], truth: list[int], share: float) -> None:
    assert label_overlap(torch.tensor(guess), torch.tensor(truth)) == share


def test_gradient_distances_by_hand() -> None:
    one = {"w": torch.tensor([[3.0, 0.0]]), "b": torch.tensor([0.0])}
    other = {"b": torch.tensor([4.0]), "w": torch.tensor([[3.0, 0.0]])}  # another order of the names does not matter
    found = gradient_distances(one, other)
    assert found["cosine"] == pytest.approx(1 - 9 / (3 * 5))
    assert found["relative_l2"] == pytest.approx(4 / 5)
    twice = gradient_distances({name: 2 * g for name, g in one.items()}, one)
    assert twice == {"cosine": pytest.approx(0), "relative_l2": pytest.approx(1)}
    assert gradient_distances({name: 0 * g for name, g in one.items()}, one) == {"cosine": 1, "relative_l2": 1}


# ---------------------------------------------------------------- baselines and verdict


def test_baselines_are_what_grey_and_noise_would_score() -> None:
    truth = torch.zeros(1, 1, 8, 8)
    found = baselines(truth, torch.Generator().manual_seed(0))
    assert found["grey"]["psnr"] == pytest.approx(10 * math.log10(4))  # (1/2)^2
    black = baselines(torch.zeros(1, 3, 64, 64), torch.Generator().manual_seed(0))
    assert black["noise"]["mse"] == pytest.approx(1 / 3, rel=0.02)  # E u^2 of 12288 uniform numbers: known to 0.8 %
    assert black == baselines(torch.zeros(1, 3, 64, 64), torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("gain", "similarity", "word"),
    [
        (8.0, 0.0, "recognisable"),
        (0.0, 0.6, "recognisable"),
        (7.9, 0.59, "partly recognisable"),
        (4.0, 0.0, "partly recognisable"),
        (0.0, 0.3, "partly recognisable"),
        (3.9, 0.29, "not recognisable"),
        (-2.0, math.nan, "not recognisable"),
        (9.0, math.nan, "recognisable"),
    ],
)
def test_the_verdict_on_one_picture_obeys_its_rule_at_the_border(gain: float, similarity: float, word: str) -> None:
    plain = (torch.tensor([11.0]), torch.tensor([0.1]))
    found = verdict((plain[0] + gain, torch.tensor([similarity])), plain)
    assert found["word"] == word
    assert found["rule"] == RULE
    assert "the best plain colour would have 11.0 dB and 0.10" in found["why"]


def test_similarity_counts_only_as_far_as_a_plain_colour_does_not_have_it_too() -> None:
    found = verdict((torch.tensor([11.0]), torch.tensor([0.7])), (torch.tensor([11.0]), torch.tensor([0.65])))
    assert found["word"] == "not recognisable"


@pytest.mark.parametrize("shade", [0.0, 0.5, 1.0])
def test_no_flat_answer_to_a_dark_picture_is_called_recognisable(shade: float) -> None:
    truth = torch.zeros(1, 1, 28, 28)
    truth[..., 10:18, 12:15] = 1.0  # a stroke on black: a black answer has a high SSIM
    answer = torch.full_like(truth, shade)
    assert verdict((psnr(answer, truth), ssim(answer, truth)), flat(truth))["word"] == "not recognisable"


@pytest.mark.parametrize(
    ("gains", "word", "counted"),
    [
        ([9.0, 9.0, 9.0], "recognisable", "3 of 3 pictures are recognisable, 0 partly"),
        ([9.0, 5.0, 0.0], "recognisable", "1 of 3 pictures are recognisable, 1 partly"),
        ([5.0, 0.0, 0.0], "partly recognisable", "0 of 3 pictures are recognisable, 1 partly"),
        ([0.0, 0.0, 0.0], "not recognisable", "0 of 3 pictures are recognisable, 0 partly"),
    ],
)
def test_a_batch_is_judged_by_its_clearest_picture(gains: list[float], word: str, counted: str) -> None:
    plain = (torch.full((3,), 11.0), torch.zeros(3))
    found = verdict((plain[0] + torch.tensor(gains), torch.zeros(3)), plain)
    assert found["word"] == word
    assert found["why"].startswith(counted)


# ---------------------------------------------------------------- pairing


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [1, 0, 3, 2], [1, 2, 0, 3], [2, 3, 1, 0], [3, 0, 1, 2]])
def test_pairing_undoes_a_permutation_also_one_that_is_not_its_own_inverse(order: list[int]) -> None:
    truth = random(4, 3, 8, 8)
    guess = truth[order] + 0.05 * random(4, 3, 8, 8, seed=1)
    found = pair(guess, truth)
    assert torch.equal(truth[order][found], truth)
    assert found.argsort().tolist() == order


def test_costs_are_the_pixel_errors_of_every_pair() -> None:
    guess, truth = torch.tensor([0.0, 0.5]).view(2, 1, 1, 1), torch.tensor([0.0, 1.0]).view(2, 1, 1, 1)
    assert costs(guess, truth).tolist() == [[0, 0.25], [1, 0.25]]


def test_pairing_minimises_the_sum_and_not_each_picture_by_itself() -> None:
    guess, truth = torch.tensor([0.4, 0.1]).view(2, 1, 1, 1), torch.tensor([0.3, 1.0]).view(2, 1, 1, 1)
    assert costs(guess, truth).tolist() == [pytest.approx([0.01, 0.04]), pytest.approx([0.36, 0.81])]  # both prefer the first guess
    assert pair(guess, truth).tolist() == [1, 0]  # 0.04 + 0.36 < 0.01 + 0.81


@pytest.mark.parametrize(("lean", "order"), [(0.0125, [1, 0]), (0.0135, [0, 1])])
def test_an_earlier_pairing_stays_until_another_is_5_percent_cheaper(lean: float, order: list[int]) -> None:
    # Truths 0 and 1, guesses 0.5 and 0.5 + lean: in order they cost 0.25 + (0.5 - lean)^2, crosswise 0.25 + (0.5 + lean)^2.
    guess, truth = torch.tensor([0.5, 0.5 + lean]).view(2, 1, 1, 1), torch.tensor([0.0, 1.0]).view(2, 1, 1, 1)
    assert pair(guess, truth).tolist() == [0, 1]
    assert pair(guess, truth, kept=torch.tensor([1, 0])).tolist() == order  # 0.4877 / 0.5127 = 0.951, 0.4867 / 0.5137 = 0.947
