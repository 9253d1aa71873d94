"""The gallery, accepted uploads and their pictures, thumbnails, contact sheets, and an experiment's tensors."""

import base64
import struct
import zlib
from io import BytesIO
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from leakage.data import images
from leakage.data.decoder import decode
from leakage.data.images import GALLERY_CLASSES, Item, PictureError, find, gallery, read, sheet, thumbnail, tiles
from leakage.spec.experiment import SIZES, Experiment, Picture
from leakage.workers.private_pictures import load

RED, WHITE, BLACK = (255, 0, 0), (255, 255, 255), (0, 0, 0)


def encoded(image: Image.Image, kind: str = "PNG", **how: Any) -> bytes:
    file = BytesIO()
    image.save(file, kind, **how)
    return file.getvalue()


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_by_hand(width: int, height: int, pixels: bytes) -> bytes:
    """A black-and-white PNG of one bit per pixel."""
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")


def plain(color: tuple[int, ...] = RED, size: tuple[int, int] = (16, 16), mode: str = "RGB") -> Image.Image:
    return Image.new(mode, size, color)


def kept(data: bytes) -> np.ndarray:
    """The pixels of an upload after the check."""
    with Image.open(BytesIO(decode(data, "upload"))) as image:
        assert image.mode == "RGB"
        return np.array(image)


# ---------------------------------------------------------------- the gallery


def test_the_first_eight_pictures_show_eight_classes() -> None:
    assert [item.class_name for item in gallery()[:8]] == GALLERY_CLASSES[:8]


def test_a_class_name_is_the_name_of_the_label() -> None:
    assert all(item.class_name == GALLERY_CLASSES[item.label] and item.source == "gallery" for item in gallery())


def test_the_gallery_has_six_photographs_faces_digits_documents_scans_and_drawn_xrays_each_with_a_sentence() -> None:
    ids = [item.id for item in gallery()]
    assert len(set(ids)) == len(ids) == 62
    assert [sum(id.startswith(kind) for id in ids) for kind in ("face-", "digit-", "page-", "scan-", "xray-")] == [12, 10, 10, 8, 16]
    assert all(item.alt.endswith(".") for item in gallery())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("channels", [1, 3])
def test_every_gallery_picture_is_square_at_every_size(size: int, channels: int) -> None:
    for item in gallery():
        picture = read(item.source, item.id, size, channels)
        assert picture.shape == (size, size, channels)
        assert picture.dtype == np.uint8
        assert picture.std() > 10, f"{item.id} shows nothing"


def test_photographs_and_faces_are_those_of_scikit_image() -> None:
    from skimage import data

    for id, photo in images.PHOTOS.items():
        square = getattr(data, id)()[photo.top : photo.top + photo.side, photo.left : photo.left + photo.side]
        np.testing.assert_array_equal(read("gallery", id, photo.side, 3), square)
    np.testing.assert_array_equal(read("gallery", "face-1", 25, 1)[:, :, 0], np.round(data.lfw_subset()[1] * 255))


def test_digits_are_the_first_sample_of_each_in_scikit_learn() -> None:
    from sklearn.datasets import load_digits

    digits = load_digits()
    for digit in range(10):
        first = digits.images[list(digits.target).index(digit)]  # values 0 to 16
        np.testing.assert_array_equal(read("gallery", f"digit-{digit}", 8, 1)[:, :, 0], np.round(first * 255 / 16))


def test_an_unknown_gallery_picture_is_answered_with_the_known_ones() -> None:
    with pytest.raises(PictureError, match="no picture 'mona-lisa'; it has astronaut, chelsea"):
        find("gallery", "mona-lisa")


# ---------------------------------------------------------------- uploads that are refused

TRUNCATED_JPEG = encoded(Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)), "JPEG")[:-900]
BLINKING = [plain(RED), plain(WHITE)]
REFUSED = {
    "more than 10 MB": (bytes(10 * 2**20 + 1), "at most 10 MB"),
    "a text file named .png": (b"Dear server, I am a picture.", "expected is a PNG, JPEG or WebP"),
    "an empty file": (b"", "expected is a PNG, JPEG or WebP"),
    "a truncated JPEG": (TRUNCATED_JPEG, "damaged or cut short"),
    "an animated GIF": (encoded(BLINKING[0], "GIF", save_all=True, append_images=BLINKING[1:]), "is a GIF; expected is"),
    "an animated WebP": (encoded(BLINKING[0], "WEBP", save_all=True, append_images=BLINKING[1:]), "is animated"),
    "an animated PNG": (encoded(BLINKING[0], "PNG", save_all=True, append_images=BLINKING[1:]), "is animated"),
    "a BMP": (encoded(plain(), "BMP"), "is a BMP; expected is"),
    "a phone's HEIC": (b"\0\0\0\x18ftypheic" + bytes(64), "is a HEIC or AVIF; expected is"),
    "100 megapixels": (png_by_hand(10_000, 10_000, bytes(1251 * 10_000)), "at most 50"),
    "51 megapixels with nothing to decode": (png_by_hand(8_500, 6_000, b""), "8500 by 6000 pixels; at most 50 megapixels"),
    "one pixel": (encoded(plain(size=(1, 1))), "1 by 1 pixels; at least 8 by 8"),
    "a line": (encoded(plain(size=(100, 7))), "100 by 7 pixels; at least 8 by 8"),
}


