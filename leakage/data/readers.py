"""How a data set's file is read: idx, CIFAR's binary and pickled versions, a zip of PNGs. Nothing that a file says is executed. No torch.

Functions take a path and `stamp`, when the file changed (ns), so that a cache forgets a file that was replaced. On a damaged file they
raise one of `BROKEN`. Arrays are read-only.
"""

import csv
import gzip
import lzma
import os
import pickle
import struct
import zipfile
import zlib
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from leakage.data import face_files

Pixels: TypeAlias = NDArray[np.uint8]  # (H, W, C), or (N, H, W, C) for many; C is 1 or 3
Labels: TypeAlias = NDArray[np.int64]  # (N,)

SIDE = 32  # pixels, CIFAR
PLANES = 3 * SIDE * SIDE  # bytes of one CIFAR picture: its R, G and B planes
BROKEN: tuple[type[Exception], ...] = (
    *(OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RuntimeError, SyntaxError, MemoryError),
    *(lzma.LZMAError, zlib.error, zipfile.BadZipFile, pickle.UnpicklingError, struct.error),
)


class Rows(NamedTuple):
    """The first pictures of a file (N, H, W, C) with their labels (N,)."""

    pixels: Pixels
    labels: Labels


class Member(NamedTuple):
    """One PNG in a zip."""

    id: str
    path: str
    folder: str


@lru_cache(maxsize=8)
def length(path: Path, stamp: int) -> int:
    """How many pictures the file holds, at least 1. Unpacks nothing of a binary file or a zip."""
    if path.suffix == ".zip":
        return len(members(path, stamp))
    if ".bin" not in path.name:
        return len(_whole(path, stamp).labels)
    count, rest = divmod(_xz_size(path) if path.suffix == ".xz" else path.stat().st_size, _record(path))
    if rest or not count:
        raise ValueError(f"expected whole records of {_record(path)} bytes, {rest} bytes are left over after {count}")
    return count


@lru_cache(maxsize=8)
def rows(path: Path, stamp: int, stop: int, classes: tuple[str, ...]) -> Rows:
    """The first `stop` pictures, or more where a format is read as a whole. `classes` are the names by label: the folders of a zip."""
    if path.suffix == ".zip":
        found = _unzip(path, members(path, stamp)[:stop], classes)
    elif ".bin" in path.name:
        with _open(path) as file:
            table = np.frombuffer(file.read(stop * _record(path)), np.uint8).reshape(stop, _record(path))
        found = Rows(_planes(table[:, -PLANES:]), table[:, -PLANES - 1].astype(np.int64))  # CIFAR-100: coarse label, then the fine one
    else:
        found = _whole(path, stamp)
    if not 0 <= found.labels.min() <= found.labels.max() < len(classes):
        raise ValueError(f"expected labels from 0 to {len(classes) - 1}, it holds {found.labels.min()} to {found.labels.max()}")
    for array in found:
        array.setflags(write=False)
    return found


@lru_cache(maxsize=4)
def members(path: Path, _stamp: int) -> tuple[Member, ...]:
    """Every PNG in a zip of class folders.

    Where a .csv beside it tells the first test pictures, they come first and have their number as id, so that the id means the same picture
    in a complete set; the others are called "class/name.png", which no complete set knows.
    """
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".png"))
    first: list[str] = []
    for table in sorted(path.parent.glob("*.csv")):
        with table.open(newline="") as file:
            first += [row["path"] for row in csv.DictReader(file)]
    if not names or not set(first) <= set(names):
        raise ValueError("expected PNG files in class folders, and every one that the .csv beside it names")
    rest = [name for name in names if name not in first]
    called = [(str(index), name) for index, name in enumerate(first)] + [("/".join(name.split("/")[-2:]), name) for name in rest]
    return tuple(Member(id, name, name.split("/")[-2]) for id, name in called)


# ---------------------------------------------------------------- one function per format


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.open(path))
    return lzma.open(path) if path.suffix == ".xz" else path.open("rb")


def _record(path: Path) -> int:
    """Bytes of one record of the official binary version: one label in CIFAR-10, two in CIFAR-100."""
    return PLANES + (1 if path.name.startswith(("test_batch", "data_batch")) else 2)


def _planes(table: Pixels) -> Pixels:
    """CIFAR's planes as pictures."""
    return np.ascontiguousarray(table.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1))  # (N, 32, 32, 3)


