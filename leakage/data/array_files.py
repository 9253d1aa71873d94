"""Arrays by name from .npz and .safetensors files, without executing anything that a file contains. No torch."""

import json
import math
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.lib import format as npy

from leakage.data.errors import BROKEN, UpdateFileError

MAX_BYTES = 200 * 2**20  # of a file, and of the arrays in it
MAX_ARRAYS = 10_000
MAX_HEADER = 8 * 2**20  # bytes of the header of a .safetensors file
MAX_NPY_HEADER = 10_000  # bytes, as numpy limits it
MAX_NAME = 300  # letters
KINDS = (".npz", ".safetensors")
SAFETENSORS: dict[str, np.dtype[Any]] = {
    **{"F64": np.dtype("<f8"), "F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")},
    **{"I64": np.dtype("<i8"), "I32": np.dtype("<i4"), "I16": np.dtype("<i2"), "I8": np.dtype("i1")},
    **{"U8": np.dtype("u1"), "BOOL": np.dtype("?")},
}
Arrays: TypeAlias = dict[str, np.ndarray[Any, Any]]

SAVE = (
    "Expected is a .npz or a .safetensors file. Where the file came from, run `state = torch.load(file, weights_only=True)` and "
    "`safetensors.torch.save_file(state, 'after.safetensors')`."
)
ADAPTERS = "Expected is a .npz or a .safetensors file. Record the update with an adapter: see docs/import_updates.md."
PICKLED = "{} is a pickle, which would run code when it is read. " + SAVE
SINGLE = "{} is a single array (.npy). Save all arrays by their names with numpy.savez."
OTHER = "{} is no .npz or .safetensors file. {}"
TOO_LARGE = f"{{}} has {{:.0f}} MB; at most {MAX_BYTES // 2**20} MB are allowed. Leave out what is no weight or buffer of the network."
DAMAGED = "{} is damaged or cut short ({}). Save it again."
SHAPE = "{}: the array {} says that it has the shape {} and type {}, which does not fit its {} bytes. Save it again."


class Numbers(NamedTuple):
    """The arrays of a file, and the name of the narrowest floating-point type among them."""

    arrays: Arrays
    """In the file's order; bfloat16 is widened to float32."""
    width: str
    """"float64", "float32", "float16" or "bfloat16"; "" where no array has floating-point numbers."""


def read_arrays(path: Path) -> Numbers:
    """Read the arrays of a .npz or a .safetensors file.

    Args:
        path: the file. Its first bytes decide what it is, not its name.

    Raises:
        UpdateFileError: the file is of another kind, too large or damaged, or holds objects or numbers that are not finite. The message is
            a sentence that says what to do.
    """
    with path.open("rb") as file:
        return read_opened(path.name, file, path.stat().st_size)


def read_opened(name: str, file: IO[bytes], size: int) -> Numbers:
    """Read the arrays of an opened file, as `read_arrays`.

    Args:
        name: of the file, for messages.
        file: at its beginning.
        size: in bytes.

    Raises:
        UpdateFileError: as `read_arrays`.
    """
    if size > MAX_BYTES:
        raise UpdateFileError(TOO_LARGE.format(name, size / 2**20))
    start = file.read(16)
    file.seek(0)
    read = _reader(name, start, size)
    try:
        return _checked(name, read(name, file))
    except UpdateFileError:
        raise
    except (*BROKEN, zipfile.BadZipFile, NotImplementedError, RuntimeError, RecursionError) as error:
        raise UpdateFileError(DAMAGED.format(name, " ".join(str(error).split())[:100])) from None


def _reader(name: str, start: bytes, size: int) -> Callable[[str, IO[bytes]], list[tuple[str, str, np.ndarray[Any, Any]]]]:
    """Return the function that reads a file with these first bytes. Raises UpdateFileError where there is none."""
    if start.startswith(b"PK\x03\x04") or start.startswith(b"PK\x05\x06"):
        return _npz
    if len(start) >= 9 and 2 <= int.from_bytes(start[:8], "little") <= size and start[8:9] == b"{":
        return _safetensors
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise UpdateFileError(PICKLED.format(name))
    if start.startswith(b"\x93NUMPY"):
        raise UpdateFileError(SINGLE.format(name))
    raise UpdateFileError(OTHER.format(name, ADAPTERS))


def _npz(name: str, file: IO[bytes]) -> list[tuple[str, str, np.ndarray[Any, Any]]]:
    with zipfile.ZipFile(file) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        if any(member.filename.endswith("data.pkl") for member in members):
            raise UpdateFileError(PICKLED.format(f"{name} (as torch.save writes it)"))
        _check_count(name, len(members))
        total = sum(member.file_size for member in members)
        if total > MAX_BYTES:
            raise UpdateFileError(f"{name} would unpack to {total / 2**20:.0f} MB; at most {MAX_BYTES // 2**20} MB are allowed.")
        return [_npy_member(name, archive, member) for member in members]