@pytest.mark.parametrize(("data", "sentence"), REFUSED.values(), ids=REFUSED)
def test_a_bad_upload_is_refused_with_one_sentence_that_names_it_and_the_remedy(data: bytes, sentence: str) -> None:
    with pytest.raises(PictureError, match=sentence) as refusal:
        decode(data, "holiday.png")
    words = str(refusal.value)
    assert words.startswith("holiday.png ")
    assert words.endswith(".")
    assert "\n" not in words


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_size_is_judged_by_the_header_before_any_pixel_is_decoded() -> None:
    with pytest.raises(PictureError, match="10000 by 10000 pixels; at most 50 megapixels"):  # decoding would say "cut short"
        decode(png_by_hand(10_000, 10_000, b""), "bomb.png")


def test_a_picture_of_eight_by_eight_is_just_large_enough() -> None:
    np.testing.assert_array_equal(kept(encoded(plain(size=(8, 8)))), np.full((8, 8, 3), RED))


# ---------------------------------------------------------------- uploads that are converted


def test_a_cmyk_jpeg_keeps_its_colour() -> None:
    red = kept(encoded(plain((0, 255, 255, 0), mode="CMYK"), "JPEG"))
    assert np.abs(red.astype(int) - RED).max() <= 3  # JPEG rounds


def test_sixteen_bits_of_grey_are_scaled_not_clipped() -> None:
    grey = Image.fromarray(np.repeat(np.array([[0, 514, 32_768, 65_535]], np.uint16), 8, axis=0).repeat(2, axis=1))
    assert kept(encoded(grey))[0, ::2, 0].tolist() == [0, 2, 128, 255]  # value / 257


def test_transparency_is_laid_on_white() -> None:
    assert kept(encoded(plain((0, 0, 0, 0), mode="RGBA")))[0, 0].tolist() == [255, 255, 255]
    assert kept(encoded(plain((0, 0, 0, 51), mode="RGBA")))[0, 0].tolist() == [204, 204, 204]  # a fifth of black


def test_a_transparent_palette_colour_becomes_white_and_the_others_stay() -> None:
    image = Image.new("P", (16, 16), 0)
    image.putpalette([*RED, *BLACK])
    image.putpixel((0, 0), 1)
    data = encoded(image, transparency=1)
    assert kept(data)[0, :2].tolist() == [list(WHITE), list(RED)]


def test_grey_becomes_equal_channels() -> None:
    assert kept(encoded(Image.new("L", (9, 9), 77)))[4, 4].tolist() == [77, 77, 77]


@pytest.mark.parametrize(("orientation", "corners"), [(1, "KWWW"), (3, "WWWK"), (6, "WKWW"), (8, "WWKW"), (2, "WKWW"), (4, "WWKW")])
def test_a_photograph_is_turned_as_its_exif_says(orientation: int, corners: str) -> None:
    pixels = np.full((16, 16, 3), 255, np.uint8)
    pixels[:8, :8] = 0  # black at the top left; 6 means: turn a quarter clockwise to look at it
    exif = Image.Exif()
    exif[0x0112] = orientation
    seen = kept(encoded(Image.fromarray(pixels), "JPEG", exif=exif))
    assert "".join("W" if seen[row, column, 0] > 127 else "K" for row in (0, -1) for column in (0, -1)) == corners


def test_nothing_but_pixels_survives_the_check() -> None:
    exif = Image.Exif()
    exif[0x010E] = "taken at home"
    data = decode(encoded(plain(), "PNG", exif=exif, icc_profile=b"profile", dpi=(300, 300)), "photo.png")
    assert b"taken at home" not in data
    names, at = [], 8
    while at < len(data):
        names.append(data[at + 4 : at + 8])
        at += 12 + int.from_bytes(data[at : at + 4], "big")
    assert set(names) == {b"IHDR", b"IDAT", b"IEND"}


