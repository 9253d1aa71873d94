"""500 hostile uploads: each is refused with a message or becomes a small picture, and none delays others."""

import io
import random
import resource
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable

import pytest
from PIL import Image

from leakage.data import uploads
from leakage.data.decoder import CPU_SECONDS, MAX_SCANS, MEMORY, decode, scans
from leakage.data.errors import PictureError
from leakage.data.uploads import check_upload
from leakage.settings import ROOT

COUNT = 500
EVERY = 25  # of these one goes through the process as well, which takes a tenth of a second to start
NAMES = ["me.png", "", "../../etc/passwd", "a\nb.png", "exe\u202egnp.jpg", "<script>alert(1)</script>.png", "x" * 5000, "\0"]
NAMES += ["{0.__class__}", "%s%n", "\ud800.png", "👩‍👩‍👧.webp", "$(reboot).png", "-rf", "a\r\nSet-Cookie: a=b", "'; DROP TABLE runs; --"]
MODES = [*(("PNG", mode) for mode in ("P", "1", "L", "LA", "RGBA", "I;16")), *(("JPEG", mode) for mode in ("CMYK", "L", "YCbCr"))]
MODES += [("WEBP", "RGBA"), ("MPO", "RGB"), *(("by hand", mode) for mode in ("16 bit", "interlaced", "palette"))]
Make = Callable[[random.Random], bytes]


def encoded(image: Image.Image, kind: str, **how: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **how)
    return file.getvalue()


def speckled(rng: random.Random, mode: str = "RGB") -> Image.Image:
    """A small picture of noise, in any mode."""
    size = (rng.randrange(8, 90), rng.randrange(8, 90))
    return Image.frombytes("RGB", size, rng.randbytes(size[0] * size[1] * 3)).convert(mode)


