"""A run as a picture for a slide, and as a small animation that every presentation program plays: pictures, score, verdict, settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from PIL import Image, ImageDraw

from leakage.data.images import Pixels, saved
from leakage.results.lettering import (
    ATTACKER,
    INK,
    PRIVATE,
    SOFT,
    TONES,
    WELL,
    LetterStyle,
    decibels,
    enlarged,
    font_of,
    in_font,
    wrapped,
    write_line,
)

WIDTH, HEIGHT = 1600, 900
FRAMES, COLOURS, ACROSS, MAX_BYTES = 24, 64, 480, 400_000  # of an animation
SMALLER = ((FRAMES, COLOURS), (FRAMES, 32), (16, 32), (8, 32), (8, 16), (2, 16))  # frames and colours, tried in order
SECONDS, LAST = 6, 3  # of an animation without its last frame, and of the last frame
PAIRS_FROM = 5  # from so many pictures on, each private picture stands above its reconstruction


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
    write_line(pen, (60, 34), slide.title, LetterStyle(44, INK, bold=True), wide=WIDTH - 120)
    if slide.paired:
        _, tall = _pictures(None, slide, answer.pictures, (60, 0, WIDTH - 60, 520))
        top = 106 + min(60, (520 - tall) // 3)
        write_line(pen, (60, top), "Above: the private pictures", LetterStyle(28, PRIVATE, bold=True))
        write_line(pen, (500, top), "Below: what the attacker sees", LetterStyle(28, ATTACKER, bold=True))
        write_line(pen, (WIDTH - 60, top), f"{slide.sent:,} numbers were sent", LetterStyle(28, INK), anchor="right")
        _pictures(page, slide, answer.pictures, (60, top + 46, WIDTH - 60, top + 566))
    else:
        second, _ = _pictures(page, slide, answer.pictures, (60, 152, WIDTH - 60, 672))
        write_line(pen, (60, 106), _private_words(slide), LetterStyle(28, PRIVATE, bold=True))
        write_line(pen, (second, 106), "What the attacker sees", LetterStyle(28, ATTACKER, bold=True))
        write_line(pen, (800, 330), f"{slide.sent:,}", LetterStyle(44, INK, bold=True), anchor="middle", wide=380)
        write_line(pen, (800, 386), "numbers are sent", LetterStyle(28, SOFT), anchor="middle")
        pen.polygon([(650, 446), (910, 446), (910, 430), (950, 452), (910, 474), (910, 458), (650, 458)], fill=INK)
    tone = TONES.get(slide.word, SOFT)
    big = write_line(pen, (60, 690), decibels(answer.psnr), LetterStyle(88, tone, bold=True))
    of = f"closeness (PSNR{f', mean of {len(slide.private)} pictures' if slide.several else ''})"
    write_line(pen, (big + 40, 698), slide.word[:1].upper() + slide.word[1:], LetterStyle(40, tone, bold=True))
    write_line(pen, (big + 40, 752), f"{of}; a grey picture: {decibels(slide.grey)}", LetterStyle(28, SOFT), wide=WIDTH - 100 - big)
    pen.rectangle((0, 812, WIDTH, HEIGHT), fill=WELL)
    for number, words in enumerate(wrapped(in_font(slide.settings), WIDTH - 120, font_of(24).getlength)[:2]):
        write_line(pen, (60, 824 + 34 * number), words, LetterStyle(24, SOFT))
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
    settings = wrapped(in_font(slide.settings), ACROSS - 16, font_of(13).getlength)[:3]
    top, tall = 30, 464 if slide.paired else 226
    page = Image.new("RGB", (ACROSS, top + tall + 34 + 17 * len(settings)), "white")
    pen = ImageDraw.Draw(page)
    second, end = _pictures(page, slide, still.pictures, (8, top, ACROSS - 8, top + tall))
    below = end + 6
    heads = ("Above: private", "Below: what the attacker sees") if slide.paired else (_private_words(slide), "What the attacker sees")
    write_line(pen, (8, 6), heads[0], LetterStyle(17, PRIVATE, bold=True))
    write_line(pen, (170 if slide.paired else second, 6), heads[1], LetterStyle(17, ATTACKER, bold=True))
    if still is slide.stills[-1]:
        write_line(
            pen,
            (8, below),
            f"{decibels(still.psnr)}: {slide.word}; a grey picture: {decibels(slide.grey)}",
            LetterStyle(17, INK),
            wide=ACROSS - 16,
        )
    else:
        write_line(pen, (8, below), f"step {still.step:g}, {decibels(still.psnr)}", LetterStyle(17, INK))
    for number, words in enumerate(settings):
        write_line(pen, (8, below + 26 + 17 * number), words, LetterStyle(13, SOFT))
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
                page.paste(enlarged(pictures[index], size), (x, y))
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
