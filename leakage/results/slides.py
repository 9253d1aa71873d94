"""A run as a picture for a slide, and as a small animation that every presentation program plays: pictures, score, verdict, settings."""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFont

from leakage.data.images import Pixels, saved
from leakage.spec.words import PARTLY, RECOGNIZABLE, SINGLED_OUT

WIDTH, HEIGHT = 1600, 900
FRAMES, COLOURS, ACROSS, MAX_BYTES = 24, 64, 480, 400_000  # of an animation
SMALLER = ((FRAMES, COLOURS), (FRAMES, 32), (16, 32), (8, 32), (8, 16), (2, 16))  # frames and colours, tried in order
SECONDS, LAST = 6, 3  # of an animation without its last frame, and of the last frame
PAIRS_FROM = 5  # from so many pictures on, each private picture stands above its reconstruction

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


class Still(NamedTuple):
    """The reconstructions after `step` steps of the attack: uint8 (B, H, W, 1 or 3), and their mean PSNR in dB."""

    pictures: Pixels
    step: float
    psnr: float | None


@dataclass(frozen=True)
class Slide:
    """The content of a slide about a run."""

    title: str
    """The attack and the protections."""
    private: Pixels
    """The private pictures, uint8 (B, H, W, 1 or 3)."""
    stills: Sequence[Still]
    """Some of the attacker's intermediate results, with the answer last."""
    grey: float | None
    """PSNR in dB of a plain grey picture."""
    word: str
    """The word of the verdict, see spec/words.py."""
    sent: int
    """How many numbers the server received."""
    settings: str
    """The main settings of the experiment in a line, from the attack to the seed."""

    @property
    def several(self) -> bool:
        """Whether there are several private pictures."""
        return len(self.private) > 1

    @property
    def paired(self) -> bool:
        """Whether each private picture stands above its reconstruction, rather than in a block beside the reconstructions."""
        return len(self.private) >= PAIRS_FROM


def png(slide: Slide, *, small: bool = False) -> bytes:
    """Draw a slide as a PNG of 1,600 by 900 pixels: private pictures, reconstruction, score, verdict and settings.

    `small`: use 256 colours, for about a third of the size.
    """
    page = Image.new("RGB", (WIDTH, HEIGHT), "white")
    pen = ImageDraw.Draw(page)
    answer = slide.stills[-1]
    _line(pen, (60, 34), slide.title, _Type(44, INK, bold=True), wide=WIDTH - 120)
    if slide.paired:
        _, tall = _pictures(None, slide, answer.pictures, (60, 0, WIDTH - 60, 520))
        top = 106 + min(60, (520 - tall) // 3)
        _line(pen, (60, top), "Above: the private pictures", _Type(28, PRIVATE, bold=True))
        _line(pen, (500, top), "Below: what the attacker sees", _Type(28, ATTACKER, bold=True))
        _line(pen, (WIDTH - 60, top), f"{slide.sent:,} numbers were sent", _Type(28, INK), anchor="right")
        _pictures(page, slide, answer.pictures, (60, top + 46, WIDTH - 60, top + 566))
    else:
        second, _ = _pictures(page, slide, answer.pictures, (60, 152, WIDTH - 60, 672))
        _line(pen, (60, 106), _private_words(slide), _Type(28, PRIVATE, bold=True))
        _line(pen, (second, 106), "What the attacker sees", _Type(28, ATTACKER, bold=True))
        _line(pen, (800, 330), f"{slide.sent:,}", _Type(44, INK, bold=True), anchor="middle", wide=380)
        _line(pen, (800, 386), "numbers are sent", _Type(28, SOFT), anchor="middle")
        pen.polygon([(650, 446), (910, 446), (910, 430), (950, 452), (910, 474), (910, 458), (650, 458)], fill=INK)
    tone = TONES.get(slide.word, SOFT)
    big = _line(pen, (60, 690), _decibel(answer.psnr), _Type(88, tone, bold=True))
    of = f"closeness (PSNR{f', mean of {len(slide.private)} pictures' if slide.several else ''})"
    _line(pen, (big + 40, 698), slide.word[:1].upper() + slide.word[1:], _Type(40, tone, bold=True))
    _line(pen, (big + 40, 752), f"{of}; a grey picture: {_decibel(slide.grey)}", _Type(28, SOFT), wide=WIDTH - 100 - big)
    pen.rectangle((0, 812, WIDTH, HEIGHT), fill=WELL)
    for number, words in enumerate(wrapped(in_font(slide.settings), WIDTH - 120, _font(24).getlength)[:2]):
        _line(pen, (60, 824 + 34 * number), words, _Type(24, SOFT))
    return saved(page.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE) if small else page, "PNG", optimize=True)


