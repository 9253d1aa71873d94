"""Data sets made by hand in each layout read back exactly; damaged ones are named and affect no other; downloads by torchvision."""

import gzip
import lzma
import os
import pickle
import sys
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal
from urllib.error import URLError

import numpy as np
import pytest
from PIL import Image

from leakage.data.datasets import datasets
from leakage.data.fetch import fetch
from leakage.data.images import PictureError, find, read

COUNT = 12
DIGITS = np.random.default_rng(1).integers(0, 256, (COUNT, 28, 28), np.uint8)
PHOTOS = np.random.default_rng(2).integers(0, 256, (COUNT, 32, 32, 3), np.uint8)
PLANES = PHOTOS.transpose(0, 3, 1, 2).reshape(COUNT, 3072)  # as CIFAR stores them
LABELS = [3, 8, 8, 0, 6, 6, 1, 6, 3, 1, 0, 9]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder."""
    monkeypatch.setenv("LEAKAGE_DATA", str(tmp_path))
    return tmp_path


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + b"".join(side.to_bytes(4, "big") for side in array.shape) + array.tobytes()


def put_mnist(folder: Path, *, ending: str = "", pack: Callable[[bytes], bytes] = bytes) -> Path:
    put(folder / f"t10k-labels-idx1-ubyte{ending}", pack(idx(np.array(LABELS, np.uint8))))
    return put(folder / f"t10k-images-idx3-ubyte{ending}", pack(idx(DIGITS)))


def binary(*labels: list[int]) -> bytes:
    return np.concatenate([np.array(labels, np.uint8).T, PLANES], axis=1).tobytes()


def old_pickle(labels: str) -> bytes:
    """A batch as Python 2 and its numpy wrote CIFAR's: protocol 2, text and bytes alike as STRING."""

    def text(word: str) -> bytes:
        return b"U" + bytes([len(word)]) + word.encode()

    def number(value: int) -> bytes:
        return b"J" + value.to_bytes(4, "little", signed=True)

    empty = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n" + number(0) + b"\x85" + text("b") + b"\x87R"
    state = b"(" + number(3) + text("|") + b"NNN" + number(-1) * 2 + number(0) + b"t"
    dtype = b"cnumpy\ndtype\n" + text("u1") + number(0) + number(1) + b"\x87R" + state + b"b"
    raw = b"T" + PLANES.size.to_bytes(4, "little") + PLANES.tobytes()
    data = empty + b"(" + number(1) + number(COUNT) + number(3072) + b"\x86" + dtype + b"\x89" + raw + b"tb"
    listed = b"](" + b"".join(number(label) for label in LABELS) + b"e"
    return b"\x80\x02}(" + text("data") + data + text(labels) + listed + b"u."


def pngs(names: list[str]) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, photo in zip(names, PHOTOS, strict=False):
            png = BytesIO()
            Image.fromarray(photo).save(png, "PNG")
            archive.writestr(name, png.getvalue())
    return file.getvalue()


# ---------------------------------------------------------------- every layout


@pytest.mark.parametrize("place", ["MNIST/raw", "mnist"])
@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress)])
def test_mnist_reads_back_exactly(folder: Path, place: str, ending: str, pack: Callable[[bytes], bytes]) -> None:
    put_mnist(folder / place, ending=ending, pack=pack)
    mnist = datasets()["mnist"]
    assert (mnist.is_available, mnist.count(), [item.label for item in mnist.items(0, 100)]) == (True, COUNT, LABELS)
    np.testing.assert_array_equal([read("mnist", str(n), 28, 1)[:, :, 0] for n in range(COUNT)], DIGITS)


def test_mnist_at_32_pixels_has_a_black_frame_of_two(folder: Path) -> None:
    put_mnist(folder / "mnist")
    framed = read("mnist", "0", 32, 3)
    np.testing.assert_array_equal(framed, np.pad(DIGITS[0], 2)[:, :, None].repeat(3, axis=2))


CIFAR10 = {
    "cifar-10-batches-bin/test_batch.bin": binary(LABELS),
    "cifar10/test_batch.bin": binary(LABELS),
    "cifar10/test_batch.bin.xz": lzma.compress(binary(LABELS)),
    "cifar-10-batches-py/test_batch": old_pickle("labels"),
}


