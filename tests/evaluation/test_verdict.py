"""The verdict: its rule at the borders, and its agreement with what people see."""

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from small_problems import baselines_of, of_picture

from leakage.evaluation.baselines import Baselines, measure
from leakage.evaluation.pairing import pair
from leakage.evaluation.perceptual import Perceptual
from leakage.evaluation.verdict import DISTANCES, MEANING, RULE, Reference, clarity, verdict, way
from leakage.spec.experiment import Experiment, Picture
from leakage.spec.words import CUT_SHORT, NOT_SHOWN, PARTLY, RECOGNIZABLE, SINGLED_OUT
from leakage.workers.private_pictures import load

NAMES = ("astronaut", "chelsea", "coffee", "retina", "face-0", "digit-3")


def scores(ssim: list[float], lpips: list[float], psnr: float = 10.0, **ranks: list[float]) -> dict[str, torch.Tensor]:
    found = {"psnr": [psnr] * len(ssim), "ssim": ssim, "lpips": lpips, **ranks}
    return {name: torch.tensor(value).double() for name, value in found.items()}


def held(count: int = 1, *, others: float = -math.inf, **firsts: list[str]) -> Reference:
    """Best baselines 10 dB, 0.2 and 0.5: of the way 15 % is SSIM 0.32 or 10.71 dB, 30 % is 0.44, half is 0.6, LPIPS 0.25 or 13.01 dB.

    `others`: SSIM of the nearest other picture of the line-up.
    """
    best = {name: torch.full((count,), value).double() for name, value in (("psnr", 10.0), ("ssim", 0.2), ("lpips", 0.5))}
    beside = {"psnr": torch.full((count,), -math.inf).double(), "ssim": torch.full((count,), others).double()}
    names = {"psnr": ["grey"] * count, "ssim": ["black"] * count, "lpips": ["noise"] * count}
    return Reference(100, best, names, firsts, beside)


NAN = math.nan


@pytest.mark.parametrize(
    ("ssim", "lpips", "ranks", "word"),
    [
        (0.61, 0.5, (1, 1, 1), RECOGNIZABLE),
        (0.45, 0.24, (1, 1, 1), RECOGNIZABLE),  # half of the way by LPIPS, 30 % by SSIM
        (0.43, 0.24, (1, 1, 1), SINGLED_OUT),
        (0.2, 0.01, (1, 1, 1), NOT_SHOWN),  # LPIPS alone calls any natural picture near
        (0.61, 0.24, (1, 9, 1), RECOGNIZABLE),  # two of three
        (0.61, 0.24, (9, 9, 9), RECOGNIZABLE),  # so near that the line-up says nothing against it
        (0.59, 0.24, (2, 2, 2), NOT_SHOWN),
        (0.59, 0.26, (1, 1, 1), SINGLED_OUT),
        (0.33, 0.43, (1, 1, 1), SINGLED_OUT),  # a blob of the right colour: nothing to see, and yet it can be told from all others
        (0.31, 0.43, (1, 1, 1), NOT_SHOWN),  # first by all, and as near as randomness comes
        (-0.5, 0.9, (1, 1, 1), NOT_SHOWN),
        (0.59, 0.5, (40, 1, 40), NOT_SHOWN),  # first by one of three
        (0.61, NAN, (1, 1, NAN), RECOGNIZABLE),
        (0.33, NAN, (1, 3, NAN), SINGLED_OUT),  # one of two
        (0.31, NAN, (1, 3, NAN), NOT_SHOWN),
        (-0.5, 0.9, (40, 1, NAN), NOT_SHOWN),  # noise that is first by one of two
        (NAN, NAN, (1, NAN, NAN), NOT_SHOWN),
    ],
)
def test_the_verdict_on_one_picture_obeys_its_rule_at_the_border(ssim: float, lpips: float, ranks: tuple[float, ...], word: str) -> None:
    found = verdict(scores([ssim], [lpips], **{name: [rank] for name, rank in zip(DISTANCES, ranks, strict=True)}), held())
    assert found["word"] == word
    assert (found["rule"], found["meaning"]) == (RULE, MEANING[word])
    for how, rank in zip(DISTANCES.values(), ranks, strict=True):
        assert (f"{rank:g} {how}" in found["why"]) == (not math.isnan(rank))
    assert ("no SSIM: its window needs 7 pixels" in found["why"]) == math.isnan(ssim)
    assert ("LPIPS 0" in found["why"]) == (not math.isnan(lpips))


