"""Readers of data sets: idx files, CIFAR's binary and pickled versions, zips of PNGs. No code in a file is executed. No torch.

`stamp` is the time of a file's last change in nanoseconds; caches use it to notice that a file was replaced. The functions raise one of the
errors in BROKEN if a file is damaged. The arrays that they return are read-only.
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
PLANES = 3 * SIDE * SIDE  # bytes of a CIFAR picture: its R, G and B planes
BROKEN: tuple[type[Exception], ...] = (
    *(OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RuntimeError, SyntaxError, MemoryError),
    *(lzma.LZMAError, zlib.error, zipfile.BadZipFile, pickle.UnpicklingError, struct.error),
)


class Rows(NamedTuple):
    """Pictures (N, H, W, C) and their labels (N,)."""

    pixels: Pixels
    labels: Labels


class Member(NamedTuple):
    """A PNG in a zip file."""

    id: str
    path: str
    folder: str


@lru_cache(maxsize=8)
def length(path: Path, stamp: int) -> int:
    """Return the number of pictures in a file, at least 1; binary files and zip files are not unpacked for this."""
    if path.suffix == ".zip":
        return len(members(path, stamp))
    if ".bin" not in path.name:
        return len(_whole(path, stamp).labels)
    count, rest = divmod(_xz_size(path) if path.suffix == ".xz" else path.stat().st_size, _record(path))
    if rest or not count:
        raise ValueError(f"expected complete records of {_record(path)} bytes, {rest} bytes are left over after {count}")
    return count


@lru_cache(maxsize=8)
def rows(path: Path, stamp: int, stop: int, classes: tuple[str, ...]) -> Rows:
    """Return the first pictures of a file with their labels.

    Args:
        path: The file.
        stamp: The time of its last change.
        stop: The number of pictures; formats that can only be read completely give all pictures.
        classes: The class names by label, which are also the folders in a zip file.
    """
    if path.suffix == ".zip":
        first = _unzip(path, members(path, stamp)[:stop], classes)
    elif ".bin" in path.name:
        with _open(path) as file:
            table = np.frombuffer(file.read(stop * _record(path)), np.uint8).reshape(stop, _record(path))
        first = Rows(_planes(table[:, -PLANES:]), table[:, -PLANES - 1].astype(np.int64))  # CIFAR-100: coarse label, then fine label
    else:
        first = _whole(path, stamp)
    if not 0 <= first.labels.min() <= first.labels.max() < len(classes):
        raise ValueError(f"expected labels from 0 to {len(classes) - 1}, got {first.labels.min()} to {first.labels.max()}")
    for array in first:
        array.setflags(write=False)
    return first


@lru_cache(maxsize=4)
def members(path: Path, _stamp: int) -> tuple[Member, ...]:
    """Return all PNGs in a zip file of class folders.

    If a .csv file beside it lists the first test pictures of the data set, these come first, and their ids are their indices: the same id
    then means the same picture in a complete test set. The other pictures have ids like "class/name.png", which a complete set lacks.
    """
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".png"))
    first: list[str] = []
    for table in sorted(path.parent.glob("*.csv")):
        with table.open(newline="") as file:
            first += [row["path"] for row in csv.DictReader(file)]
    if not names or not set(first) <= set(names):
        raise ValueError("expected PNG files in class folders, and every file that the .csv beside it names")
    rest = [name for name in names if name not in first]
    paths = [(str(index), name) for index, name in enumerate(first)] + [("/".join(name.split("/")[-2:]), name) for name in rest]
    return tuple(Member(id, path, path.split("/")[-2]) for id, path in paths)


# ---------------------------------------------------------------- one function per format


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.open(path))
    return lzma.open(path) if path.suffix == ".xz" else path.open("rb")


def _record(path: Path) -> int:
    """Return the bytes that a picture takes in CIFAR's binary version: its colors, and one label (CIFAR-10) or two (CIFAR-100)."""
    return PLANES + (1 if path.name.startswith(("test_batch", "data_batch")) else 2)