def _xz_size(path: Path) -> int:
    """Unpacked bytes of an .xz file by the index at its end, so that a file cut short is noticed before any of it is shown.

    Source: The .xz File Format, version 1.2.1, sections 2.1.2 and 4.
    """
    with path.open("rb") as file:
        file.seek(-12, os.SEEK_END)
        footer = file.read(12)
        if footer[-2:] != b"YZ":
            raise ValueError("its end is missing")
        size = 4 * (int.from_bytes(footer[4:8], "little") + 1)
        file.seek(-12 - size, os.SEEK_END)
        index = file.read(size)
    numbers, value, shift = list[int](), 0, 0
    for byte in index[1:-4]:  # after the indicator, before the checksum; seven bits per byte, lowest first
        value, shift = value | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            numbers, value, shift = [*numbers, value], 0, 0
    return sum(numbers[2 : 1 + 2 * numbers[0] : 2])  # the number of blocks, then the packed and the unpacked size of each


@lru_cache(maxsize=4)
def _whole(path: Path, _stamp: int) -> Rows:
    if path.suffix == ".mat":
        faces = face_files.olivetti(path)
        return Rows(faces, np.arange(len(faces)) // face_files.EACH)
    return _idx(path) if "idx3" in path.name else _pickled(path)


def _labels_of(pictures: Path) -> Path:
    """The file with the labels of pictures in MNIST's format, if it is not compressed."""
    return pictures.with_name(pictures.name.removesuffix(".gz").replace("images-idx3", "labels-idx1"))


def files_of(path: Path) -> list[Path]:
    """All files that are read with this one: of pictures in MNIST's format their labels lie in another."""
    bare = _labels_of(path)
    return [path, *(file for file in (bare, bare.with_name(f"{bare.name}.gz")) if file != path and file.is_file())]


def _idx(path: Path) -> Rows:
    """MNIST's two idx files, plain or gzipped."""
    bare = _labels_of(path)
    partner = bare if bare.exists() else bare.with_name(f"{bare.name}.gz")
    with _open(path) as file:
        pixels = file.read()
    with _open(partner) as file:
        labels = file.read()
    count, *shape = (int.from_bytes(pixels[at : at + 4], "big") for at in (4, 8, 12))
    if pixels[:4] != b"\0\0\x08\x03" or labels[:4] != b"\0\0\x08\x01" or shape != [28, 28] or count < 1:
        raise ValueError(f"expected idx files of pictures 28 by 28 and of labels, the header gives {count} of {shape}")
    if len(pixels) != 16 + count * 28 * 28 or len(labels) != 8 + count:
        raise ValueError(f"expected {count} pictures and labels, the files hold {len(pixels)} and {len(labels)} bytes")
    pictures = np.frombuffer(pixels, np.uint8, offset=16).reshape(count, 28, 28, 1)  # (N, 28, 28, 1)
    return Rows(pictures, np.frombuffer(labels, np.uint8, offset=8).astype(np.int64))


class _Array:
    """Stands for numpy's array and dtype while unpickling and keeps what they were given; no code of a pickle's choosing runs."""

    state: tuple[Any, ...] = ()

    def __init__(self, *given: object) -> None:
        self.given = given

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state


class _DataUnpickler(pickle.Unpickler):
    """Unpickles numbers, text, lists, dicts and numpy arrays (as `_Array`). Raises UnpicklingError when a file asks for anything else."""

    def find_class(self, module: str, name: str) -> type:
        if module not in ("numpy", "numpy.core.multiarray", "numpy._core.multiarray") or name not in ("_reconstruct", "ndarray", "dtype"):
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which pictures do not need")
        return _Array


def _pickled(path: Path) -> Rows:
    """CIFAR's version for Python, which torchvision downloads."""
    with path.open("rb") as file:
        batch = _DataUnpickler(file, encoding="latin1").load()
    labels = np.array(batch["fine_labels" if "fine_labels" in batch else "labels"], np.int64)
    _, shape, dtype, fortran, raw = batch["data"].state
    if dtype.given[0] != "u1" or labels.ndim != 1 or len(labels) < 1 or tuple(shape) != (len(labels), PLANES):
        raise ValueError(f"expected u1 of shape ({len(labels)}, {PLANES}), it holds {dtype.given[0]} of shape {shape}")
    table = np.frombuffer(raw if isinstance(raw, bytes) else raw.encode("latin1"), np.uint8)
    return Rows(_planes(table.reshape(shape, order="F" if fortran else "C")), labels)


def _unzip(path: Path, wanted: tuple[Member, ...], classes: tuple[str, ...]) -> Rows:
    pixels = np.empty((len(wanted), SIDE, SIDE, 3), np.uint8)
    with zipfile.ZipFile(path) as archive:
        for index, member in enumerate(wanted):
            with archive.open(member.path) as file, Image.open(file, formats=("PNG",)) as image:
                if image.size != (SIDE, SIDE):
                    raise ValueError(f"{member.path}: expected {SIDE} by {SIDE} pixels, got {image.size}")
                pixels[index] = np.asarray(image.convert("RGB"))
    return Rows(pixels, np.array([classes.index(member.folder.replace("_", " ")) for member in wanted], np.int64))
