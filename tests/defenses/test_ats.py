"""ATS, operation by operation, compared with Pillow; and the update of its client."""

from itertools import product

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance
from small_problems import LABELS, observed, smooth
from torch import Tensor

from leakage.defenses.ats import ATS, OPERATIONS, POLICIES
from leakage.engine.core import Params, generator
from leakage.evaluation.metrics import gradient_distances
from leakage.spec.experiment import Part


def relative(update: Params, reference: Params) -> float:
    return gradient_distances(update, reference)["relative_l2"]


def levels(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, shape, dtype=np.uint8)


def picture(pixels: np.ndarray) -> Tensor:
    """(H, W) or (H, W, 3) as (C, H, W)."""
    return torch.from_numpy(pixels.copy()).reshape(*pixels.shape[:2], -1).permute(2, 0, 1) / 255


def pillow(image: Image.Image, operation: str, share: float) -> Image.Image:
    """What the policy's code does, `share` of its largest magnitude, with its sign."""
    if operation == "contrast":
        return ImageEnhance.Contrast(image).enhance(1 + share * 0.5)
    x, y = (share * 150 / 331 * side for side in image.size)
    shift = (1, 0, x, 0, 1, 0) if operation == "translateX" else (1, 0, 0, 0, 1, y)
    return image.transform(image.size, Image.Transform.AFFINE, shift, fillcolor=0)


@pytest.mark.parametrize("shape", [(32, 32, 3), (28, 28), (19, 31, 3)])
@pytest.mark.parametrize("operation", ["translateX", "translateY", "contrast"])
def test_an_operation_does_what_pillow_does(operation: str, shape: tuple[int, ...]) -> None:
    pixels = levels(*shape)
    for share in np.linspace(-1, 1, 19):
        expected = picture(np.asarray(pillow(Image.fromarray(pixels), operation, share)))
        found = OPERATIONS[operation](picture(pixels), share)
        assert float((found - expected).abs().max()) <= (1.001 / 255 if operation == "contrast" else 0)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_picture_goes_through_three_operations_each_one_way_or_the_other(policy: str) -> None:
    pixels, defense = levels(32, 32, 3), ATS(policy=policy)
    steps = {"3-1-7": [("translateX", 9), ("contrast", 6), ("translateY", 2)]}.get(
        policy, [("translateY", 3), ("contrast", 7), ("contrast", 7)]
    )
    possible = []
    for signs in product((1, -1), repeat=3):
        image = Image.fromarray(pixels)
        for sign, (operation, magnitude) in zip(signs, steps, strict=True):
            image = pillow(image, operation, sign * magnitude / 9)
        possible.append(picture(np.asarray(image)))
    met = set()
    for seed in range(60):
        (found,) = defense.transform(picture(pixels)[None], generator(seed))
        gaps = [float((found - one).abs().max()) for one in possible]
        assert min(gaps) < 3 / 255  # Pillow rounds after each step
        met.add(int(np.argmin(gaps)))
    assert len(met) == (8 if policy == "3-1-7" else 6) or len(met) == 8  # contrast up and down, and down and up, may look alike


def test_every_picture_has_a_policy_of_its_own_and_every_step_another_one() -> None:
    x = smooth(1, 3, 32).expand(30, -1, -1, -1)
    first, again, other = (ATS().transform(x, generator(1, "ats", step)) for step in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    middle = first[:, :, 8:24]  # rows that stay whatever comes in from above or below
    edges = [(one[:, :, :14], one[:, :, -14:]) for one in middle]  # one of them black, if a picture was shifted by 14 of 32 pixels
    shifted = sum(any(bool((edge == edge[:, :1, :1]).all()) for edge in pair) for pair in edges)  # contrast may have made it grey
    assert 5 < shifted < 25  # of 30, a half is expected


def test_a_client_with_ats_sends_the_gradient_of_the_changed_pictures() -> None:
    x = smooth(3)
    plain, seen = observed(x), observed(x, defenses=(Part(id="ats"),))
    shown = ATS().transform(x, generator(1, "defense", 0, "ats", 0))
    assert relative(seen.received.update, plain.replay.single(shown, LABELS)) == 0
    assert relative(seen.replay.single(shown, LABELS), seen.received.update) == 0  # a guess like it is right
    assert relative(seen.replay.single(x, LABELS), seen.received.update) > 0.1
