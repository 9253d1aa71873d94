"""Scores compared with scikit-image and values computed by hand; which guess belongs to which picture."""

from itertools import permutations

import numpy as np
import pytest
import torch
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from leakage.evaluation.baselines import summary
from leakage.evaluation.metrics import (
    PSNR_CAP,
    gradient_distances,
    label_overlap,
    moments,
    mse,
    psnr,
    psnr_adadefense,
    registered_psnr,
    rmse255,
    similarity,
    ssim,
)
from leakage.evaluation.pairing import costs, pair


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
    found = summary({"psnr": psnr(guess, truth), "mse": mse(guess, truth)})
    assert found["psnr"] == pytest.approx(30, abs=1e-4)  # not the PSNR of the mean error, which is 22.97
    assert found["mse"] == pytest.approx(0.00505, rel=1e-5)


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


def test_one_picture_is_compared_with_many_at_once_as_with_each_alone() -> None:
    one, many = random(1, 3, 9, 12, seed=1), random(5, 3, 9, 12, seed=2)
    a, b = moments(one), moments(many)
    assert a is not None
    assert b is not None
    assert torch.allclose(similarity(a, b), ssim(one.expand_as(many), many), rtol=0, atol=1e-14)


def test_similarity_below_its_window_of_7_pixels_is_not_a_number() -> None:
    assert ssim(random(2, 1, 6, 9), random(2, 1, 6, 9)).isnan().all()


# ---------------------------------------------------------------- registration


@pytest.mark.parametrize("shift", [(0, 0), (3, 5), (-4, 2), (8, -7)])
def test_a_shifted_copy_is_registered_exactly(shift: tuple[int, int]) -> None:
    truth = random(2, 3, 16, 15)
    guess = truth.roll(shift, (2, 3))
    assert registered_psnr(guess, truth).tolist() == [100, 100]
    assert shift == (0, 0) or float(psnr(guess, truth).max()) < 12


def test_registration_finds_the_best_of_all_shifts_as_brute_force_does() -> None:
    truth, guess = random(1, 2, 6, 5), random(1, 2, 6, 5, seed=1)
    every = [float(psnr(guess.roll((row, column), (2, 3)), truth)) for row in range(6) for column in range(5)]
    assert float(registered_psnr(guess, truth)) == pytest.approx(max(every), abs=1e-9)
    assert max(every) > float(psnr(guess, truth)) + 0.5


def test_each_picture_of_a_batch_has_its_own_shift() -> None:
    truth = random(2, 1, 12, 12)
    guess = torch.stack([truth[0].roll(5, 1), 0.5 * truth[1] + 0.2])
    found = registered_psnr(guess, truth)
    assert float(found[0]) == 100
    assert float(found[1]) == pytest.approx(float(psnr(guess, truth)[1]))


# ---------------------------------------------------------------- AdaDefense's table


def test_adadefenses_row_converts_to_its_own_psnr_and_to_the_true_one() -> None:
    black = torch.zeros(1, 1, 8, 8).double()
    assert float(psnr_adadefense(143.19)) == pytest.approx(26.57, abs=0.005)  # as printed
    assert float(psnr(black + 143.19 / 255, black)) == pytest.approx(5.01, abs=0.005)
    assert float(psnr_adadefense(255)) == pytest.approx(24.07, abs=0.005)  # black against white, whose true PSNR is ...
    assert float(psnr(black + 1, black)) == 0


def test_the_way_back_from_grey_levels_is_the_psnr_of_the_error() -> None:
    truth = torch.full((1, 1, 8, 8), 0.5).double()
    error = mse(truth + 0.1, truth)
    assert rmse255(error).tolist() == pytest.approx([25.5])
    assert (20 * (255 / rmse255(error)).log10()).tolist() == pytest.approx(psnr(truth + 0.1, truth).tolist())


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


# ---------------------------------------------------------------- pairing


@pytest.mark.parametrize("order", list(permutations(range(4))), ids=str)
def test_pairing_undoes_every_permutation_also_those_that_are_not_their_own_inverse(order: tuple[int, ...]) -> None:
    truth = random(4, 3, 8, 8)
    guess = truth[list(order)] + 0.05 * random(4, 3, 8, 8, seed=1)
    found = pair(guess, truth)
    assert torch.equal(truth[list(order)][found], truth)
    assert tuple(found.argsort().tolist()) == order


def test_costs_are_the_pixel_errors_of_every_pair() -> None:
    guess, truth = torch.tensor([0.0, 0.5]).view(2, 1, 1, 1), torch.tensor([0.0, 1.0]).view(2, 1, 1, 1)
    assert costs(guess, truth).tolist() == [[0, 0.25], [1, 0.25]]


def test_pairing_minimises_the_sum_and_not_each_picture_by_itself() -> None:
    guess, truth = torch.tensor([0.4, 0.1]).view(2, 1, 1, 1), torch.tensor([0.3, 1.0]).view(2, 1, 1, 1)
    assert costs(guess, truth).tolist() == [pytest.approx([0.01, 0.04]), pytest.approx([0.36, 0.81])]  # both prefer the first guess
    assert pair(guess, truth).tolist() == [1, 0]  # 0.04 + 0.36 < 0.01 + 0.81


def test_a_place_without_a_guess_takes_the_picture_that_is_left() -> None:
    guess, truth = torch.tensor([0.38, 0.5]).view(2, 1, 1, 1), torch.tensor([0.0, 0.4]).view(2, 1, 1, 1)  # the second guess is grey
    assert pair(guess, truth).tolist() == [0, 1]  # 0.38^2 + 0.1^2 < 0.5^2 + 0.02^2
    assert pair(guess, truth, filled=torch.tensor([True, False])).tolist() == [1, 0]


@pytest.mark.parametrize(("lean", "order"), [(0.0125, [1, 0]), (0.0135, [0, 1])])
def test_an_earlier_pairing_stays_until_another_is_5_percent_cheaper(lean: float, order: list[int]) -> None:
    # Truths 0 and 1, guesses 0.5 and 0.5 + lean: in order they cost 0.25 + (0.5 - lean)^2, crosswise 0.25 + (0.5 + lean)^2.
    guess, truth = torch.tensor([0.5, 0.5 + lean]).view(2, 1, 1, 1), torch.tensor([0.0, 1.0]).view(2, 1, 1, 1)
    assert pair(guess, truth).tolist() == [0, 1]
    assert pair(guess, truth, kept=torch.tensor([1, 0])).tolist() == order  # 0.4877 / 0.5127 = 0.951, 0.4867 / 0.5137 = 0.947
