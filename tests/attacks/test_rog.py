"""ROG searches a small picture, which it enlarges."""

import pytest
import torch
from small_problems import moments, observed, smooth

from leakage.attacks.rog import enlarged
from leakage.engine.core import generator
from leakage.evaluation.metrics import psnr
from leakage.spec.experiment import Part


@pytest.mark.parametrize(("factor", "side"), [(1, 8), (2, 4), (3, 3), (16, 1)])
def test_the_picture_searched_is_so_many_times_smaller_rounded_up(factor: int, side: int) -> None:
    first = moments(Part(id="rog", fields={"factor": factor, "steps": 1}), observed(smooth()))[0].x
    small = torch.rand((1, 1, 1, side, side), generator=generator(1, "attack"))
    torch.testing.assert_close(first, enlarged(small, (8, 8))[0])


def test_enlarging_by_one_changes_nothing() -> None:
    x = torch.rand((2, 1, 3, 5, 5), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(enlarged(x, (5, 5)), x)


def test_a_picture_that_can_be_enlarged_is_found_and_stays_between_black_and_white_when_small() -> None:
    x = enlarged(smooth(side=4)[None], (8, 8))[0]
    run = moments(Part(id="rog", fields={"steps": 400}), observed(x))
    assert float(psnr(run[-1].x, x)) >= 30 > float(psnr(run[0].x, x)) + 10