def _npy_member(name: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[str, str, np.ndarray[Any, Any]]:
    called = _checked_name(name, member.filename.removesuffix(".npy"))
    if not member.filename.endswith(".npy"):
        raise UpdateFileError(f"{name} contains {called[:60]}, which is no array (.npy). Save the arrays alone with numpy.savez.")
    stream: Any
    with archive.open(member) as stream:
        if stream.peek(2)[:1] == b"\x80":
            raise UpdateFileError(PICKLED.format(f"{name}: {called}"))
        version = npy.read_magic(stream)
        header: Any = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = header(stream, max_header_size=MAX_NPY_HEADER)
        data = stream.read(MAX_BYTES)
    if dtype.hasobject or dtype.kind not in "fiub" or dtype.itemsize > 8:
        kind = "Python objects, which would run code when they are read" if dtype.hasobject else f"numbers of the type {dtype}"
        raise UpdateFileError(f"{name}: the array {called} holds {kind}. Save numbers of up to 64 bits with numpy.savez.")
    if math.prod(shape) * dtype.itemsize != len(data):
        raise UpdateFileError(SHAPE.format(name, called, list(shape), dtype, len(data)))
    array = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
    return called, dtype.name, array.astype(dtype.newbyteorder("="), copy=False)


def _safetensors(name: str, file: IO[bytes]) -> list[tuple[str, str, np.ndarray[Any, Any]]]:
    (length,) = struct.unpack("<Q", file.read(8))
    if length > MAX_HEADER:
        raise UpdateFileError(
            f"{name} has a header of {length / 2**20:.0f} MB; at most {MAX_HEADER // 2**20} MB are allowed. Save it again."
        )
    header = json.loads(file.read(length))
    data = file.read()
    described = {called: about for called, about in header.items() if called != "__metadata__"}
    _check_count(name, len(described))
    found, ends = list[tuple[str, str, np.ndarray[Any, Any]]](), list[tuple[int, int]]()
    for called, about in described.items():
        kind, shape, (first, last) = str(about["dtype"]), about["shape"], about["data_offsets"]
        if kind not in SAFETENSORS:
            raise UpdateFileError(f"{name}: the array {_checked_name(name, called)} has the type {kind[:20]}. Expected are 8 to 64 bits.")
        dtype, sides = SAFETENSORS[kind], [int(side) for side in shape]
        count = math.prod(sides) if all(side >= 0 for side in sides) else -1
        if not 0 <= first <= last <= len(data) or count * dtype.itemsize != last - first:
            raise UpdateFileError(SHAPE.format(name, _checked_name(name, called), sides[:8], kind, last - first))
        array = np.frombuffer(data, dtype, count, first).reshape(sides)
        found.append(
            (_checked_name(name, called), "bfloat16" if kind == "BF16" else dtype.name, _widened(array) if kind == "BF16" else array)
        )
        ends.append((first, last))
    if any(later < earlier for (_, earlier), (later, _) in zip(sorted(ends), sorted(ends)[1:], strict=False)):
        raise UpdateFileError(f"{name}: two arrays share the same bytes. Save it again.")
    return found


def _widened(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return bfloat16 numbers, given as 16 bits each, in float32.

    >>> _widened(np.array([0x3F80, 0xC000], dtype="<u2")).tolist()
    [1.0, -2.0]
    """
    return (array.astype("<u4") << 16).view("<f4")


def _check_count(name: str, count: int) -> None:
    if not 0 < count <= MAX_ARRAYS:
        raise UpdateFileError(f"{name} holds {count} arrays; expected are 1 to {MAX_ARRAYS}. Save the state of the network alone.")


def _checked_name(name: str, called: str) -> str:
    """Return the name of an array. Raises UpdateFileError where it is a path, or no name that can be printed."""
    if not called.isprintable() or len(called) > MAX_NAME or ".." in called or called.startswith("/") or "\\" in called:
        raise UpdateFileError(f"{name} names an array {called[:60]!r}; expected is the name of a parameter, such as conv1.weight.")
    return called


def _checked(name: str, found: list[tuple[str, str, np.ndarray[Any, Any]]]) -> Numbers:
    widths = {kind for _, kind, array in found if array.dtype.kind == "f"}
    for called, _, array in found:
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise UpdateFileError(
                f"{name}: the array {called} holds NaN or infinity, so nothing can be read from it. Record another round."
            )
    order = ("bfloat16", "float16", "float32", "float64")
    return Numbers({called: array for called, _, array in found}, next((width for width in order if width in widths), ""))