@pytest.mark.parametrize("place", CIFAR10)
def test_cifar10_reads_back_exactly(folder: Path, place: str) -> None:
    put(folder / place, CIFAR10[place])
    cifar = datasets()["cifar10"]
    assert (cifar.count(), [item.label for item in cifar.items(0, 100)]) == (COUNT, LABELS)
    np.testing.assert_array_equal([read("cifar10", str(n), 32, 3) for n in range(COUNT)], PHOTOS)


CIFAR100 = {"cifar-100-binary/test.bin": binary([19] * COUNT, LABELS), "cifar-100-python/test": old_pickle("fine_labels")}


@pytest.mark.parametrize("place", CIFAR100)
def test_cifar100_has_its_fine_labels(folder: Path, place: str) -> None:
    put(folder / place, CIFAR100[place])
    assert [item.label for item in datasets()["cifar100"].items(0, 100)] == LABELS
    np.testing.assert_array_equal(read("cifar100", "5", 32, 3), PHOTOS[5])


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_pickle_of_today_reads_back_too(folder: Path, order: Literal["C", "F"]) -> None:
    data = np.asarray(PLANES, order=order)
    put(folder / "cifar-10-batches-py/test_batch", pickle.dumps({"data": data, "labels": LABELS}, protocol=4))
    np.testing.assert_array_equal(read("cifar10", "11", 32, 3), PHOTOS[11])


def test_a_zip_numbers_only_the_pictures_whose_place_in_the_test_set_is_told(folder: Path) -> None:
    put(folder / "cifar100/some.zip", pngs(["test/apple/a.png", "test/maple_tree/b.png", "test/worm/c.png"]))
    put(folder / "cifar100/first.csv", b"index,label,path\n0,47,test/maple_tree/b.png\n")
    items = datasets()["cifar100"].items()
    assert [(item.id, item.label) for item in items] == [("0", 47), ("apple/a.png", 0), ("worm/c.png", 99)]
    assert items[0].class_name == "maple tree"
    np.testing.assert_array_equal([read("cifar100", item.id, 32, 3) for item in items], PHOTOS[[1, 0, 2]])
    with pytest.raises(PictureError, match="no test picture '1'"):
        find("cifar100", "1")


# ---------------------------------------------------------------- slices, and what is not there


def test_a_slice_ends_with_the_data_set(folder: Path) -> None:
    put(folder / "cifar10/test_batch.bin", binary(LABELS))
    cifar = datasets()["cifar10"]
    assert [item.id for item in cifar.items(10, 5)] == ["10", "11"]
    assert cifar.items(COUNT, 5) == []
    assert cifar.items(11, 1)[0].alt == "Picture 11 of the CIFAR-10 test set, class truck."


@pytest.mark.parametrize("id", ["12", "-1", "03", "dog", ""])
def test_a_number_beyond_the_test_set_is_answered_with_the_range(folder: Path, id: str) -> None:
    put(folder / "cifar10/test_batch.bin", binary(LABELS))
    with pytest.raises(PictureError, match="a number from 0 to 11"):
        read("cifar10", id, 32, 3)


@pytest.mark.parametrize("name", ["mnist", "cifar10", "cifar100"])
def test_a_data_set_that_is_not_there_says_how_to_get_it(folder: Path, name: str) -> None:
    missing = datasets()[name]
    assert not missing.is_available
    assert str(folder) not in missing.remedy  # pages show it to visitors
    assert f"python -m leakage fetch {name}" in missing.remedy
    assert "LEAKAGE_DATA" in missing.remedy
    with pytest.raises(PictureError, match="were not found"):
        read(name, "0", 32, 3)


def test_an_unknown_source_is_answered_with_the_known_ones() -> None:
    with pytest.raises(PictureError, match="'imagenet'; expected is gallery, upload, digits, mnist, cifar10, cifar100"):
        find("imagenet", "0")


# ---------------------------------------------------------------- damaged files