@pytest.mark.parametrize(
    ("psnr", "ssim", "lpips", "rank", "word"),
    [
        (10.70, 0.2, 0.5, 1, NOT_SHOWN),  # 1 - 10^-0.07 = 0.149
        (10.71, 0.2, 0.5, 1, SINGLED_OUT),  # 1 - 10^-0.071 = 0.151
        (11.0, 0.2, 0.24, 1, SINGLED_OUT),
        (11.6, 0.2, 0.24, 1, RECOGNIZABLE),  # 31 %
        (13.0, 0.2, 0.5, 2, NOT_SHOWN),  # 49.9 %, and not first
        (13.1, 0.2, 0.5, 2, PARTLY),  # 51 %
        (13.1, NAN, NAN, 2, PARTLY),  # below the window of SSIM
        (13.1, NAN, NAN, 1, SINGLED_OUT),
    ],
)
def test_psnr_counts_against_its_baselines(psnr: float, ssim: float, lpips: float, rank: float, word: str) -> None:
    assert verdict(scores([ssim], [lpips], psnr, rank_pixel=[rank]), held())["word"] == word


@pytest.mark.parametrize(
    ("ranks", "void", "word"),
    [
        ((1, 9, 9), ("grey", "", ""), NOT_SHOWN),  # grey is as near by pixels: that says nothing
        ((9, 1, 9), ("grey", "", ""), SINGLED_OUT),  # one of two that count
        ((1, 9, 9), ("", "grey", "grey"), SINGLED_OUT),  # the only one
        ((1, 1, 9), ("grey", "white", ""), NOT_SHOWN),
        ((1, 1, 1), ("grey", "white", "noise"), NOT_SHOWN),
    ],
)
def test_a_distance_by_which_a_picture_that_knows_nothing_is_first_does_not_count(
    ranks: tuple[float, ...], void: tuple[str, ...], word: str
) -> None:
    reference = held(**{name: [first] for name, first in zip(DISTANCES, void, strict=True)})
    found = verdict(scores([0.33], [0.5], **{name: [rank] for name, rank in zip(DISTANCES, ranks, strict=True)}), reference)
    assert found["word"] == word
    for how, first in zip(DISTANCES.values(), void, strict=True):
        assert not first or f"{how} {first} is first too" in found["why"]


def test_where_no_distance_counts_only_an_unmistakable_picture_gets_a_word_and_the_reason_is_told() -> None:
    reference = held(**{name: ["grey"] for name in DISTANCES})
    ranks = {name: [1.0] for name in DISTANCES}
    found = verdict(scores([0.61], [0.5], **ranks), reference)
    assert found["word"] == RECOGNIZABLE
    assert found["why"].startswith(
        "The attacker's picture: no place in the line-up of 100 (by pixels grey is first too, by SSIM grey is first too"
    )
    assert "so it says nothing)" in found["why"]
    assert found["why"].endswith(
        " It is so much nearer to the private picture than all the others in the line-up that this needs no first place."
    )
    assert verdict(scores([0.59], [0.5], **ranks), reference)["word"] == NOT_SHOWN


def test_small_pictures_are_ranked_by_ssim_which_is_no_sign_of_a_leak() -> None:
    small = replace(held(rank_pixel=["grey"]), ssim_counts=False)
    ranks = {"rank_pixel": [1.0], "rank_ssim": [1.0]}
    copy, near = scores([1.0], [NAN], psnr=100.0, **ranks), scores([0.9], [NAN], psnr=10.8, **ranks)
    assert small.rank(copy).tolist() == small.rank(near).tolist() == [1]
    assert verdict(copy, small)["word"] == RECOGNIZABLE
    assert (small.first(near).tolist(), verdict(near, small)["word"]) == ([False], NOT_SHOWN)
    assert "by pixels grey is first too, 1 by SSIM, which luck reaches in pictures so small" in verdict(near, small)["why"]


def test_of_a_batch_a_single_first_place_counts_only_where_the_guess_is_nearer_than_the_others_of_the_line_up() -> None:
    """SSIM 0.4: 25 % of the way from 0.2, 20 % from another picture at 0.25, 14 % from one at 0.3."""

    def word(count: int, first: int, others: float) -> str:
        ranks = {name: [1.0] * first + [40.0] * (count - first) for name in ("rank_pixel", "rank_ssim")}
        found = verdict(scores([0.4] * count, [NAN] * count, **ranks), held(count, others=others))
        assert set(found["each"][first:]) <= {NOT_SHOWN}
        return str(found["word"])

    assert word(1, 1, 0.3) == SINGLED_OUT  # alone there is no other that it could fit
    assert (word(8, 1, 0.25), word(8, 1, 0.3)) == (SINGLED_OUT, NOT_SHOWN)
    assert word(8, 2, 0.3) == SINGLED_OUT  # two of eight by luck are rarer than one in a hundred batches
    assert (word(9, 2, 0.3), word(9, 3, 0.3)) == (NOT_SHOWN, SINGLED_OUT)  # a quarter
    assert word(2, 1, 0.3) == NOT_SHOWN


