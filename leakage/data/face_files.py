"""The files of two data sets of faces: Sam Roweis's MAT-5 file of the Olivetti faces, and LFW's folder for each person. No torch.

The functions raise one of the errors in `readers.BROKEN` if a file is damaged.
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
MOST = 2**26  # bytes of an unpacked file
HEADER = 128  # bytes of text and version before the first element
COMPRESSED, MATRIX, BYTES = 15, 14, 2  # kinds of elements


class Photograph(NamedTuple):
    """A file in a person's folder."""

    id: str
    path: Path
    person: str


def olivetti(path: Path) -> NDArray[np.uint8]:
    """Return the Olivetti faces (N, 64, 64, 1), ten of each person in a row.

    Source: MATLAB, MAT-File Format, version 5: tags, small elements, compressed elements.
    """
    data = path.read_bytes()
    kind, size = struct.unpack("<II", data[HEADER : HEADER + 8])
    body = data[HEADER + 8 : HEADER + 8 + size]
    if data[HEADER - 2 : HEADER] != b"IM" or len(body) < size:
        raise ValueError("expected a complete MAT-5 file")
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
    return np.ascontiguousarray(columns.reshape(count, SIDE, SIDE, 1).transpose(0, 2, 1, 3))  # stored column by column


def _elements(body: bytes) -> list[tuple[int, bytes]]:
    """Return the data type (a number) and the content of every data element in `body`, a MAT-5 file without its header, in order."""
    elements, offset = [], 0
    while offset + 8 <= len(body):
        kind, size = struct.unpack("<II", body[offset : offset + 8])
        if kind >> 16:  # a small element: at most four bytes, inside the tag
            elements.append((kind & 0xFFFF, body[offset + 4 : offset + 4 + (kind >> 16)]))
            offset += 8
        else:
            elements.append((kind, body[offset + 8 : offset + 8 + size]))
            offset += 8 + -(-size // 8) * 8
    return elements


@lru_cache(maxsize=2)
def photographs(folder: Path, _stamp: int) -> tuple[Photograph, ...]:
    """Return all JPEG files in the folders of persons, sorted by person and file; the id of a photograph is "person/file"."""
    people = sorted(path for path in folder.iterdir() if path.is_dir())
    files = [Photograph(f"{person.name}/{file.name}", file, person.name) for person in people for file in sorted(person.glob("*.jpg"))]
    if not files:
        raise ValueError("expected a folder with JPEG files for every person")
    return tuple(files)


def open_square(photograph: Photograph) -> NDArray[np.uint8]:
    """Return the central square of a photograph, uint8 (S, S, 3)."""
    with Image.open(photograph.path, formats=("JPEG",)) as image:
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        return np.asarray(image.convert("RGB").crop((left, top, left + side, top + side)))
