"""The pictures of an audit: the same ones from tensors, a DataLoader, a Dataset or a folder; what cannot be used gets a sentence."""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from leakage.auditing.sample import draw_sample
from leakage.engine.core import generator

X = torch.randint(256, (5, 3, 12, 10), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
Y = torch.tensor([2, 0, 1, 1, 0])
MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.3, 0.4)


def picture(index: int) -> Image.Image:
    return Image.fromarray(X[index].permute(1, 2, 0).numpy())


class Rows(Dataset[Any]):
    """A data set of five items that a function makes."""

    classes = ("cat", "dog", "fox")

    def __init__(self, item: Any) -> None:
        self.item = item

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, index: int) -> Any:
        return self.item(index)


class Stream(IterableDataset[Any]):
    """The five pictures one after the other."""

    def __iter__(self) -> Iterator[Any]:
        return iter(zip(X.float() / 255, Y.tolist(), strict=True))


def by_seed(count: int, *, seed: int = 1) -> list[int]:
    """The rows that a draw takes: the first of a permutation by the seed."""
    return torch.randperm(len(X), generator=generator(seed, "audit"))[:count].tolist()


def as_float(rows: list[int]) -> Tensor:
    return X[rows].float() / 255


@pytest.mark.parametrize(
    "item",
    [
        lambda index: (picture(index), int(Y[index])),
        lambda index: {"image": picture(index), "label": int(Y[index])},
        lambda index: (X[index].float() / 255, Y[index]),
        lambda index: (X[index].permute(1, 2, 0).numpy(), np.int64(Y[index])),
        lambda index: (X[index], Y[index : index + 1]),
    ],
    ids=["Pillow", "a dictionary", "tensors", "arrays", "bytes"],
)
def test_a_data_set_gives_rows_that_the_seed_draws(item: Any) -> None:
    rows = by_seed(3)
    found = draw_sample(Rows(item), 3, seed=1)
    assert torch.equal(found.x, as_float(rows))
    assert found.y is not None
    assert found.y.tolist() == Y[rows].tolist()
    assert (found.names, found.classes) == (tuple(map(str, rows)), ("cat", "dog", "fox"))
    assert found.origin == "3 of 5 pictures of a data set, drawn by seed 1."


@pytest.mark.parametrize(
    "data",
    [(as_float([0, 1, 2, 3, 4]), Y), DataLoader(TensorDataset(X.float() / 255, Y), batch_size=2), Stream()],
    ids=["tensors", "DataLoader", "a stream"],
)
def test_tensors_and_loaders_give_their_first_rows(data: Any) -> None:
    found = draw_sample(data, 3, seed=1)
    assert torch.equal(found.x, as_float([0, 1, 2]))
    assert found.y is not None
    assert found.y.tolist() == [2, 0, 1]


def test_a_normalization_is_undone() -> None:
    mean, std = torch.tensor(MEAN)[:, None, None], torch.tensor(STD)[:, None, None]
    loader = DataLoader(TensorDataset((X.float() / 255 - mean) / std, Y), batch_size=5)
    found = draw_sample(loader, 5, seed=1, normalized=(MEAN, STD))
    assert torch.allclose(found.x, X.float() / 255, atol=1e-6)
    with pytest.raises(ValueError, match="Without their normalization the pictures lie in"):
        draw_sample(loader, 5, seed=1, normalized=((3, 3, 3), (1, 1, 1)))


def folder_of(place: Path) -> Path:
    """Write the five pictures into a folder for each class; a text, a hidden file and a link lie beside them."""
    for index, label in enumerate(Y.tolist()):
        path = place / ("cat", "dog", "fox")[label] / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture(index).save(path)
    (place / "cat" / "notes.txt").write_text("no picture")
    (place / ".hidden").mkdir()
    (place / "cat" / ".again.png").write_bytes((place / "cat" / "1.png").read_bytes())
    return place


