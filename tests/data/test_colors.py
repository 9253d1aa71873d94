"""Colors and bits of uploads: profiles computed by hand, damaged and huge profiles, 10, 12 and 14 bits in files of 16."""

import struct
import zlib
from collections.abc import Callable
from io import BytesIO

import numpy as np
import pytest
from PIL import Image, ImageCms

from leakage.data import uploads
from leakage.data.color_profiles import ADOBE_RGB, DCF_OPTION, UNCALIBRATED, matrix_profile
from leakage.data.decoder import decode
from leakage.data.errors import PictureError

P3 = ((0.5151, 0.2412, -0.0011), (0.2920, 0.6922, 0.0419), (0.1571, 0.0666, 0.7841))  # XYZ under D50 (SMPTE EG 432-1, adapted)
SRGB = ((0.4361, 0.2225, 0.0139), (0.3851, 0.7169, 0.0971), (0.1431, 0.0606, 0.7141))
COLORS = [(184, 52, 44), (90, 130, 80), (60, 70, 150), (200, 170, 140), (255, 255, 255), (0, 0, 0)]  # all within sRGB, in either space


def patches(mode: str = "RGB", colors: list[tuple[int, ...]] | None = None) -> Image.Image:
    """A square of 48 pixels, in squares of 16: large enough for JPEG."""
    image = Image.new(mode, (48, 48))
    for number, color in enumerate((colors or COLORS)[:6] + (colors or COLORS)[:3]):
        image.paste(color if len(color) > 1 else color[0], (number % 3 * 16, number // 3 * 16, number % 3 * 16 + 16, number // 3 * 16 + 16))
    return image


def encoded(image: Image.Image, kind: str = "PNG", **how: object) -> bytes:
    file = BytesIO()
    image.save(file, kind, **how)
    return file.getvalue()


def kept(data: bytes, look: Callable[[bytes, str], bytes] = decode) -> list[tuple[int, int, int]]:
    """The colors of the patches after the check."""
    with Image.open(BytesIO(look(data, "photo"))) as image:
        assert (image.mode, image.info) == ("RGB", {})
        return [image.getpixel((number % 3 * 16 + 8, number // 3 * 16 + 8)) for number in range(6)]


def in_srgb_by_hand(color: tuple[int, ...], primaries: tuple[tuple[float, ...], ...], gamma: float) -> np.ndarray:
    """IEC 61966-2-1, from the light of each primary."""
    light = np.array(color[:3], float) / 255
    light = np.linalg.solve(np.array(SRGB).T, np.array(primaries).T @ light**gamma)
    return 255 * np.where(light <= 0.0031308, 12.92 * light, 1.055 * light.clip(1e-9) ** (1 / 2.4) - 0.055).clip(0, 1)


def furthest(found: list[tuple[int, int, int]], wanted: list[np.ndarray]) -> float:
    return max(float(np.abs(np.array(one) - other).max()) for one, other in zip(found, wanted, strict=True))


# ---------------------------------------------------------------- profiles

P3_PROFILE, ADOBE_PROFILE = matrix_profile(P3, 2.2), matrix_profile(*ADOBE_RGB)
P3_HERE = [in_srgb_by_hand(color, P3, 2.2) for color in COLORS]
ADOBE_HERE = [in_srgb_by_hand(color, *ADOBE_RGB) for color in COLORS]
OPAQUE = [(*color, 255) for color in COLORS]


def test_a_wide_gamut_differs_from_srgb_by_more_than_a_person_overlooks() -> None:
    assert furthest(COLORS, P3_HERE) > 15
    assert furthest(COLORS, ADOBE_HERE) > 25


@pytest.mark.parametrize(
    ("data", "wanted", "within"),
    [
        pytest.param(encoded(patches(), icc_profile=P3_PROFILE), P3_HERE, 2, id="PNG"),
        pytest.param(encoded(patches(), "JPEG", quality=95, subsampling=0, icc_profile=ADOBE_PROFILE), ADOBE_HERE, 5, id="JPEG"),
        pytest.param(encoded(patches(), "WEBP", lossless=True, icc_profile=P3_PROFILE), P3_HERE, 2, id="WebP"),
        pytest.param(encoded(patches("RGBA", OPAQUE), icc_profile=P3_PROFILE), P3_HERE, 2, id="alpha"),
        pytest.param(encoded(patches().quantize(16), icc_profile=P3_PROFILE), P3_HERE, 3, id="palette"),
        pytest.param(encoded(patches("RGBA", OPAQUE).quantize(16), icc_profile=P3_PROFILE), P3_HERE, 3, id="palette, alpha"),
        pytest.param(encoded(patches().resize((960, 960), 0), icc_profile=P3_PROFILE), None, 0, id="large"),
    ],
)  # fmt: skip
def test_a_profile_means_its_colors(data: bytes, wanted: list[np.ndarray] | None, within: float) -> None:
    if wanted is None:
        with Image.open(BytesIO(decode(data, "large"))) as image:
            assert image.size == (256, 256)
            assert np.abs(np.array(image.getpixel((40, 40))) - P3_HERE[0]).max() <= 2
    else:
        assert furthest(kept(data), wanted) <= within


def test_a_camera_that_is_set_to_adobe_rgb_says_so_in_its_exif_alone() -> None:
    exif = Image.Exif()
    exif.get_ifd(0x8769).update({0xA001: UNCALIBRATED, 0xA005: {1: DCF_OPTION}})
    said = encoded(patches(), "JPEG", quality=95, subsampling=0, exif=exif)
    assert furthest(kept(said), ADOBE_HERE) <= 5
    other = Image.Exif()
    other.get_ifd(0x8769).update({0xA001: UNCALIBRATED, 0xA005: {1: "R98"}})
    assert furthest(kept(encoded(patches(), "JPEG", quality=95, subsampling=0, exif=other)), [np.array(c) for c in COLORS]) <= 5


def test_grey_has_a_profile_of_its_own() -> None:
    """A grey of gamma 1: the middle of the light is 188 of 255 in sRGB."""
    icc = grey_profile(1.0)
    greys = [(0,), (64,), (128,), (192,), (255,), (32,)]
    wanted = [in_srgb_by_hand((one[0],) * 3, SRGB, 1.0) for one in greys]
    assert round(float(wanted[2][0])) == 188
    assert furthest(kept(encoded(patches("L", greys), icc_profile=icc)), wanted) <= 2
    assert furthest(kept(encoded(patches("LA", [(one[0], 255) for one in greys]), icc_profile=icc)), wanted) <= 2


def test_cmyk_without_a_profile_is_as_before_and_a_profile_of_other_colors_is_passed_over() -> None:
    inks = [(0, 255, 255, 0), (255, 0, 255, 0), (0, 0, 0, 0), (0, 0, 0, 255), (0, 0, 0, 128), (255, 255, 0, 0)]
    plain = kept(encoded(patches("CMYK", inks), "JPEG", quality=95))
    assert kept(encoded(patches("CMYK", inks), "JPEG", quality=95, icc_profile=P3_PROFILE)) == plain
    assert kept(encoded(patches(), icc_profile=grey_profile(1.0))) == COLORS


def test_cmyk_with_a_profile_is_what_little_cms_makes_of_it() -> None:
    inks = [(0, 255, 255, 0), (255, 0, 255, 0), (0, 0, 0, 0), (0, 0, 0, 255), (0, 0, 0, 128), (255, 255, 0, 0)]
    assert kept(encoded(patches("CMYK", inks), "JPEG", quality=95, icc_profile=ink_profile()))[0] != (255, 0, 0)
    found = kept(encoded(patches("CMYK", inks), "JPEG", quality=95, icc_profile=ink_profile()))
    # this paper shows L* = 100 where there is no ink, and 0 where all of black is: its table holds nothing else
    assert furthest([found[2], found[3]], [np.full(3, 255), np.zeros(3)]) <= 3


DAMAGES = {
    "empty": b"",
    "words": b"no profile at all",
    "cut short": P3_PROFILE[:200],
    "no signature": P3_PROFILE.replace(b"acsp", b"xxxx"),
    "a table that points beyond it": P3_PROFILE[:132] + bytes.fromhex("ff" * 108) + P3_PROFILE[240:],
    "of a printer's output without a table": P3_PROFILE.replace(b"mntr", b"link"),
}


@pytest.mark.parametrize("profile", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_profile_is_taken_for_none(profile: bytes) -> None:
    assert kept(encoded(patches(), icc_profile=profile)) == COLORS
    assert furthest(kept(encoded(patches(), "JPEG", quality=95, subsampling=0, icc_profile=profile)), [np.array(c) for c in COLORS]) <= 5


def test_profiles_of_which_any_byte_is_another_never_fail() -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        profile = bytearray(P3_PROFILE)
        for place in rng.integers(0, len(profile), rng.choice([1, 4, 40])):
            profile[place] = rng.integers(0, 256)
        assert len(kept(encoded(patches(), "WEBP", lossless=True, icc_profile=bytes(profile)))) == 6


def test_a_huge_profile_keeps_to_the_limits_of_the_process() -> None:
    huge = P3_PROFILE + bytes(6 * 2**20)
    noisy = Image.frombytes("RGB", (1000, 1000), np.random.default_rng(0).bytes(3 * 10**6))
    data = encoded(noisy, "JPEG", quality=70, icc_profile=huge)
    assert 6 * 2**20 < len(data) < 10 * 2**20
    with Image.open(BytesIO(uploads.check_upload(data, "huge.jpg"))) as image:
        assert image.size == (256, 256)
    text = zlib.compress(bytes(10**8))  # a PNG's profile is compressed: 100 kB of file for 100 MB
    start = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 0, 0, 0, 0))
    rows = chunk(b"IDAT", zlib.compress(bytes(17 * 16))) + chunk(b"IEND", b"")
    with pytest.raises(PictureError, match=r"^bomb.png .*\.$"):
        uploads.check_upload(start + chunk(b"iCCP", b"name\0\0" + text) + rows, "bomb.png")


def test_colors_come_through_the_process_too() -> None:
    assert furthest(kept(encoded(patches(), icc_profile=P3_PROFILE), uploads.check_upload), P3_HERE) <= 2


def grey_profile(gamma: float) -> bytes:
    """A grey one: the matrix is left out, one curve stays."""
    curve = b"curv\0\0\0\0" + struct.pack(">IH", 1, round(gamma * 256)) + b"\0\0"
    white = b"XYZ \0\0\0\0" + P3_PROFILE[68:80]
    tags = [
        (b"wtpt", white),
        (b"cprt", b"text" + bytes(8)),
        (b"desc", b"desc\0\0\0\0" + struct.pack(">I", 1) + bytes(80)),
        (b"kTRC", curve),
    ]
    return laid_out(P3_PROFILE[:16] + b"GRAY" + P3_PROFILE[20:128], tags)


def ink_profile() -> bytes:
    """A profile of four inks: a table (lut8) with two entries for each ink, with L* = 100 without ink and 0 otherwise."""
    levels = bytes(range(256))
    matrix = struct.pack(">9i", *(65536 * (number % 4 == 0) for number in range(9)))
    table = b"".join(bytes([255 if entry == 0 else 0, 128, 128]) for entry in range(16))
    lut = b"mft1\0\0\0\0" + bytes([4, 3, 2, 0]) + matrix + levels * 4 + table + levels * 3
    tags = [(b"wtpt", b"XYZ \0\0\0\0" + P3_PROFILE[68:80]), (b"cprt", b"text" + bytes(8)), (b"A2B0", lut)]
    head = bytearray(P3_PROFILE[:128])
    head[12:24] = b"prtrCMYKLab "
    return laid_out(bytes(head), tags)


def laid_out(head: bytes, tags: list[tuple[bytes, bytes]]) -> bytes:
    """Header, table and values of a profile."""
    at, table, body = 132 + 12 * len(tags), struct.pack(">I", len(tags)), b""
    for name, value in tags:
        padded = value + bytes(-len(value) % 4)
        table, body = table + name + struct.pack(">II", at + len(body), len(value)), body + padded
    return struct.pack(">I", at + len(body)) + head[4:128] + table + body


def test_the_profiles_of_these_tests_are_profiles() -> None:
    for profile, space in ((P3_PROFILE, "RGB "), (ADOBE_PROFILE, "RGB "), (grey_profile(1.0), "GRAY"), (ink_profile(), "CMYK")):
        assert ImageCms.ImageCmsProfile(BytesIO(profile)).profile.xcolor_space == space


# ---------------------------------------------------------------- bits


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def scan(brightest: int, color: int = 0, said: int = 0) -> bytes:
    """A ramp from 0 to `brightest` of 64 pixels in a PNG of 16 bits, of grey (0), RGB (2), grey or RGB with alpha (4, 6)."""
    ramp, bands = np.linspace(0, brightest, 64).round(), {0: 1, 2: 3, 4: 2, 6: 4}[color]
    row = np.repeat(ramp[:, None], bands, 1)
    if color > 2:
        row[:, -1] = 65535
    rows = (b"\0" + row.astype(">u2").tobytes()) * 64
    head = struct.pack(">IIBBBBB", 64, 64, 16, color, 0, 0, 0)
    more = chunk(b"sBIT", bytes([said] * bands)) if said else b""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + more + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("brightest", "said", "white"),
    [
        (65535, 0, 65535),
        (65535, 12, 65535),  # spread over all bits, as a file should
        (4095, 12, 4095),
        (1900, 12, 4095),  # a dark scan stays dark
        (1023, 10, 1023),
        (16383, 14, 16383),
        (4095, 0, 4095),
        (1900, 0, 4095),
        (1023, 0, 1023),
        (16383, 0, 16383),
        (255, 0, 255),
        (20_000, 0, 65535),  # above a quarter of white: a picture of 16 bits
        (32_767, 15, 32_767),
        (4095, 16, 4095),  # all of them, says the file, and is wrong
    ],
)
def test_a_scan_of_fewer_bits_than_its_file_has_is_as_bright_as_it_was(brightest: int, said: int, white: int) -> None:
    with Image.open(BytesIO(decode(scan(brightest, said=said), "scan.png"))) as image:
        found = np.asarray(image)[0, :, 0].astype(int)
    assert np.abs(found - np.linspace(0, 255 * brightest / white, 64)).max() <= 0.51 + 255 / white / 2


@pytest.mark.parametrize(("brightest", "color", "bits"), [(4095, 2, 12), (1023, 6, 10), (16383, 2, 14), (4095, 4, 12)])
@pytest.mark.parametrize("said", [False, True])
def test_dark_colors_of_sixteen_bits_are_refused_with_what_to_do(brightest: int, color: int, bits: int, said: bool) -> None:
    with pytest.raises(PictureError) as refusal:
        decode(scan(brightest, color, bits if said else 0), "scan.png")
    assert str(refusal.value) == (
        f"scan.png has 16 bits for each color and uses the lower {bits} of them, so its brightest pixel would be {brightest >> 8} of 255. "
        "Save it with 8 bits for each color and choose that."
    )


@pytest.mark.parametrize("color", [2, 4, 6])
def test_bright_colors_of_sixteen_bits_are_read(color: int) -> None:
    with Image.open(BytesIO(decode(scan(65535, color), "scan.png"))) as image:
        assert np.abs(np.asarray(image)[0, :, 0] - np.linspace(0, 255, 64)).max() <= 1  # the upper eight bits: rounded down


def test_eight_bits_are_never_stretched() -> None:
    with Image.open(BytesIO(decode(encoded(Image.new("L", (16, 16), 9)), "dark.png"))) as image:
        assert image.getpixel((0, 0)) == (9, 9, 9)