def ordinary(rng: random.Random) -> bytes:
    """A picture as cameras and programs write it."""
    kind, coin = rng.choice(["PNG", "JPEG", "JPEG", "WEBP"]), rng.random() < 0.5
    how = {"PNG": {}, "JPEG": {"progressive": coin, "quality": rng.randrange(1, 96)}, "WEBP": {"lossless": coin}}
    return encoded(speckled(rng), kind, **how[kind])


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(header: tuple[int, ...], rows: bytes, *more: bytes) -> bytes:
    """A PNG by hand; the header is (width, height, bits, colour, 0, 0, interlaced)."""
    parts = [chunk(b"IHDR", struct.pack(">IIBBBBB", *header)), *more, chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def truncated(rng: random.Random) -> bytes:
    data = ordinary(rng)
    return data[: rng.randrange(len(data))]


def mutated(rng: random.Random) -> bytes:
    """Some bytes are others: anywhere, or in the header."""
    data = bytearray(ordinary(rng))
    last = rng.choice([40, 200, len(data)])
    for _ in range(rng.choice([1, 3, 30])):
        data[rng.randrange(min(last, len(data)))] = rng.randrange(256)
    return bytes(data)


def another_kind(rng: random.Random) -> bytes:
    kinds = ["GIF", "BMP", "TIFF", "PPM", "TGA", "ICO", "PDF", "ICNS", "JPEG2000", "SGI", "PCX", "DDS"]
    words = [b"<html><body>", b"%PDF-1.7", b"\x7fELF", b"#!/bin/sh\n", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"\0\0\0\x18ftypheic"]
    return rng.choice([lambda: encoded(speckled(rng), rng.choice(kinds)), lambda: rng.choice(words) + rng.randbytes(99)])()


def bomb(rng: random.Random) -> bytes:
    """Small files of many pixels, or of a long text."""
    side = rng.choice([1200, 4_100, 12_000, 65_535])
    if rng.random() < 0.3:
        text = zlib.compress(bytes(rng.choice([10**5, 10**7])))
        return png((16, 16, 8, 0, 0, 0, 0), bytes(17 * 16), chunk(rng.choice([b"zTXt", b"iCCP"]), b"name\0\0" + text))
    return png((side, side, 1, 0, 0, 0, 0), bytes((side + 15) // 8 * min(side, 1200)))


def odd_exif(rng: random.Random) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 65_535])
    exif[rng.choice([0x010E, 0x013B, 0x9286])] = rng.choice(["text", "\0" * 40, "é" * 300])
    body = exif.tobytes() if rng.random() < 0.5 else b"Exif\0\0" + rng.choice([b"II*\0", b"MM\0*", b""]) + rng.randbytes(rng.randrange(80))
    return encoded(speckled(rng), rng.choice(["PNG", "JPEG", "WEBP"]), exif=body)


def many_scans(rng: random.Random, side: int = 64, count: int = 0) -> bytes:
    """A progressive JPEG that repeats its last scan many times."""
    data = encoded(Image.new("RGB", (side, side), (200, 30, 30)), "JPEG", progressive=True)
    last = data.rindex(b"\xff\xda")
    return data[:last] + data[last:-2] * (count or rng.choice([1, 10, 60, 900])) + data[-2:]


def every_mode(rng: random.Random) -> bytes:
    """Palettes, CMYK, grey, 1 and 16 bits, alpha, interlaced."""
    kind, mode = rng.choice(MODES)
    if mode == "16 bit":
        return png((16, 16, 16, 2, 0, 0, 0), b"".join(b"\0" + rng.randbytes(96) for _ in range(16)))
    if mode == "interlaced":
        return png((8, 8, 8, 0, 0, 0, 1), b"".join(b"\0" + rng.randbytes(n) for n in (1, 1, 2, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8)))
    if mode == "palette":  # of fewer colours than its pixels name
        return png((8, 8, 8, 3, 0, 0, 0), b"".join(b"\0" + rng.randbytes(8) for _ in range(8)), chunk(b"PLTE", rng.randbytes(6)))
    if mode == "I;16":
        return encoded(Image.frombytes("I;16", (16, 16), rng.randbytes(512)), kind)
    transparent = {"transparency": rng.randrange(256)} if mode == "P" and rng.random() < 0.5 else {}
    return encoded(speckled(rng, mode), kind, **transparent)


def huge_header(rng: random.Random) -> bytes:
    """Sizes that the file does not hold."""
    side = rng.choice([0, 1, 7, 4000, 30_000, 65_535])
    jpeg = bytearray(encoded(speckled(rng), "JPEG"))
    at = jpeg.index(b"\xff\xc0") + 5
    jpeg[at : at + 4] = struct.pack(">HH", side, side)
    webp = b"RIFF\x1e\0\0\0WEBPVP8X\x0a\0\0\0" + bytes([rng.randrange(64), 0, 0, 0]) + b"\xff\xff\xff\xff\xff\xff" + rng.randbytes(4)
    return rng.choice([bytes(jpeg), webp, png((2**31 - 1, 2**31 - 1, 8, 2, 0, 0, 0), b"\0"), png((side, side, 16, 6, 0, 0, 1), b"\0")])


def animated(rng: random.Random) -> bytes:
    frames = [Image.new("RGB", (20, 20), (number, 0, 0)) for number in range(rng.randrange(2, 30))]
    return encoded(frames[0], rng.choice(["GIF", "WEBP", "PNG"]), save_all=True, append_images=frames[1:])


def polyglot(rng: random.Random) -> bytes:
    """One file that is two."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("evil.py", "print(1)")
    tails = [archive.getvalue(), b"<script>alert(1)</script>", b"%PDF-1.7\n", b"\xff\xda" * 500, ordinary(rng)]
    heads = [b"", b"", b"GIF89a", b"%PDF-1.7\n", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF\0\0\0\0WEBP"]
    return rng.choice(heads) + ordinary(rng) + rng.choice(tails)


def nothing(rng: random.Random) -> bytes:
    return rng.choice([b"", b"\0", bytes(rng.randrange(5000)), b"\xff\xd8\xff\xd9", b"\x89PNG\r\n\x1a\n", b"\xff" * 3000])


KINDS: list[Make] = [ordinary, truncated, mutated, mutated, another_kind, bomb, odd_exif]
KINDS += [many_scans, every_mode, every_mode, huge_header, animated, polyglot, nothing]


def upload(number: int) -> tuple[bytes, str]:
    """The upload of that number: its bytes and its name."""
    rng = random.Random(number)
    return KINDS[number % len(KINDS)](rng), rng.choice(NAMES)


def judged(data: bytes, name: str, look: Callable[[bytes, str], bytes]) -> str | tuple[int, int]:
    """The sentence that refuses it, or the size of the picture that it becomes, after all that holds of both."""
    try:
        answer = look(data, name)
    except PictureError as error:
        words = str(error)
        assert words.endswith(".")
        assert words.isprintable()
        assert len(words) < 300
        return words
    with Image.open(io.BytesIO(answer)) as image:
        image.load()
        assert (image.format, image.mode, image.info) == ("PNG", "RGB", {})
        assert 8 <= image.width == image.height <= 256
        return image.size


def seconds_of_children() -> float:
    """CPU time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")  # it speaks of odd metadata, into a log
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.long
def test_500_uploads_are_each_a_sentence_or_a_small_picture() -> None:
    refused, slowest = 0, 0.0
    for number in range(COUNT):
        data, name = upload(number)
        begun = time.process_time()
        found = judged(data, uploads.printable(name)[: uploads.NAME] or "Your picture", decode)
        slowest = max(slowest, time.process_time() - begun)
        refused += isinstance(found, str)
        if number % EVERY == 0:
            before = seconds_of_children()
            assert judged(data, name, check_upload) == found, f"upload {number}"
            slowest = max(slowest, seconds_of_children() - before)
    assert slowest < CPU_SECONDS
    assert COUNT / 5 < refused < COUNT * 4 / 5  # else the generator makes one kind only


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.long
def test_whatever_a_file_is_called_its_sentence_is_one_line_and_its_picture_the_same(name: str) -> None:
    assert isinstance(judged(b"words", name, check_upload), str)
    assert judged(png((8, 8, 8, 0, 0, 0, 0), bytes(9 * 8)), name, decode) == (8, 8)


# ---------------------------------------------------------------- scans


def test_the_scans_of_a_jpeg_are_counted_as_they_are_decoded() -> None:
    rng = random.Random(0)
    plain = encoded(Image.new("RGB", (64, 64), "red"), "JPEG")
    assert scans(plain) == 1
    progressive = scans(encoded(Image.new("RGB", (64, 64), "red"), "JPEG", progressive=True))
    assert progressive == 10  # libjpeg's own script for three colours
    assert scans(many_scans(rng, count=7)) == progressive + 6
    assert scans(plain + b"\xff\xda\0\2" * 999) == 1  # a film behind the picture, as some phones append it
    comment = b"\xff\xfe" + struct.pack(">H", 2 + 4 * 999) + b"\xff\xda\0\2" * 999
    assert scans(plain[:2] + comment + plain[2:]) == 1
    views = encoded(Image.new("RGB", (64, 64), "red"), "MPO", save_all=True, append_images=[Image.new("RGB", (64, 64), "blue")] * 99)
    assert scans(views) == 1


@pytest.mark.parametrize("kind", ["JPEG", "MPO"])
def test_a_jpeg_of_very_many_scans_is_refused_before_it_is_decoded(kind: str) -> None:
    data = many_scans(random.Random(0), side=2000, count=2000)
    if kind == "MPO":
        views = encoded(Image.new("RGB", (64, 64)), "MPO", save_all=True, append_images=[Image.new("RGB", (64, 64))])
        info = views.index(b"\xff\xe2")  # what makes it an MPO
        data = data[:2] + views[info : info + 2 + int.from_bytes(views[info + 2 : info + 4], "big")] + data[2:]
    begun = time.process_time()
    found = judged(data, "holiday.jpg", decode)
    assert found == f"holiday.jpg is a JPEG of over {MAX_SCANS} scans; ordinary ones have about 10. Save it as PNG and choose that."
    assert time.process_time() - begun < 4.0


# ---------------------------------------------------------------- the process


def limited(code: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Python code in a process with the limits of the decoder."""
    setup = "import resource, sys; from leakage.data import decoder; decoder.limit_process(decoder.CPU_SECONDS, decoder.MEMORY)\n"
    return subprocess.run([sys.executable, "-c", setup + code], input=data, cwd=ROOT, capture_output=True, timeout=240, check=False)


@pytest.mark.long
def test_a_process_that_takes_too_long_is_ended() -> None:
    before = seconds_of_children()
    assert limited("while True: pass").returncode < 0  # by a signal
    assert CPU_SECONDS / 2 < seconds_of_children() - before < 2 * CPU_SECONDS  # the kernel looks now and then, by a clock of its own


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no limit of the address space")
@pytest.mark.long
def test_a_process_that_takes_too_much_memory_is_ended_and_its_file_refused_with_a_sentence() -> None:
    assert b"MemoryError" in limited(f"bytearray({MEMORY})").stderr
    code = """
from leakage.data.uploads import check_upload
resource.setrlimit(resource.RLIMIT_AS, (2**28, 2**28))  # of the machine: a quarter of what the decoder would allow itself
try:
    check_upload(sys.stdin.buffer.read(), "large.png")
except ValueError as refusal:
    sys.stdout.write(str(refusal))
"""
    told = limited(code, png((8000, 6000, 8, 6, 0, 0, 0), bytes(32_001 * 6000)))  # 48 megapixels of red, green, blue and alpha: 192 MB
    assert told.stdout.decode() == (
        "large.png takes more time or memory to decode than a picture does. Save it again as PNG and choose that."
    ), told.stderr


def test_a_process_that_waits_for_too_long_is_ended_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "PATIENCE", 0.001)
    found = judged(b"words", "late.png", check_upload)
    assert isinstance(found, str)
    assert found.startswith("late.png could not be decoded in")


def test_the_process_has_limits_leaves_no_copy_on_the_disk_and_brings_neither_torch_nor_numpy() -> None:
    limits = limited("print(*(resource.getrlimit(what) for what in (resource.RLIMIT_CPU, resource.RLIMIT_CORE)))")
    assert limits.stdout == f"({CPU_SECONDS}, {CPU_SECONDS}) (0, 0)\n".encode()
    assert limited("print({'torch', 'numpy'} & {*sys.modules})").stdout == b"set()\n"


def test_ten_megabytes_and_more_are_refused_without_a_process() -> None:
    before = seconds_of_children()
    assert judged(bytes(10 * 2**20 + 1), "film.png", check_upload) == (
        "film.png has 10.0 MB; at most 10 MB are allowed. Choose a smaller copy."
    )
    assert seconds_of_children() == before
