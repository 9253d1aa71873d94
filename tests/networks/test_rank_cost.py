"""The measured directions of a whole gradient: every pixel value if possible, else as many as time and memory allow."""

import pytest

from leakage.networks.grammar import parse, unroll
from leakage.networks.rank_cost import BUDGET, MOST_DIRECTIONS, MOST_HELD, MOST_IN_BASIS, gradient_directions, gradient_seconds
from leakage.networks.templates import TEMPLATES


def directions(text: str, channels: int, side: int) -> int:
    return gradient_directions(unroll(parse(text), (channels, side, side), 10))


@pytest.mark.parametrize(("channels", "side"), [(1, 28), (3, 32)])
@pytest.mark.parametrize("name", ["R-GAP's net B", "LeNet (Zhu)", "CNN6", "CNN6-d"])
def test_every_pixel_value_of_a_small_picture_is_moved(name: str, channels: int, side: int) -> None:
    assert directions(TEMPLATES[name], channels, side) == channels * side * side


def test_of_large_pictures_so_many_random_directions_are_moved_as_can_be_held() -> None:
    pixels = 3 * 224 * 224
    assert directions("conv 3@4 /2", 3, 224) == MOST_IN_BASIS // pixels == 222
    assert directions("conv 3@4", 1, 64) == MOST_DIRECTIONS < 64 * 64


def test_a_network_with_too_many_numbers_is_not_measured() -> None:
    units = MOST_HELD // 3072 + 1
    assert directions(f"linear {units}", 3, 32) == 0
    assert directions(f"linear {units // 2}", 3, 32) > 0
    assert gradient_seconds(unroll(parse(f"linear {units}"), (3, 32, 32), 10)) == 0


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("side", [32, 64, 224])
def test_no_network_takes_much_longer_than_its_budget(name: str, side: int) -> None:
    assert gradient_seconds(unroll(parse(TEMPLATES[name]), (3, side, side), 10)) < 1.2 * BUDGET
