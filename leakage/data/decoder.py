"""An upload as a PNG, decoded in a process of its own: `python -m leakage.data.decoder`, the file on stdin, the PNG on stdout.

A hostile file may take any time and memory to decode. Here that ends this process, which holds nothing else. It imports Pillow only, so
that it starts in a tenth of a second; who calls it is `leakage.data.uploads`.
"""

import contextlib
import os
import re
import resource
import sys
from io import BytesIO

from PIL import ExifTags, Image, UnidentifiedImageError

from leakage.data.color_profiles import in_srgb, profile_of
from leakage.data.errors import BROKEN, PictureError
from leakage.data.png_depth import Depth

MAX_BYTES = 10 * 2**20  # of an upload as it arrives
MAX_PIXELS = 50_000_000  # phones take 12, 24, 48 or 50 million
MAX_SCANS = 64  # of a JPEG; progressive ones have about 10, and so many take a second at most
MIN_SIDE = 8  # pixels
KEPT_SIDE = 256  # pixels of an upload as it is kept
DRAFT_SIDE = 4 * KEPT_SIDE  # pixels that the shorter side of a larger one has at least after the first, coarse step
BAND = 2**22  # pixels that are brought to 8 bits at a time
CPU_SECONDS = 4  # of this process
MEMORY = 2**30  # bytes of this process; of the largest, a JPEG takes 400 MB, a PNG 300 and a WebP 800
REFUSED = 3  # exit status: the sentence is on stdout
FORMATS = ("PNG", "JPEG", "WEBP")
OTHER_KINDS = {b"GIF8": "a GIF", b"BM": "a BMP", b"II*\0": "a TIFF", b"MM\0*": "a TIFF", b"%PDF": "a PDF"}  # by their first bytes
TURNS = {  # EXIF orientation -> how to undo it; Pillow's exif_transpose also rewrites the EXIF and fails where that is odd
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
TOO_DARK = (
    "{} has 16 bits for each color and uses the lower {} of them, so its brightest pixel would be {} of 255. "
    "Save it with 8 bits for each color and upload that."
)
DAMAGED = "{} is damaged or cut short ({}). Save it again as PNG and upload that."
MARKER = re.compile(rb"\xff+([^\x00\xff])")  # FF 00 is a byte of the picture
SCAN, END = 0xDA, 0xD9
BARE = {0x01, *range(0xD0, 0xD8)}  # markers without a length


def decode(data: bytes, name: str) -> bytes:
    """An upload as a PNG: RGB, its central square, at most 256 pixels, without metadata.

    Turned as its EXIF says, in sRGB by its color profile, 16 bits scaled to 8, transparency laid on white; of several pictures in one JPEG
    the first. A large JPEG is decoded at a half, a quarter or an eighth of its size; others are averaged over squares of pixels.
    Animations are refused, and colors of 16 bits that use few of them. Raises PictureError with one sentence for the page.
    """
    found, file = square(data, name), BytesIO()
    pixels = Image.new("RGB", found.size)  # a fresh image carries no profile, comment or EXIF
    pixels.paste(found)
    pixels.save(file, "PNG")
    return file.getvalue()


def square(data: bytes, name: str) -> Image.Image:
    """The central square of an upload, RGB, at most 256 pixels. Raises PictureError."""
    depth, upper = Depth.of(data), 0xFF
    with _opened(data, name) as image:
        try:
            image.draft(None, (DRAFT_SIDE, DRAFT_SIDE))  # what only a JPEG knows
            image.load()
            if depth.stored == 16 and not image.mode.startswith("I"):  # of colors Pillow reads the upper eight bits only
                upper = _brightest(image)
            flat = _coarse(image, depth)
            turn = TURNS.get(image.getexif().get(ExifTags.Base.Orientation, 1))
        except BROKEN as error:
            raise PictureError(DAMAGED.format(name, _line(error))) from error
        profile = profile_of(image)
    if (used := depth.used_by(upper << 8 | 0xFF)) < 16:
        raise PictureError(TOO_DARK.format(name, used, upper))
    small = flat.resize((KEPT_SIDE, KEPT_SIDE), Image.Resampling.LANCZOS) if flat.width > KEPT_SIDE else flat
    return in_srgb(small if turn is None else small.transpose(turn), profile)


def _opened(data: bytes, name: str) -> Image.Image:
    """The image with only its header read, after every check that needs no decoding. Raises PictureError."""
    if len(data) > MAX_BYTES:
        raise PictureError(f"{name} has {len(data) / 2**20:.1f} MB; at most {MAX_BYTES // 2**20} MB are allowed. Upload a smaller copy.")
    try:
        image = Image.open(BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError:
        kinds = [kind for start, kind in OTHER_KINDS.items() if data.startswith(start)]
        kind = kinds[0] if kinds else "a HEIC or AVIF" if data[4:8] == b"ftyp" else "no picture that can be read"
        raise PictureError(f"{name} is {kind}; expected is a PNG, JPEG or WebP picture. Save it as PNG and upload that.") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):  # the warning is raised only where warnings are errors
        raise PictureError(f"{name} has over 89 megapixels; at most {MAX_PIXELS // 10**6} are allowed. Upload a smaller copy.") from None
    except BROKEN as error:
        raise PictureError(DAMAGED.format(name, _line(error))) from error
    sides = f"{image.width} by {image.height} pixels"
    if image.width * image.height > MAX_PIXELS:
        raise PictureError(f"{name} has {sides}; at most {MAX_PIXELS // 10**6} megapixels are allowed. Upload a smaller copy.")
    if min(image.size) < MIN_SIDE:
        raise PictureError(f"{name} has {sides}; at least {MIN_SIDE} by {MIN_SIDE} are needed. Choose a larger one.")
    if getattr(image, "is_animated", False) and image.format != "MPO":  # MPO: what a phone calls JPEG, with a depth map or a second view
        raise PictureError(f"{name} is animated; expected is a single picture. Save one frame as PNG and upload that.")
    if image.format in ("JPEG", "MPO") and scans(data) > MAX_SCANS:
        raise PictureError(f"{name} is a JPEG of over {MAX_SCANS} scans; ordinary ones have about 10. Save it as PNG and upload that.")
    return image


def scans(jpeg: bytes) -> int:
    """How many scans the first picture of a JPEG file is stored in; counting stops beyond MAX_SCANS.

    Markers are followed as libjpeg does: what looks like one inside another's data, or after the picture's end, is none.
    """
    count, at = 0, 2
    while count <= MAX_SCANS and (marker := MARKER.search(jpeg, at)):
        kind, at = marker[1][0], marker.end()
        if kind == END:
            break
        if kind not in BARE:
            count += kind == SCAN
            at += int.from_bytes(jpeg[at : at + 2], "big")
    return count


def _coarse(image: Image.Image, depth: Depth) -> Image.Image:
    """The central square in 8 bits, without transparency: L, RGB or CMYK. Where it is large, the mean over squares of pixels.

    Band by band, so that beside the decoded picture no second one of its size is needed.
    """
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    factor = max(1, side // DRAFT_SIDE)
    white = 2 ** depth.used_by(_brightest(image)) - 1 if image.mode.startswith("I") else 0
    rows = max(1, BAND // side // factor) * factor
    bands = []
    for start in range(top, top + side, rows):
        band = image.crop((left, start, left + side, min(start + rows, top + side)))
        bands.append(_flat(band, white).reduce(factor))
    whole = Image.new(bands[0].mode, (bands[0].width, sum(band.height for band in bands)))
    for number, band in enumerate(bands):
        whole.paste(band, (0, number * rows // factor))
    return whole.crop((0, 0, side // factor, side // factor))  # the last column and row may be means of fewer pixels


def _flat(image: Image.Image, white: int) -> Image.Image:
    """8 bits, without transparency: L, RGB or CMYK. `white` is the number that stands for it in grey of 16 bits."""
    if image.mode.startswith("I"):  # 16-bit grey, which `convert` alone would clip at 255 instead of scaling
        return image.convert("I").point(lambda value: value * (255 / white) + 0.5).convert("L")
    if image.has_transparency_data:
        above = image.convert("RGBA")
        below = Image.alpha_composite(Image.new("RGBA", above.size, "white"), above).convert("RGB")
        return below.getchannel("R") if image.mode == "LA" else below
    return image if image.mode in ("L", "CMYK") else image.convert("L" if image.mode == "1" else "RGB")


def _brightest(image: Image.Image) -> int:
    """The largest number of any color."""
    bands, ends = image.getbands(), image.getextrema()  # (low, high), or one pair for each band
    highs = [pair[1] if isinstance(pair, tuple) else ends[1] for pair in ends[: len(bands)]]
    return max(int(high) for name, high in zip(bands, highs, strict=True) if name != "A" and isinstance(high, int | float))


def _line(error: BaseException) -> str:
    """What Pillow says, in one line that is not long."""
    return " ".join(str(error).split())[:100]


def _limit() -> None:
    """No more time and memory than these, and no copy of the picture on the disk when they end this process."""
    for what, most in ((resource.RLIMIT_CPU, CPU_SECONDS), (resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0)):
        allowed = resource.getrlimit(what)[1]
        limit = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
        with contextlib.suppress(ValueError, OSError):  # macOS has no limit of the address space
            resource.setrlimit(what, (limit, limit))


def main() -> int:
    """Decode stdin: the first line is the name of the file, in UTF-8, the rest is its bytes."""
    _limit()
    name, _, data = sys.stdin.buffer.read().partition(b"\n")
    status, answer = 0, b""
    try:
        answer = decode(data, name.decode())
    except PictureError as error:
        status, answer = REFUSED, str(error).encode()
    sys.stdout.buffer.write(answer)
    return status


if __name__ == "__main__":
    os.nice(5)  # pages first
    sys.exit(main())
