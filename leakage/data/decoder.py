"""The decoder of uploads, a separate process: `python -m leakage.data.decoder` reads a file from stdin and writes a PNG to stdout.

A malicious file can need any time and memory to decode; limits then end this process, which does nothing else. It imports only Pillow,
and so starts in a tenth of a second. `leakage/data/uploads.py` starts it.
"""

import os
import re
import sys
from io import BytesIO

from PIL import ExifTags, Image, UnidentifiedImageError

from leakage.data.color_profiles import in_srgb, profile_of
from leakage.data.errors import BROKEN, PictureError
from leakage.data.png_depth import Depth
from leakage.data.process_limits import limit_process

MAX_BYTES = 10 * 2**20  # of an uploaded file
MAX_PIXELS = 50_000_000  # cameras of phones have 12, 24, 48 or 50 million
MAX_SCANS = 64  # of a JPEG: a progressive JPEG has about 10, and 64 take at most a second
MIN_SIDE = 8  # pixels
KEPT_SIDE = 256  # pixels of a stored upload
DRAFT_SIDE = 4 * KEPT_SIDE  # least pixels of the shorter side after the first, coarse reduction
BAND = 2**22  # pixels that are converted to 8 bits at a time
CPU_SECONDS = 4  # of this process
MEMORY = 2**30  # bytes of this process; the largest JPEG needs 400 MB, the largest PNG 300 and the largest WebP 800
REFUSED = 3  # exit status if a PictureError was raised; its message is then on stdout
FORMATS = ("PNG", "JPEG", "WEBP")
OTHER_KINDS = {b"GIF8": "a GIF", b"BM": "a BMP", b"II*\0": "a TIFF", b"MM\0*": "a TIFF", b"%PDF": "a PDF"}  # by their first bytes
TURNS = {  # EXIF orientation: how to undo it. Pillow's exif_transpose also rewrites the EXIF data, and fails if these are malformed
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
    "Save it with 8 bits for each color and choose that."
)
TOO_LARGE = f"{{}} has {{:.1f}} MB; at most {MAX_BYTES // 2**20} MB are allowed. Choose a smaller copy."
DAMAGED = "{} is damaged or cut short ({}). Save it again as PNG and choose that."
MARKER = re.compile(rb"\xff+([^\x00\xff])")  # FF 00 is no marker but a byte of the picture
SCAN, END = 0xDA, 0xD9
BARE = {0x01, *range(0xD0, 0xD8)}  # markers that no length follows


def decode(data: bytes, name: str) -> bytes:
    """Return the central square of an upload as a PNG in RGB, with at most 256 by 256 pixels and without metadata.

    The picture is turned as its EXIF data say, converted to sRGB by its color profile, scaled from 16 bits to 8, and put on a white
    background if it is transparent. If a JPEG file has several pictures, the first is used. A large JPEG is decoded at a half, a quarter
    or an eighth of its size; other large pictures are averaged over squares of pixels.

    Args:
        data: The content of the file.
        name: The name of the file, for messages.

    Raises:
        PictureError: If the file is damaged, animated, too large or of another format, or uses few of the 16 bits of its colors. The
            message is a sentence for pages.
    """
    picture, file = square(data, name), BytesIO()
    pixels = Image.new("RGB", picture.size)  # a new image has no color profile, comment or EXIF data
    pixels.paste(picture)
    pixels.save(file, "PNG")
    return file.getvalue()


def square(data: bytes, name: str) -> Image.Image:
    """Return the central square of an upload in RGB, with at most 256 by 256 pixels. Raises PictureError: see `decode`."""
    depth, upper = Depth.of(data), 0xFF
    with open_picture(data, name) as image:
        try:
            image.draft(None, (DRAFT_SIDE, DRAFT_SIDE))  # has an effect on JPEG files only
            image.load()
            if depth.stored == 16 and not image.mode.startswith("I"):  # Pillow reads only the upper eight bits of colors
                upper = _brightest(image)
            coarse = _coarse(image, depth)
            turn = TURNS.get(image.getexif().get(ExifTags.Base.Orientation, 1))
        except BROKEN as error:
            raise PictureError(DAMAGED.format(name, _line(error))) from error
        profile = profile_of(image)
    if (used := depth.used_by(upper << 8 | 0xFF)) < 16:
        raise PictureError(TOO_DARK.format(name, used, upper))
    small = coarse.resize((KEPT_SIDE, KEPT_SIDE), Image.Resampling.LANCZOS) if coarse.width > KEPT_SIDE else coarse
    return in_srgb(small if turn is None else small.transpose(turn), profile)