def test_what_was_cut_short_counts_for_what_it_shows_and_not_for_what_it_does_not() -> None:
    nothing, clear = ({name: [rank] for name in DISTANCES} for rank in (50.0, 1.0))
    assert verdict(scores([0.2], [0.5], **nothing), held())["word"] == NOT_SHOWN
    cut = verdict(scores([0.2], [0.5], **nothing), held(), cut_short=True)
    assert (cut["word"], cut["meaning"]) == (CUT_SHORT, MEANING[CUT_SHORT])
    assert verdict(scores([0.61], [0.5], **clear), held(), cut_short=True)["word"] == RECOGNIZABLE


def test_the_way_is_0_at_the_best_baseline_and_1_at_an_exact_copy() -> None:
    best = {"ssim": torch.tensor([0.9, 0.9]).double(), "lpips": torch.tensor([0.1, 0.1]).double()}
    assert way(scores([0.9, 1.0], [0.1, 0.0]), best).tolist() == pytest.approx([0, 1])
    assert way(scores([0.95, 0.9], [0.2, 0.05]), best).tolist() == pytest.approx([0.5, 0.5])  # the larger of both


@pytest.mark.parametrize(
    ("similar", "word", "counted"),
    [
        ([0.9, 0.9, 0.9], RECOGNIZABLE, "Of 3 pictures 3 recognizable. "),
        ([0.9, 0.4, 0.0], RECOGNIZABLE, "Of 3 pictures 1 recognizable, 1 singled out. "),
        ([0.4, 0.4, 0.0], SINGLED_OUT, "Of 3 pictures 2 singled out. "),
    ],
)
def test_a_batch_is_judged_by_its_clearest_picture(similar: list[float], word: str, counted: str) -> None:
    found = verdict(scores(similar[::-1], [NAN] * 3, rank_pixel=[1.0] * 3, rank_ssim=[1.0] * 3), held(3))
    assert found["word"] == word
    assert found["why"].startswith(counted)
    assert f"SSIM {max(similar):.2f}" in found["why"]
    none = verdict(scores([0.2] * 3, [NAN] * 3, rank_pixel=[50.0] * 3), held(3))
    assert none["why"].startswith("Of 3 pictures none shown. ")


def test_the_key_of_the_clearest_picture_orders_as_the_weights_3_2_1_did() -> None:
    """All words, ways in twentieths and places in fiftieths: neighbors in the order of the keys are in that of the weighted sum."""
    pictures = list(itertools.product(range(4), [step / 20 for step in range(-20, 21)], [place / 50 for place in range(51)]))
    weighed = {one: 3 - one[0] + one[1] / 4 - one[2] / 8 for one in pictures}
    ordered = sorted(pictures, key=lambda one: clarity(*one))
    for lower, higher in itertools.pairwise(ordered):
        assert weighed[lower] <= weighed[higher] + 1e-12
        if clarity(*higher)[1] - clarity(*lower)[1] > 1e-12 or higher[0] != lower[0]:
            assert weighed[lower] < weighed[higher]


def test_where_rank_and_verdict_seem_to_disagree_one_sentence_says_why() -> None:
    def told(found: dict[str, Any]) -> tuple[str, bool, bool]:
        return found["word"], "Rank 1 alone singles nobody out" in found["why"], "is the median of all pictures" in found["why"]

    assert told(verdict(scores([0.25], [NAN], rank_pixel=[1.0]), held())) == (NOT_SHOWN, True, False)
    assert told(verdict(scores([0.1], [NAN], rank_pixel=[1.0]), held())) == (NOT_SHOWN, True, False)
    assert told(verdict(scores([0.25], [NAN], rank_pixel=[1.0], rank_ssim=[3.0]), held())) == (NOT_SHOWN, False, False)  # rank 2
    assert told(verdict(scores([0.9], [NAN], rank_pixel=[1.0]), held())) == (RECOGNIZABLE, False, False)
    batch = verdict(scores([0.9, 0.1, 0.1], [NAN] * 3, rank_pixel=[1.0, 40.0, 60.0]), held(3))
    assert told(batch) == (RECOGNIZABLE, False, True)
    assert " Rank 40 is the median" in batch["why"]


def test_of_a_picture_of_one_colour_nothing_can_be_shown() -> None:
    """Its own mean colour is an exact copy, but for rounding: nothing is left that a guess could show."""
    best = {"psnr": torch.full((1,), 100.0), "ssim": torch.ones(1) - 1e-7, "lpips": torch.full((1,), 1e-7)}
    others = {"psnr": torch.tensor([20.0]), "ssim": torch.tensor([0.5])}
    assert math.isnan(float(way(scores([1.0], [0.0]), best)))
    copy = scores([1.0], [0.0], 100.0, rank_pixel=[1.0])
    assert verdict(copy, Reference(100, best, {}, {}, others))["word"] == NOT_SHOWN


