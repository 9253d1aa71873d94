"""Photographs of 24 and 48 megapixels become the same small picture as a smaller copy, in bounded memory."""

import subprocess
import sys
from io import BytesIO

import numpy as np
import pytest
from PIL import ExifTags, Image

from leakage.data.decoder import BAND, DRAFT_SIDE, KEPT_SIDE, decode
from leakage.settings import ROOT

CORNERS = [(200, 30, 30), (30, 200, 30), (30, 30, 200), (220, 220, 40)]  # top left, top right, bottom left, bottom right
LEFT_SIDE_DOWN = 6  # EXIF: to be turned clockwise by 90 degrees
UNDER = """
import resource, sys
from leakage.data.decoder import decode
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), int(sys.argv[1])))
sys.stdout.buffer.write(decode(sys.stdin.buffer.read(), "photo"))
"""


def corners(width: int, height: int) -> Image.Image:
    """Four rectangles of one color each."""
    small = Image.new("RGB", (2, 2))
    small.putdata(CORNERS)
    return small.resize((width, height), Image.Resampling.NEAREST)


def encoded(image: Image.Image, kind: str, **how: object) -> bytes:
    file = BytesIO()
    image.save(file, kind, **how)
    return file.getvalue()


def kept(data: bytes) -> np.ndarray:
    with Image.open(BytesIO(data)) as image:
        assert image.size == (KEPT_SIDE, KEPT_SIDE)
        return np.array(image).astype(int)


def middles(pixels: np.ndarray) -> np.ndarray:
    """The color in the middle of each corner: (4, 3)."""
    near, far = KEPT_SIDE // 4, 3 * KEPT_SIDE // 4
    return np.stack([pixels[near, near], pixels[near, far], pixels[far, near], pixels[far, far]])


def decoded_within(data: bytes, megabytes: int) -> bytes:
    """Return the output of a process with a limited address space."""
    command = [sys.executable, "-c", UNDER, str(megabytes * 10**6)]
    done = subprocess.run(command, input=data, cwd=ROOT, capture_output=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr.decode()[-500:]
    return done.stdout


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no limit of the address space")
@pytest.mark.parametrize(("width", "height"), [(5712, 4284), (8064, 6048)], ids=["24 megapixels", "48 megapixels"])
def test_a_jpeg_of_a_phone_is_decoded_at_a_fraction_of_its_size(width: int, height: int) -> None:
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = LEFT_SIDE_DOWN
    data = encoded(corners(width, height), "JPEG", quality=90, exif=exif)
    answer = kept(decoded_within(data, 96))  # four bytes for each pixel would be 98 or 195 MB
    turned = [CORNERS[2], CORNERS[0], CORNERS[3], CORNERS[1]]
    np.testing.assert_allclose(middles(answer), turned, atol=4)  # JPEG keeps a color within a few numbers


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no limit of the address space")
def test_a_png_of_48_megapixels_needs_no_second_picture_of_its_size() -> None:
    data = encoded(corners(8064, 6048), "PNG", compress_level=1)
    answer = kept(decoded_within(data, 320))  # 195 MB as decoded; twice that would be 390
    np.testing.assert_array_equal(middles(answer), CORNERS)


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "LA", "1", "I;16"])
def test_a_large_picture_becomes_the_mean_over_squares_of_its_pixels(mode: str) -> None:
    side = 2 * DRAFT_SIDE
    white = 65535 if mode == "I;16" else 255
    columns = np.tile(np.array([0, white], np.uint16 if mode == "I;16" else np.uint8), (side, side // 2))
    picture = Image.fromarray(columns) if mode == "I;16" else Image.fromarray(columns).convert(mode)
    assert side * side >= BAND  # one band at least
    pixels = kept(decode(encoded(picture, "PNG", compress_level=1), "stripes.png"))
    np.testing.assert_allclose(pixels, 255 / 2, atol=1)  # of black and white columns


def test_transparent_pixels_count_as_white_in_the_mean() -> None:
    side = 2 * DRAFT_SIDE
    columns = np.zeros((side, side, 4), np.uint8)  # black, and every other column transparent
    columns[:, ::2, 3] = 255
    pixels = kept(decode(encoded(Image.fromarray(columns), "PNG", compress_level=1), "stripes.png"))
    np.testing.assert_allclose(pixels, 255 / 2, atol=1)


@pytest.mark.parametrize("side", [DRAFT_SIDE, 2 * DRAFT_SIDE - 1, 2 * DRAFT_SIDE + 1, 3 * DRAFT_SIDE + 2])
def test_sides_that_no_factor_divides_lose_less_than_a_pixel_at_their_edge(side: int) -> None:
    ramp = np.tile(np.linspace(0, 255, side), (side, 1)).round().astype(np.uint8)
    pixels = kept(decode(encoded(Image.fromarray(ramp), "PNG", compress_level=1), "ramp.png"))
    wanted = (np.arange(KEPT_SIDE) + 0.5) / KEPT_SIDE * 255
    np.testing.assert_allclose(pixels, np.broadcast_to(wanted[:, None], pixels.shape), atol=1.5)