def open_picture(data: bytes, name: str) -> Image.Image:
    """Open an upload, make every check that needs only the file's header, and return the image. Raises PictureError."""
    if len(data) > MAX_BYTES:
        raise PictureError(TOO_LARGE.format(name, len(data) / 2**20))
    try:
        image = Image.open(BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError:
        kinds = [kind for start, kind in OTHER_KINDS.items() if data.startswith(start)]
        kind = kinds[0] if kinds else _other_kind(data)
        raise PictureError(f"{name} is {kind}; expected is a PNG, JPEG or WebP picture. Save it as PNG and choose that.") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):  # the warning is raised if warnings are errors
        raise PictureError(f"{name} has over 89 megapixels; at most {MAX_PIXELS // 10**6} are allowed. Choose a smaller copy.") from None
    except BROKEN as error:
        raise PictureError(DAMAGED.format(name, _line(error))) from error
    sides = f"{image.width} by {image.height} pixels"
    if image.width * image.height > MAX_PIXELS:
        raise PictureError(f"{name} has {sides}; at most {MAX_PIXELS // 10**6} megapixels are allowed. Choose a smaller copy.")
    if min(image.size) < MIN_SIDE:
        raise PictureError(f"{name} has {sides}; at least {MIN_SIDE} by {MIN_SIDE} are needed. Choose a larger one.")
    if getattr(image, "is_animated", False) and image.format != "MPO":  # MPO: a JPEG of a phone with a depth map or a second view
        raise PictureError(f"{name} is animated; expected is a single picture. Save one frame as PNG and choose that.")
    if image.format in ("JPEG", "MPO") and scans(data) > MAX_SCANS:
        raise PictureError(f"{name} is a JPEG of over {MAX_SCANS} scans; ordinary ones have about 10. Save it as PNG and choose that.")
    return image


def _other_kind(data: bytes) -> str:
    """Return the kind of a file that is no picture of FORMATS and whose first bytes are none of OTHER_KINDS."""
    if data[128:132] == b"DICM":
        return "a DICOM file"
    return "a HEIC or AVIF" if data[4:8] == b"ftyp" else "no picture that can be read"


def scans(jpeg: bytes) -> int:
    """Return the number of scans of the first picture in a JPEG file; counting stops at MAX_SCANS + 1.

    Markers are followed in the same way as in libjpeg: bytes that look like a marker inside the data of another marker, or after the end
    of the picture, do not count.
    """
    count, offset = 0, 2
    while count <= MAX_SCANS and (marker := MARKER.search(jpeg, offset)):
        kind, offset = marker[1][0], marker.end()
        if kind == END:
            break
        if kind not in BARE:
            count += kind == SCAN
            offset += int.from_bytes(jpeg[offset : offset + 2], "big")
    return count


def _coarse(image: Image.Image, depth: Depth) -> Image.Image:
    """Return the central square of an image with 8 bits, without transparency (mode L, RGB or CMYK), reduced if it is large.

    A pixel of a reduced image is the mean over a square of pixels. `depth` is the bit depth of the file.

    The image is converted in bands of rows, so that no second image of its size is needed in memory.
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
    """Return an image with 8 bits, without transparency: L, RGB or CMYK. `white` is the value of white in a 16-bit grey image."""
    if image.mode.startswith("I"):  # 16-bit grey; `convert` alone would clip values at 255 instead of scaling them
        return image.convert("I").point(lambda value: value * (255 / white) + 0.5).convert("L")
    if image.has_transparency_data:
        above = image.convert("RGBA")
        below = Image.alpha_composite(Image.new("RGBA", above.size, "white"), above).convert("RGB")
        return below.getchannel("R") if image.mode == "LA" else below
    return image if image.mode in ("L", "CMYK") else image.convert("L" if image.mode == "1" else "RGB")


def _brightest(image: Image.Image) -> int:
    """Return the largest value of any channel except transparency."""
    bands, ends = image.getbands(), image.getextrema()  # (low, high), or one pair for each band
    highs = [pair[1] if isinstance(pair, tuple) else ends[1] for pair in ends[: len(bands)]]
    return max(int(high) for name, high in zip(bands, highs, strict=True) if name != "A" and isinstance(high, int | float))


def _line(error: BaseException) -> str:
    """Return the message of an error as a single line of at most 100 characters."""
    return " ".join(str(error).split())[:100]


def main() -> int:
    """Decode the file on stdin, write a PNG or an error message to stdout, and return the exit status.

    The first line of stdin is the file's name in UTF-8, the rest its content.
    """
    limit_process(CPU_SECONDS, MEMORY)
    name, _, data = sys.stdin.buffer.read().partition(b"\n")
    status, output = 0, b""
    try:
        output = decode(data, name.decode())
    except PictureError as error:
        status, output = REFUSED, str(error).encode()
    sys.stdout.buffer.write(output)
    return status


if __name__ == "__main__":
    os.nice(5)  # pages have priority
    sys.exit(main())
