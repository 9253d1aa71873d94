"""Attacks with a generator on real pictures: GRNN and CI-Net on photographs; GGL and GIFD on digits new to the generator."""

import pytest
import torch
from small_problems import altered, moments
from torch import Tensor

from leakage.data.datasets import datasets
from leakage.engine.core import Observation, generator
from leakage.engine.whole_distance import flatten
from leakage.evaluation.lineup import Origin, draw, pixel_ranks
from leakage.evaluation.metrics import psnr
from leakage.spec.experiment import Assumptions, Experiment, Part
from leakage.workers.adapter import observe

pytestmark = pytest.mark.slow
DIGITS = Experiment(size=28, channels=1, assume=Assumptions(labels=True))


def picture(source: str, number: int) -> tuple[Tensor, Tensor]:
    rows = datasets()[source].rows()
    x = torch.from_numpy(rows.pixels[number].copy()).permute(2, 0, 1)[None].float() / 255
    return x, torch.tensor([int(rows.labels[number])])


def behind_noise(x: Tensor, y: Tensor, share: float) -> tuple[Observation, float]:
    """What the server holds under noise of this share of the gradient's root mean square, and how strong that noise is."""
    size = share * float(flatten(observe(DIGITS, x, y).as_gradient()).square().mean().sqrt())
    return observe(DIGITS.model_copy(update={"defenses": (Part(id="gaussian_noise", fields={"scale": size}),)}), x, y), size


@pytest.mark.parametrize("number", [0, 4])
def test_grnn_knows_the_label_after_200_steps_and_shows_the_picture_after_1000(number: int) -> None:
    x, y = picture("cifar10", number)
    run = moments(Part(id="grnn", fields={"steps": 1000}), observe(Experiment(), x, y))
    assert {int(moment.y.argmax()) for moment in run[199:]} == {int(y)}
    assert float(psnr(run[-1].x, x)) > 20


@pytest.mark.parametrize("number", [0, 4])
def test_ci_net_shows_the_picture_after_300_steps(number: int) -> None:
    x, y = picture("cifar10", number)
    answer = moments(Part(id="ci_net", fields={"steps": 300}), observe(Experiment(), x, y))[-1]
    assert float(psnr(answer.x, x)) > 25  # measured 29 to 30, where GRNN has 19 to 20 and a grey picture 14 to 15


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_the_stage_that_the_rule_keeps_is_within_a_decibel_of_the_best_in_four_of_five(share: float) -> None:
    within = 0
    for number in range(5):
        x, y = picture("mnist", number)
        seen, noise = behind_noise(x, y, share)
        last = moments(Part(id="gifd", fields={"noise": noise}), seen)[-1]
        stages = [float(psnr(guess.clamp(0, 1), x)) for guess in last.views.values()][1:]
        within += float(psnr(last.x.clamp(0, 1), x)) >= max(stages) - 1
    assert within >= 4


def test_ggl_picks_a_digit_out_of_a_hundred_and_from_a_shuffled_gradient_it_does_not() -> None:
    first = {False: 0, True: 0}
    for number in range(8):
        x, y = picture("mnist", number)
        seen, _ = behind_noise(x, y, 0.3)
        lineup = draw([Origin("mnist", str(number))], x, y, seed=1)
        rng = generator(number, "shuffle")
        mixed = {name: g.flatten()[torch.randperm(g.numel(), generator=rng)].view_as(g) for name, g in seen.received.update.items()}
        for shuffled, one in ((False, seen), (True, altered(seen, update=mixed))):
            guess = moments(Part(id="ggl"), one)[-1].x.clamp(0, 1)
            first[shuffled] += float(pixel_ranks(guess, x, lineup)) == 1
    assert first[False] >= 5
    assert first[True] <= 1  # at random 8 in 100