def gif(slide: Slide) -> bytes:
    """Draw the reconstruction as a GIF animation, 480 pixels wide, with at most 24 frames and 64 colours, of about 400 kB at most."""
    data = b""
    for count, colours in SMALLER:
        stills = _some(slide.stills, count)
        if len(stills) == 1:  # solved at once: begin with grey
            stills = [Still(slide.private * 0 + 128, 0, slide.grey), *stills]
        pages = [_page(slide, still) for still in stills]
        common = _palette(pages, colours)
        first, *more = [page.quantize(palette=common, dither=Image.Dither.NONE) for page in pages]
        times = [max(40, SECONDS * 1000 // len(pages))] * len(more) + [LAST * 1000]
        data = saved(first, "GIF", save_all=True, append_images=more, duration=times, loop=0)
        if len(data) <= MAX_BYTES:
            break
    return data


def _page(slide: Slide, still: Still) -> Image.Image:
    """Draw a frame of the animation."""
    settings = wrapped(in_font(slide.settings), ACROSS - 16, _font(13).getlength)[:3]
    top, tall = 30, 464 if slide.paired else 226
    page = Image.new("RGB", (ACROSS, top + tall + 34 + 17 * len(settings)), "white")
    pen = ImageDraw.Draw(page)
    second, end = _pictures(page, slide, still.pictures, (8, top, ACROSS - 8, top + tall))
    below = end + 6
    heads = ("Above: private", "Below: what the attacker sees") if slide.paired else (_private_words(slide), "What the attacker sees")
    _line(pen, (8, 6), heads[0], _Type(17, PRIVATE, bold=True))
    _line(pen, (170 if slide.paired else second, 6), heads[1], _Type(17, ATTACKER, bold=True))
    if still is slide.stills[-1]:
        _line(
            pen,
            (8, below),
            f"{_decibel(still.psnr)}: {slide.word}; a grey picture: {_decibel(slide.grey)}",
            _Type(17, INK),
            wide=ACROSS - 16,
        )
    else:
        _line(pen, (8, below), f"step {still.step:g}, {_decibel(still.psnr)}", _Type(17, INK))
    for number, words in enumerate(settings):
        _line(pen, (8, below + 26 + 17 * number), words, _Type(13, SOFT))
    return page.crop((0, 0, ACROSS, below + 30 + 17 * len(settings)))


def _private_words(slide: Slide) -> str:
    return "The private pictures" if slide.several else "The private picture"


def _some(stills: Sequence[Still], count: int) -> list[Still]:
    """Choose `count` stills, the first and the last among them; all if there are no more."""
    if len(stills) <= count:
        return [*stills]
    return [stills[round(number * (len(stills) - 1) / (count - 1))] for number in range(count)]


# ---------------------------------------------------------------- pictures


def _pictures(page: Image.Image | None, slide: Slide, seen: Pixels, box: tuple[int, int, int, int]) -> tuple[int, int]:
    """Draw private pictures and reconstructions into a box, a few in two blocks and more in pairs; without a page, only measure.

    Args:
        page: the page to draw on, or None.
        slide: the content.
        seen: the reconstructions, uint8 (B, H, W, 1 or 3).
        box: left, top, right and bottom, in pixels.

    Returns:
        The x at which the reconstructions begin, and the y at which all pictures end, in pixels.
    """
    left, top, right, bottom = box
    gap = max(2, (right - left) // 240)
    size, side, columns = _arranged(slide, right - left, bottom - top, gap)
    second = left if slide.paired else right - columns * (size + gap) + gap
    end = top
    for index in range(len(slide.private)):
        row, column = divmod(index, columns)
        for which, (pictures, colour) in enumerate(((slide.private, PRIVATE), (seen, ATTACKER))):
            x = (second if which else left) + column * (side + 2 * gap if slide.paired else size + gap)
            y = top + (row * (2 * size + 5 * gap) + which * (size + gap) if slide.paired else row * (size + gap))
            end = max(end, y + size)
            if page:
                page.paste(_enlarged(pictures[index], size), (x, y))
                edge = 1 if size < 64 else 2
                around = (x - edge, y - edge, x + size + edge - 1, y + size + edge - 1)
                ImageDraw.Draw(page).rectangle(around, outline=colour, width=edge)
    return second, end


def _arranged(slide: Slide, wide: int, tall: int, gap: int) -> tuple[int, int, int]:
    """Compute the layout in which the pictures of a slide are as large as possible; all lengths are in pixels.

    Args:
        slide: the content.
        wide: the width of the box for the pictures.
        tall: the height of the box.
        gap: the distance between neighbouring pictures.

    Returns:
        The side of a picture as drawn, the side of the square that it may fill, and the number of pictures in a row.
    """
    count, original = len(slide.private), slide.private.shape[1]
    if not slide.paired:
        columns = 1 if count == 1 else 2
        room = min((wide - 2 * gap) // (2 * columns) - gap, tall // -(-count // columns) - gap)
        return _shown_side(original, room), room, columns

    def side(columns: int) -> int:
        rows = -(-count // columns)
        return min(wide // columns - 2 * gap, (tall - 5 * gap * rows) // (2 * rows))

    best = max(range(1, count + 1), key=lambda columns: (_shown_side(original, side(columns)), -columns))
    return _shown_side(original, side(best)), side(best), best


def _shown_side(original: int, space: int) -> int:
    """Return the side of a picture when drawn: enlarged by a whole factor if it fits, else as large as the space."""
    return original * (space // original) or max(1, space)


def _enlarged(picture: Pixels, side: int) -> Image.Image:
    image = Image.fromarray(picture[:, :, 0] if picture.shape[2] == 1 else picture).convert("RGB")
    return image.resize((side, side), Image.Resampling.NEAREST if side >= image.width else Image.Resampling.BOX)


def _palette(pages: Sequence[Image.Image], colours: int) -> Image.Image:
    """Return a palette for all frames, mostly with the colours of the last, since noise looks the same in a few colours."""
    few = colours // 4
    early = Image.new("RGB", (pages[0].width, 2 * pages[0].height))
    early.paste(pages[0], (0, 0))
    early.paste(pages[len(pages) // 2], (0, pages[0].height))
    parts = [(pages[-1], colours - few), (early, few)]
    chosen = [level for page, count in parts for level in (page.quantize(count, Image.Quantize.MEDIANCUT).getpalette() or [])[: 3 * count]]
    common = Image.new("P", (1, 1))
    common.putpalette(chosen)
    return common


# ---------------------------------------------------------------- words


def _decibel(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1f} dB"


def in_font(text: str) -> str:
    """Replace letters that Pillow's default font does not have.

    >>> in_font("32 × 32 · über")
    '32 x 32 · uber'
    """
    plain = "".join(LETTERS.get(letter, letter) for letter in text)
    parts = unicodedata.normalize("NFKD", plain).split("·")  # a letter that the font has
    return "·".join(part.encode("ascii", "ignore").decode() for part in parts)


def _font(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size)
    assert isinstance(font, ImageFont.FreeTypeFont)
    return font


class _Type(NamedTuple):
    """The appearance of letters: size in pixels, colour, weight."""

    size: int
    colour: str
    bold: bool = False


def _line(pen: ImageDraw.ImageDraw, at: tuple[int, int], words: str, look: _Type, *, anchor: str = "left", wide: int = 0) -> int:
    """Write a line, in smaller letters (down to two thirds) if it is wider than `wide`; return the x at which it ends, in pixels.

    `anchor`: whether `at` is the left end, the middle or the right end of the line.
    """
    text, size = in_font(words), look.size
    while wide and size > look.size * 2 // 3 and _font(size).getlength(text) > wide:
        size -= 1
    font = _font(size)
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
