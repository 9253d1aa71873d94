"""The conversion of a picture's colors to sRGB, by the ICC profile in its file or the color space in its EXIF data. Pillow only."""

import struct
from io import BytesIO

from PIL import ExifTags, Image

from leakage.data.errors import BROKEN

MODES = {"RGB ": "RGB", "GRAY": "L", "CMYK": "CMYK"}  # color space of a profile: Pillow's mode of its pixels
ADOBE_RGB = ((0.60974, 0.31111, 0.01947), (0.20528, 0.62567, 0.06087), (0.14919, 0.06322, 0.74457)), 563 / 256  # XYZ under D50, gamma
UNCALIBRATED, DCF_OPTION = 0xFFFF, "R03"  # color space and interoperability index in the EXIF data of a camera that is set to Adobe RGB


def profile_of(image: Image.Image) -> bytes:
    """Return the ICC profile of an image; empty if it has none, so that its colors are sRGB.

    Source: DCF 2.0, option file: a camera that is set to Adobe RGB may say so in the EXIF data instead of a profile.
    """
    if profile := image.info.get("icc_profile"):
        return bytes(profile)
    try:
        exif = image.getexif()
        space = exif.get_ifd(ExifTags.IFD.Exif).get(ExifTags.Base.ColorSpace)
        index = exif.get_ifd(ExifTags.IFD.Interop).get(1, "")
    except BROKEN:
        return b""
    option = space == UNCALIBRATED and str(index).rstrip("\0") == DCF_OPTION
    return matrix_profile(*ADOBE_RGB) if option else b""


def in_srgb(image: Image.Image, profile: bytes) -> Image.Image:
    """Convert an image (RGB, L or CMYK) from an ICC profile to sRGB, by Little CMS with perceptual intent, and return it in mode RGB.

    If the profile is empty, damaged or for other modes, the colors stay as they are.
    """
    plain = image.convert("RGB")
    if not profile:
        return plain
    from PIL import ImageCms  # slow to import, and most pictures have no profile

    try:
        source = ImageCms.ImageCmsProfile(BytesIO(profile))
        if MODES.get(source.profile.xcolor_space) != image.mode:
            return plain
        return ImageCms.profileToProfile(image, source, ImageCms.createProfile("sRGB"), outputMode="RGB") or plain
    except (ImportError, ImageCms.PyCMSError, *BROKEN):
        return plain


def matrix_profile(primaries: tuple[tuple[float, float, float], ...], gamma: float) -> bytes:
    """Return an ICC profile with three primaries (XYZ under D50: red, green, blue) and a common gamma.

    Source: ICC.1:2001-04, File Format for Color Profiles.
    """

    def xyz(*numbers: float) -> bytes:
        return b"XYZ \0\0\0\0" + b"".join(struct.pack(">i", round(number * 65536)) for number in numbers)

    curve = b"curv\0\0\0\0" + struct.pack(">IH", 1, round(gamma * 256)) + b"\0\0"
    tags = [(b"wtpt", xyz(0.9642, 1, 0.8249)), (b"cprt", b"text\0\0\0\0\0\0\0\0")]
    tags += [(b"desc", b"desc\0\0\0\0" + struct.pack(">I", 1) + bytes(80))]
    for letter, primary in zip((b"r", b"g", b"b"), primaries, strict=True):
        tags += [(letter + b"XYZ", xyz(*primary)), (letter + b"TRC", curve)]
    offset, table, body = 128 + 4 + 12 * len(tags), struct.pack(">I", len(tags)), b""
    for name, value in tags:
        table, body = table + name + struct.pack(">II", offset + len(body), len(value)), body + value
    head = struct.pack(">I4xI4s4s4s", 128 + len(table) + len(body), 0x02400000, b"mntr", b"RGB ", b"XYZ ")
    head += struct.pack(">6H", 2000, 1, 1, 0, 0, 0) + b"acsp" + bytes(28) + xyz(0.9642, 1, 0.8249)[8:]
    return head.ljust(128, b"\0") + table + body
