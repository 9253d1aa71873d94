"""Files of recorded updates that are damaged or malicious: each is refused with a sentence, soon, in little memory, and nothing runs."""

import io
import json
import pickle
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakage.adapters.update_reader import read_update
from leakage.data.array_files import read_arrays
from leakage.data.errors import UpdateFileError
from leakage.data.update_files import check_update
from leakage.settings import PACKAGE

WEIGHTS = {"a.weight": np.ones((3, 4), "f4"), "a.bias": np.zeros(3, "f4")}
SECONDS, MEGABYTES = 10.0, 300  # most that a refusal may take


class Evil:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:
        return open, (str(self.path), "w")


def _member(folder: Path, name: str, data: bytes) -> None:
    with zipfile.ZipFile(folder / "gradient.npz", "w") as archive:
        archive.writestr(name, data)


def _safetensors(folder: Path, header: bytes, data: bytes = bytes(16)) -> None:
    (folder / "gradient.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)


def _bomb(folder: Path) -> None:
    with (
        zipfile.ZipFile(folder / "gradient.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.npy", "w", force_zip64=True) as member,
    ):
        for _ in range(1500):
            member.write(bytes(2**20))


def _npy(array: np.ndarray[Any, Any], **changed: Any) -> bytes:
    file = io.BytesIO()
    if changed:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, **changed})
        return file.getvalue()
    np.save(file, array)
    return file.getvalue()


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "objects": (lambda f: np.savez(f / "gradient.npz", a=np.array([{"x": 1}], dtype=object)), "holds Python objects"),
    "pickle in a zip": (lambda f: _member(f, "a.npy", pickle.dumps(Evil(f / "ran"))), "is a pickle, which would run code"),
    "pickle": (lambda f: (f / "gradient.npz").write_bytes(pickle.dumps(Evil(f / "ran"))), "is a pickle, which would run code"),
    "pt": (lambda f: (f / "gradient.pt").write_bytes(pickle.dumps(Evil(f / "ran"))), "torch.load(file, weights_only=True)"),
    "torch.save": (lambda f: _member(f, "archive/data.pkl", pickle.dumps(Evil(f / "ran"))), "as torch.save writes it"),
    "zip bomb": (_bomb, "would unpack to 1500 MB; at most 200 MB"),
    "path": (lambda f: _member(f, "../../evil.npy", _npy(np.ones(3))), "names an array '../../evil'"),
    "header of 10^9 entries": (lambda f: _member(f, "a.npy", _npy(np.ones(1), shape=(10**9,))), "does not fit its 0 bytes"),
    "safetensors of 10^9 entries": (
        lambda f: _safetensors(f, json.dumps({"a": {"dtype": "F32", "shape": [10**9], "data_offsets": [0, 4 * 10**9]}}).encode()),
        "which does not fit its 4000000000 bytes",
    ),
    "negative sides": (
        lambda f: _safetensors(f, json.dumps({"a": {"dtype": "F32", "shape": [-1, -4], "data_offsets": [0, 16]}}).encode()),
        "which does not fit its 16 bytes",
    ),
    "shared bytes": (
        lambda f: _safetensors(
            f,
            json.dumps({n: {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]} for n in "ab"}).encode(),
        ),
        "two arrays share the same bytes",
    ),
    "deep JSON": (lambda f: _safetensors(f, b'{"a":' + b"[" * 10**5 + b"]" * 10**5 + b"}"), "is damaged or cut short"),
    "long header": (
        lambda f: (f / "gradient.safetensors").write_bytes(struct.pack("<Q", 9 * 2**20) + b"{" * 9 * 2**20 + b" "),
        "at most 8 MB",
    ),
    "NaN": (lambda f: np.savez(f / "gradient.npz", a=np.array([1, np.nan], "f4")), "the array a holds NaN or infinity"),
    "single array": (lambda f: np.save(f / "gradient.npy", np.ones(3)), "is a single array (.npy)"),
    "another format": (lambda f: (f / "gradient.fobs").write_bytes(b"\x82\xa5hello"), "Record the update with an adapter"),
    "no array": (lambda f: _member(f, "readme.txt", b"hello"), "is no array (.npy)"),
    "complex numbers": (lambda f: np.savez(f / "gradient.npz", a=np.ones(3, "c8")), "numbers of the type complex64"),
    "nothing": (lambda _: None, "The update has none of these files."),
    "half an update": (lambda f: np.savez(f / "before.npz", **WEIGHTS), "The update has before.npz. Expected are two files"),
    "two updates": (lambda f: [np.savez(f / f"{n}.npz", **WEIGHTS) for n in ("gradient", "difference")], "more than one of after"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_malicious_file_is_refused_by_a_process_soon_and_in_little_memory(name: str, tmp_path: Path) -> None:
    make, words = HOSTILE[name]
    make(tmp_path)
    code = (
        "import resource, subprocess, sys;"
        "print(subprocess.run([sys.executable, '-m', 'leakage.adapters.update_reader', sys.argv[1]], capture_output=True).stdout.decode());"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, "
        "resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    *said, used = subprocess.run(command, capture_output=True, cwd=PACKAGE.parent, check=True).stdout.decode().strip().splitlines()
    megabytes, seconds = (float(word) for word in used.split())
    assert words in "\n".join(said)
    assert megabytes < MEGABYTES
    assert seconds < SECONDS  # of the processor: other tests run beside this one
    assert not (tmp_path / "ran").exists()


def test_the_sentence_reaches_the_caller_and_a_good_update_passes(tmp_path: Path) -> None:
    np.savez(tmp_path / "gradient.npz", **WEIGHTS)
    check_update(tmp_path)
    (tmp_path / "card.json").write_text('{"rate": "fast"}')
    with pytest.raises(UpdateFileError, match=r"card.json: rate: .* given was fast"):
        check_update(tmp_path)
    (tmp_path / "card.json").write_text('{"rates": 1}')
    with pytest.raises(UpdateFileError, match=r"card.json: rates"):
        check_update(tmp_path)


def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "whole.npz", **WEIGHTS)
    whole = (tmp_path / "whole.npz").read_bytes()
    for end in range(0, len(whole), 37):
        (tmp_path / "gradient.npz").write_bytes(whole[:end])
        with pytest.raises(UpdateFileError):
            read_update(tmp_path)


def test_numbers_come_back_as_they_were_written(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    state = {"w": torch.randn(3, 4), "half": torch.randn(5).half(), "brain": torch.randn(6).bfloat16(), "n": torch.tensor(7)}
    save_file(state, tmp_path / "gradient.safetensors")
    found = read_arrays(tmp_path / "gradient.safetensors")
    assert found.width == "bfloat16"
    assert all(np.array_equal(found.arrays[name], value.float().numpy()) for name, value in state.items())
    np.savez(tmp_path / "fortran.npz", a=np.asfortranarray(np.arange(6.0).reshape(2, 3)), big=np.arange(3, dtype=">f4"))
    read = read_arrays(tmp_path / "fortran.npz").arrays
    assert read["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert read["big"].tolist() == [0, 1, 2]


def test_a_zip_with_the_files_is_read_and_nothing_else_of_it(tmp_path: Path) -> None:
    np.savez(tmp_path / "gradient.npz", **WEIGHTS)
    folder = tmp_path / "folder"
    folder.mkdir()
    packed = folder / "update.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(tmp_path / "gradient.npz", "round 1/gradient.npz")
        archive.writestr("../../evil.txt", "evil")
        archive.writestr("round 1/card.json", '{"rate": 0.5}')
    update = read_update(folder)
    assert update.gradient is not None
    assert set(update.gradient.arrays) == set(WEIGHTS)
    assert update.card.rate.value == 0.5
    assert b'"rate"' in check_update(folder)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["folder", "gradient.npz", "update.zip"]  # nothing was unpacked
    with zipfile.ZipFile(packed, "a") as archive:
        archive.write(tmp_path / "gradient.npz", "round 2/gradient.npz")
    with pytest.raises(UpdateFileError, match="has several updates"):
        read_update(folder)
    with zipfile.ZipFile(packed, "w") as archive:
        for number in range(1001):
            archive.writestr(f"{number}.txt", "")
    with pytest.raises(UpdateFileError, match="has over 1000 files"):
        read_update(folder)
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(tmp_path / "gradient.npz", "gradient.npz")
    damaged = bytearray(packed.read_bytes())
    damaged[60:90] = b"\xff" * 30  # in the compressed bytes
    packed.write_bytes(damaged)
    with pytest.raises(UpdateFileError, match=r"update\.zip cannot be read"):
        read_update(folder)
    packed.write_bytes(b"no zip")
    with pytest.raises(UpdateFileError, match=r"update\.zip cannot be read"):
        read_update(folder)


def test_the_reader_needs_no_torch() -> None:
    code = (
        "import sys, leakage.adapters.update_reader, leakage.data.update_files; print('torch' in sys.modules, 'safetensors' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=PACKAGE.parent, check=True)
    assert done.stdout.decode().split() == ["False", "False"]