def test_a_verdict_names_the_best_baseline() -> None:
    told = verdict(scores([0.9], [0.1], rank_pixel=[1.0]), held())["why"]
    assert (
        "PSNR 10.0 dB (best baseline 10.0 dB, grey), SSIM 0.90 (best baseline 0.20, black), LPIPS 0.10 (best baseline 0.50, noise)" in told
    )


# ---------------------------------------------------------------- what one sees


@pytest.fixture(scope="module")
def gallery() -> tuple[torch.Tensor, Baselines]:
    experiment = Experiment(pictures=tuple(Picture(id=id) for id in NAMES))
    x, y = load(experiment, {})
    return x, baselines_of(experiment, x, y)


def words(guess: torch.Tensor, x: torch.Tensor, held: Baselines, *, lpips: bool) -> list[str]:
    """The verdict on each picture alone."""
    found = measure(guess.clamp(0, 1), x, held.lineup, held.perceptual if lpips else Perceptual("", "off"))
    all_of = held.reference
    best = dict(all_of.best) if lpips else {**all_of.best, "lpips": torch.full((len(x),), torch.nan)}
    words = []
    for n in range(len(x)):
        words.append(verdict({k: v[n : n + 1] for k, v in found.items()}, of_picture(replace(all_of, best=best), n))["word"])
    return words


def noise(x: torch.Tensor) -> torch.Tensor:
    return torch.randn(x.shape, generator=torch.Generator().manual_seed(0))


def blurred(x: torch.Tensor, size: int, sigma: float) -> torch.Tensor:
    from torchvision.transforms.functional import gaussian_blur  # takes seconds, so not while tests are only listed

    return gaussian_blur(x, [size, size], [sigma, sigma])


@pytest.mark.parametrize("lpips", [False, True])
@pytest.mark.long
def test_exact_and_lightly_noised_or_blurred_copies_are_recognizable(gallery: tuple[torch.Tensor, Baselines], lpips: bool) -> None:
    x, held = gallery
    for guess in (x, x + 0.04 * noise(x), blurred(x, 7, 0.7), blurred(x, 7, 1.0)):
        assert words(guess, x, held, lpips=lpips) == ["recognizable"] * len(NAMES)


@pytest.mark.parametrize("lpips", [False, True])
@pytest.mark.long
def test_a_portrait_under_heavy_noise_or_blur_is_singled_out(gallery: tuple[torch.Tensor, Baselines], lpips: bool) -> None:
    x, held = gallery
    for guess in (x + 0.4 * noise(x), blurred(x, 19, 3.0)):
        assert words(guess, x, held, lpips=lpips)[0] == SINGLED_OUT
    assert "recognizable" not in words(x + 0.4 * noise(x), x, held, lpips=lpips)


@pytest.mark.parametrize("lpips", [False, True])
@pytest.mark.long
def test_what_shows_nothing_of_the_picture_is_not_shown(gallery: tuple[torch.Tensor, Baselines], lpips: bool) -> None:
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
        assert words(guess, x, held, lpips=lpips) == ["not shown by this attack"] * len(NAMES)


@pytest.mark.parametrize("lpips", [False, True])
@pytest.mark.long
def test_another_picture_of_the_kind_is_never_recognizable_and_anything_else_once_in_twenty_times_at_most(
    gallery: tuple[torch.Tensor, Baselines], lpips: bool
) -> None:
    x, held = gallery
    beside = [row.nonzero()[:, 0] for row in held.lineup.competitors]
    others = [torch.stack([held.lineup.others[row[place]] for row in beside]) for place in (0, 30, 60, 90)]
    found = [word for guess in others for word in words(guess, x, held, lpips=lpips)]
    assert found.count("recognizable") == 0
    assert len(found) - found.count(NOT_SHOWN) <= len(found) / 20  # one face of eleven resembles another


def test_a_blob_of_the_right_colours_is_at_most_partly_recognizable(gallery: tuple[torch.Tensor, Baselines]) -> None:
    x, held = gallery
    blob = blurred(x, 31, 8.0)
    assert "recognizable" not in words(blob, x, held, lpips=True)


@pytest.mark.parametrize(("kind", "channels"), [("scan", 3), ("digit", 1)])
@pytest.mark.long
def test_noise_that_is_held_against_the_picture_it_fits_best_singles_nobody_out(kind: str, channels: int) -> None:
    pictures = tuple(Picture(id=f"{kind}-{number}") for number in range(8))
    experiment = Experiment(pictures=pictures, channels=channels)
    x, y = load(experiment, {})
    held, rng, found = baselines_of(experiment, x, y), torch.Generator().manual_seed(11), list[str]()
    for _ in range(12):
        guess = torch.rand(x.shape, generator=rng)
        found += words(guess[pair(guess, x)], x, held, lpips=False)
    assert set(found) == {NOT_SHOWN}  # and never "partly"
