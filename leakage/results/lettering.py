"""Letters and pictures on slides and strips: colours, lines of text in the letters that Pillow's font has, enlarged pictures."""

import unicodedata
from collections.abc import Callable
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFont

from leakage.data.images import Pixels
from leakage.spec.words import PARTLY, RECOGNIZABLE, SINGLED_OUT

INK, SOFT, WELL = "#1b2733", "#4a5866", "#f3f6fa"
PRIVATE, ATTACKER, AMBER = "#00639b", "#b04a00", "#7d5400"
TONES = {RECOGNIZABLE: ATTACKER, SINGLED_OUT: ATTACKER, PARTLY: AMBER}
LETTERS = {
    "–": "-",
    "—": "-",
    "\N{MINUS SIGN}": "-",
    "×": "x",
    "…": "...",
    "∞": "infinity",
    "\N{GREEK SMALL LETTER SIGMA}": "sigma",
    "ε": "epsilon",
}


class LetterStyle(NamedTuple):
    """The appearance of letters: size in pixels, colour, weight."""

    size: int
    colour: str
    bold: bool = False


def decibels(value: float | None) -> str:
    """Write a PSNR with its unit.

    >>> decibels(12.34), decibels(None)
    ('12.3 dB', 'unknown')
    """
    return "unknown" if value is None else f"{value:.1f} dB"


def in_font(text: str) -> str:
    """Replace letters that Pillow's default font does not have.

    >>> in_font("32 × 32 · über")
    '32 x 32 · uber'
    """
    plain = "".join(LETTERS.get(letter, letter) for letter in text)
    parts = unicodedata.normalize("NFKD", plain).split("·")  # a letter that the font has
    return "·".join(part.encode("ascii", "ignore").decode() for part in parts)


def font_of(size: int) -> ImageFont.FreeTypeFont:
    """Return Pillow's default font, with letters of this size in pixels."""
    font = ImageFont.load_default(size)
    assert isinstance(font, ImageFont.FreeTypeFont)
    return font


def write_line(pen: ImageDraw.ImageDraw, at: tuple[int, int], words: str, look: LetterStyle, *, anchor: str = "left", wide: int = 0) -> int:
    """Write a line, in smaller letters (down to two thirds) if it is wider than `wide`; return the x at which it ends, in pixels.

    `anchor`: whether `at` is the left end, the middle or the right end of the line.
    """
    text, size = in_font(words), look.size
    while wide and size > look.size * 2 // 3 and font_of(size).getlength(text) > wide:
        size -= 1
    font = font_of(size)
    length = round(font.getlength(text))
    x = at[0] - {"left": 0, "middle": length // 2, "right": length}[anchor]
    pen.text((x, at[1]), text, fill=look.colour, font=font, stroke_width=size / 40 if look.bold else 0)
    return x + length


def wrapped(text: str, wide: int, length: Callable[[str], float]) -> list[str]:
    """Split a text into lines of at most `wide` pixels, as `length` measures them; a word that is too long gets a line of its own."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        lines = [*lines[:-1], longer] if not lines[-1] or length(longer) <= wide else [*lines, word]
    return lines


def enlarged(picture: Pixels, side: int) -> Image.Image:
    """Resize a picture (H, W, 1 or 3) to a square of `side` pixels: without smoothing if it is smaller, else by averaging."""
    image = Image.fromarray(picture[:, :, 0] if picture.shape[2] == 1 else picture).convert("RGB")
    return image.resize((side, side), Image.Resampling.NEAREST if side >= image.width else Image.Resampling.BOX)