def _planes(planes: Pixels) -> Pixels:
    """Return CIFAR's planes of red, green and blue (N, 3072) as pictures (N, 32, 32, 3)."""
    return np.ascontiguousarray(planes.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1))  # (N, 32, 32, 3)


def _xz_size(path: Path) -> int:
    """Return the unpacked size of an .xz file in bytes, from the index at its end, so that a file that was cut short is noticed at once.

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
    for byte in index[1:-4]:  # after the indicator, before the checksum: numbers with seven bits in each byte, the lowest first
        value, shift = value | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            numbers, value, shift = [*numbers, value], 0, 0
    return sum(numbers[2 : 1 + 2 * numbers[0] : 2])  # the number of records, then the packed and the unpacked size of each block


@lru_cache(maxsize=4)
def _whole(path: Path, _stamp: int) -> Rows:
    if path.suffix == ".mat":
        faces = face_files.olivetti(path)
        return Rows(faces, np.arange(len(faces)) // face_files.EACH)
    return _idx(path) if "idx3" in path.name else _pickled(path)


def _labels_of(pictures: Path) -> Path:
    """Return the uncompressed file with the labels of pictures in MNIST's format."""
    return pictures.with_name(pictures.name.removesuffix(".gz").replace("images-idx3", "labels-idx1"))


def files_of(path: Path) -> list[Path]:
    """Return a file and the file with its labels, if the format (MNIST's) has a separate one."""
    labels = _labels_of(path)
    return [path, *(file for file in (labels, labels.with_name(f"{labels.name}.gz")) if file != path and file.is_file())]


def _idx(path: Path) -> Rows:
    """Read MNIST's two idx files, uncompressed or with gzip."""
    plain = _labels_of(path)
    labels_file = plain if plain.exists() else plain.with_name(f"{plain.name}.gz")
    with _open(path) as file:
        pixels = file.read()
    with _open(labels_file) as file:
        labels = file.read()
    count, *shape = (int.from_bytes(pixels[offset : offset + 4], "big") for offset in (4, 8, 12))
    if pixels[:4] != b"\0\0\x08\x03" or labels[:4] != b"\0\0\x08\x01" or shape != [28, 28] or count < 1:
        raise ValueError(f"expected idx files of pictures 28 by 28 and of labels, the header says {count} of {shape}")
    if len(pixels) != 16 + count * 28 * 28 or len(labels) != 8 + count:
        raise ValueError(f"expected {count} pictures and labels, the files have {len(pixels)} and {len(labels)} bytes")
    pictures = np.frombuffer(pixels, np.uint8, offset=16).reshape(count, 28, 28, 1)  # (N, 28, 28, 1)
    return Rows(pictures, np.frombuffer(labels, np.uint8, offset=8).astype(np.int64))


class _Array:
    """Replaces numpy's array and dtype during unpickling and keeps their arguments, so that no code in a pickle is executed."""

    state: tuple[Any, ...] = ()

    def __init__(self, *arguments: object) -> None:
        self.arguments = arguments

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state


class _DataUnpickler(pickle.Unpickler):
    """An unpickler for numbers, text, lists, dicts and numpy arrays (as `_Array`). It raises UnpicklingError for every other type."""

    def find_class(self, module: str, name: str) -> type:
        if module not in ("numpy", "numpy.core.multiarray", "numpy._core.multiarray") or name not in ("_reconstruct", "ndarray", "dtype"):
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which pictures do not need")
        return _Array


def _pickled(path: Path) -> Rows:
    """Read a file of CIFAR's Python version, which torchvision downloads."""
    with path.open("rb") as file:
        batch = _DataUnpickler(file, encoding="latin1").load()
    labels = np.array(batch["fine_labels" if "fine_labels" in batch else "labels"], np.int64)
    _, shape, dtype, fortran, raw = batch["data"].state
    if dtype.arguments[0] != "u1" or labels.ndim != 1 or len(labels) < 1 or tuple(shape) != (len(labels), PLANES):
        raise ValueError(f"expected u1 of shape ({len(labels)}, {PLANES}), got {dtype.arguments[0]} of shape {shape}")
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