def test_the_central_square_is_kept_without_loss() -> None:
    flag = np.zeros((10, 30, 3), np.uint8)
    flag[:, :10, 0] = flag[:, 10:20, 1] = flag[:, 20:, 2] = 200
    np.testing.assert_array_equal(kept(encoded(Image.fromarray(flag))), np.full((10, 10, 3), (0, 200, 0)))


def test_a_large_photograph_is_kept_at_256_pixels_and_a_phones_two_views_at_the_first() -> None:
    assert kept(encoded(plain(size=(900, 700)), "WEBP")).shape == (256, 256, 3)
    assert kept(encoded(plain(RED), "MPO", save_all=True, append_images=[plain(WHITE)]))[0, 0, 1] < 5


def test_an_upload_is_read_at_the_asked_size_in_colour_or_luminance() -> None:
    data = decode(encoded(plain(RED, (40, 40))), "red.png")
    np.testing.assert_array_equal(read("upload", "a", 32, 3, data), np.full((32, 32, 3), RED))
    np.testing.assert_array_equal(read("upload", "a", 64, 1, data), np.full((64, 64, 1), 76))  # 0.299 * 255


# ---------------------------------------------------------------- for the page and the engine


def decoded(uri: str) -> np.ndarray:
    kind, text = uri.split(",")
    assert kind == "data:image/png;base64"
    with Image.open(BytesIO(base64.b64decode(text))) as image:
        return np.array(image)


def test_a_thumbnail_shows_every_pixel_of_the_picture_as_a_square() -> None:
    picture = read("gallery", "coffee", 32, 3)
    np.testing.assert_array_equal(decoded(thumbnail(find("gallery", "coffee"), 64)), picture.repeat(2, axis=0).repeat(2, axis=1))


def test_a_thumbnail_of_an_upload_is_not_kept_in_memory() -> None:
    item = Item("upload", "a", "red.png", 9, "thing", "An upload.")
    before = images._thumbnail.cache_info().currsize
    assert decoded(thumbnail(item, 32, encoded(plain())))[0, 0].tolist() == [255, 0, 0]
    assert images._thumbnail.cache_info().currsize == before


@pytest.mark.parametrize(("channels", "mode"), [(1, "L"), (3, "RGB")])
def test_a_sheet_is_one_row_of_pixels_and_comes_back_exactly(channels: int, mode: str) -> None:
    batch = np.random.default_rng(0).integers(0, 256, (5, 28, 28, channels), np.uint8)
    png = sheet(batch)
    with Image.open(BytesIO(png)) as image:
        assert (image.format, image.mode, image.size) == ("PNG", mode, (5 * 28, 28))
    np.testing.assert_array_equal(tiles(png, 5), batch)


def test_a_sheet_says_what_it_cannot_hold() -> None:
    with pytest.raises(ValueError, match=r"expected uint8 .* got float32"):
        sheet(np.zeros((1, 8, 8, 3), np.float32))
    with pytest.raises(PictureError, match="24 pixels wide does not contain 5 pictures"):
        tiles(sheet(np.zeros((3, 8, 8, 3), np.uint8)), 5)
    with pytest.raises(PictureError, match="damaged"):
        tiles(b"no sheet", 1)


def test_an_experiment_becomes_tensors_in_its_order() -> None:
    wanted = (Picture(source="upload", id="mine", label=9), Picture(id="chelsea"), Picture(id="digit-3", label=0))
    x, y = load(Experiment(pictures=wanted, size=64), {"mine": decode(encoded(plain()), "mine.png")})
    assert (x.shape, x.dtype, y.dtype, y.tolist()) == ((3, 3, 64, 64), torch.float32, torch.int64, [9, 1, 0])
    assert x[0].mean(dim=(1, 2)).tolist() == [1, 0, 0]  # red
    np.testing.assert_array_equal((x[1] * 255).round().permute(1, 2, 0).numpy(), read("gallery", "chelsea", 64, 3))


def test_an_upload_that_is_gone_or_has_no_class_is_named() -> None:
    with pytest.raises(PictureError, match="Upload mine is not on this machine"):
        load(Experiment(pictures=(Picture(source="upload", id="mine", label=9),)), {})
    with pytest.raises(PictureError, match="Upload mine has no class"):
        load(Experiment(pictures=(Picture(source="upload", id="mine"),)), {"mine": encoded(plain())})