DAMAGED = {
    "mnist/t10k-images-idx3-ubyte.gz": gzip.compress(idx(DIGITS))[:-100],
    "mnist/t10k-images-idx3-ubyte": idx(DIGITS)[:-1],
    **{place: data[:-1000] for place, data in (CIFAR10 | CIFAR100).items()},
    "cifar100/some.zip": pngs(["test/apple/a.png"])[:-10],
}


@pytest.mark.parametrize(("place", "data"), DAMAGED.items(), ids=DAMAGED)
def test_a_file_cut_short_is_named_and_spoils_no_other_set(folder: Path, place: str, data: bytes) -> None:
    path = put(folder / place.strip(), data)
    put(path.with_name(path.name.replace("images-idx3", "labels-idx1")), path.read_bytes())
    name = "mnist" if "mnist" in place else "cifar100" if "100" in place else "cifar10"
    with pytest.raises(PictureError, match=rf"{path.name} is damaged or cut short .* `python -m leakage fetch {name}`"):
        datasets()[name].items()
    other = "cifar10" if name == "mnist" else "mnist"
    put_mnist(folder / "MNIST/raw") if other == "mnist" else put(folder / "cifar10/test_batch.bin", binary(LABELS))
    assert datasets()[other].count() == COUNT


def test_a_label_that_no_class_has_is_damage(folder: Path) -> None:
    put(folder / "cifar10/test_batch.bin", binary([*LABELS[:-1], 10]))
    with pytest.raises(PictureError, match="expected labels from 0 to 9, got 0 to 10"):
        find("cifar10", "0")


def test_a_file_that_was_replaced_is_read_again(folder: Path) -> None:
    path = put(folder / "cifar10/test_batch.bin", b"damaged")
    with pytest.raises(PictureError):
        datasets()["cifar10"].count()
    put(path, binary(LABELS))
    os.utime(path, ns=(1, 1))
    assert datasets()["cifar10"].count() == COUNT


class Malicious:
    """Unpickling this makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_a_malicious_pickle_is_refused_before_it_acts(folder: Path) -> None:
    put(folder / "cifar-10-batches-py/test_batch", pickle.dumps({"data": Malicious(folder / "owned"), "labels": [0]}))
    with pytest.raises(PictureError, match=r"it asks for posix\.mkdir"):
        datasets()["cifar10"].items()
    assert not (folder / "owned").exists()


def test_a_pickle_gets_no_code_of_numpys_either(folder: Path) -> None:
    put(folder / "cifar-10-batches-py/test_batch", b"\x80\x02cnumpy\nsave\n(U\x05ownedtR.")
    with pytest.raises(PictureError, match=r"it asks for numpy\.save"):
        datasets()["cifar10"].items()


# ---------------------------------------------------------------- fetching


def test_what_torchvision_downloads_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(root: Path, *, train: bool, download: bool) -> None:
        assert (train, download) == (False, True)
        put(root / "cifar-10-batches-py/test_batch", old_pickle("labels"))

    monkeypatch.setitem(sys.modules, "torchvision.datasets", SimpleNamespace(CIFAR10=download))
    assert fetch("cifar10", folder / "new") == folder / "new"
    monkeypatch.setenv("LEAKAGE_DATA", str(folder / "new"))
    np.testing.assert_array_equal(read("cifar10", "0", 32, 3), PHOTOS[0])


@pytest.mark.parametrize(("name", "place"), [("mnist", "MNIST/raw"), ("cifar100", "cifar-100-binary/test.bin")])
def test_without_a_network_fetch_says_where_to_put_which_file(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, place: str) -> None:
    def download(*_: object, **__: object) -> None:
        raise URLError("no route")

    monkeypatch.setitem(sys.modules, "torchvision.datasets", SimpleNamespace(MNIST=download, CIFAR100=download))
    with pytest.raises(PictureError, match=f"no route.* By hand: get .*{folder}/{place}"):
        fetch(name, folder)


def test_fetch_names_the_data_sets_it_knows(folder: Path) -> None:
    with pytest.raises(PictureError, match="'imagenet'; expected is mnist, cifar10, cifar100"):
        fetch("imagenet", folder)