def test_the_subfolders_of_a_folder_are_the_classes(tmp_path: Path) -> None:
    found = draw_sample(str(folder_of(tmp_path / "ours")), 5, seed=1)
    assert found.classes == ("cat", "dog", "fox")
    assert sorted(found.names) == ["cat/1.png", "cat/4.png", "dog/2.png", "dog/3.png", "fox/0.png"]
    assert found.y is not None
    for name, x, label in zip(found.names, found.x, found.y.tolist(), strict=True):
        index = int(Path(name).stem)
        assert torch.equal(x, X[index].float() / 255)
        assert label == Y[index]
    assert found.origin == "5 of 5 pictures of a folder, drawn by seed 1."


def test_a_folder_without_subfolders_has_no_labels_and_may_be_resized(tmp_path: Path) -> None:
    Image.new("L", (40, 20), 51).save(tmp_path / "grey.png")
    Image.new("RGB", (20, 40), (51, 102, 0)).save(tmp_path / "color.png")
    found = draw_sample(tmp_path, 8, seed=1, image_shape=(1, 8, 16))
    assert (found.y, found.classes, tuple(found.x.shape)) == (None, (), (2, 1, 8, 16))
    shades = dict(zip(found.names, found.x.mean((1, 2, 3)).tolist(), strict=True))
    assert shades["grey.png"] == pytest.approx(0.2)
    assert shades["color.png"] == pytest.approx((299 * 51 + 587 * 102) / 1000 / 255, abs=1 / 255)  # luminance, ITU-R 601
    with pytest.raises(ValueError, match=r"different shapes \(C, H, W\).*image_shape=\(C, H, W\)"):
        draw_sample(tmp_path, 8, seed=1)


def deep_png() -> bytes:
    """A PNG of 8 by 8 grey values of 16 bits."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\x80\x00" * 8 for _ in range(8))
    header = struct.pack(">IIBBBBB", 8, 8, 16, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.dcm", bytes(128) + b"DICM", r"has no pictures.*It has \.dcm files, which an audit does not read"),
        ("a.png", bytes(128) + b"DICM" + bytes(99), "a.png is a DICOM file; expected is a PNG, JPEG or WebP picture"),
        ("a.png", deep_png(), "a.png has 16 bits for each value"),
        ("a.png", b"\x89PNG\r\n\x1a\n" + bytes(30), "a.png is no picture that can be read"),
        ("a.png", bytes(11 * 2**20), r"a.png has 11.0 MB; at most 10 MB are allowed"),
        ("a.txt", b"hello", "has no pictures; expected are PNG, JPEG or WebP files"),
    ],
)
def test_files_that_cannot_be_used_get_a_sentence(tmp_path: Path, name: str, content: bytes, sentence: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        draw_sample(tmp_path, 8, seed=1)


@pytest.mark.parametrize(
    ("data", "error", "sentence"),
    [
        ((as_float([])[:0], Y[:0]), ValueError, "The data hold no picture"),
        (3, TypeError, "data must be pictures and labels .* got a int"),
        ("/no/such/folder", ValueError, "/no/such/folder is no folder"),
        ((as_float([0, 1]), Y), ValueError, "one label for each picture; got 2 pictures"),
        (Rows(lambda index: {"pixels": X[index]}), TypeError, "the keys pixels; expected are image and label"),
        (Rows(lambda index: 3), TypeError, r"is a int; expected is \(picture, label\)"),
        (Rows(lambda index: ("a picture", 1)), TypeError, "is a str; expected is a tensor"),
        (Rows(lambda index: (X[index].int(), 1)), TypeError, r"numbers of type torch\.int32; expected are bytes"),
        (Rows(lambda index: (X[index], "cat")), TypeError, "A label is a str; expected is a whole number"),
        ((torch.rand(1, 3, 4, 4), Y[:1]), ValueError, "4 by 4 pixels; expected are sides from 8 to 256"),
        ((3 * torch.rand(1, 3, 8, 8), Y[:1]), ValueError, r"x must lie in \[0, 1\]"),
        ((torch.full((1, 3, 8, 8), torch.nan), Y[:1]), ValueError, r"not finite \(NaN or infinity\)"),
    ],
)
def test_data_that_cannot_be_used_get_a_sentence(data: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        draw_sample(data, 8, seed=1)
