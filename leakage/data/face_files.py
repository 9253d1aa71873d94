"""Faces with names: Sam Roweis's MAT-5 file of the Olivetti faces, and LFW's folders of photographs, one for each person. No torch.

On a damaged file they raise one of `readers.BROKEN`.
"""

import struct
import zlib
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIDE, EACH = 64, 10  # pixels; pictures of each of the forty people
MOST = 2**26  # bytes that a file may unpack to
HEADER = 128  # bytes of text and version before the first element
COMPRESSED, MATRIX, BYTES = 15, 14, 2  # kinds of elements


class Photograph(NamedTuple):
    """One file in a person's folder."""

    id: str
    path: Path
    person: str


def olivetti(path: Path) -> NDArray[np.uint8]:
    """The faces (N, 64, 64, 1); ten of each person, one person after the other.

    Source: MATLAB, MAT-File Format, version 5: tags, small elements, compressed elements.
    """
    data = path.read_bytes()
    kind, size = struct.unpack("<II", data[HEADER : HEADER + 8])
    body = data[HEADER + 8 : HEADER + 8 + size]
    if data[HEADER - 2 : HEADER] != b"IM" or len(body) < size:
        raise ValueError("expected a whole MAT-5 file")
    if kind == COMPRESSED:
        unpacked = zlib.decompressobj().decompress(body, MOST)
        kind, body = struct.unpack("<I", unpacked[:4])[0], unpacked[8:]
    parts = _elements(body)
    if kind != MATRIX or len(parts) != 4 or parts[3][0] != BYTES:
        raise ValueError("expected one matrix of bytes")
    columns = np.frombuffer(parts[3][1], np.uint8)
    height, count = struct.unpack("<ii", parts[1][1])
    if height != SIDE * SIDE or count < EACH or len(columns) != height * count:
        raise ValueError(f"expected columns of {SIDE * SIDE} pixels, it holds {height} by {count} and {len(columns)} bytes")
    return np.ascontiguousarray(columns.reshape(count, SIDE, SIDE, 1).transpose(0, 2, 1, 3))  # they lie column by column


def _elements(body: bytes) -> list[tuple[int, bytes]]:
    """Kind and content of every element one after the other."""
    found, place = [], 0
    while place + 8 <= len(body):
        kind, size = struct.unpack("<II", body[place : place + 8])
        if kind >> 16:  # up to four bytes stand in the tag itself
            found.append((kind & 0xFFFF, body[place + 4 : place + 4 + (kind >> 16)]))
            place += 8
        else:
            found.append((kind, body[place + 8 : place + 8 + size]))
            place += 8 + -(-size // 8) * 8
    return found


@lru_cache(maxsize=2)
def photographs(folder: Path, _stamp: int) -> tuple[Photograph, ...]:
    """Every JPEG, person by person in the order of their names; the id is "person/file"."""
    people = sorted(path for path in folder.iterdir() if path.is_dir())
    found = [Photograph(f"{one.name}/{file.name}", file, one.name) for one in people for file in sorted(one.glob("*.jpg"))]
    if not found:
        raise ValueError("expected a folder with JPEG files for every person")
    return tuple(found)


def open_square(photograph: Photograph) -> NDArray[np.uint8]:
    """Its pixels (S, S, 3): the square in its middle."""
    with Image.open(photograph.path, formats=("JPEG",)) as image:
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        return np.asarray(image.convert("RGB").crop((left, top, left + side, top + side)))
