"""Faces with names: a MAT-5 file and folders of photographs read back exactly; missing or damaged files are named."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_problems import CATALOG

from leakage.data.datasets import datasets
from leakage.data.images import PictureError, class_names, find, read
from leakage.spec.experiment import Experiment, Picture
from leakage.workers.private_pictures import load

PEOPLE, SIDE = 3, 64
FACES = np.random.default_rng(3).integers(0, 256, (10 * PEOPLE, SIDE, SIDE), np.uint8)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder."""
    monkeypatch.setenv("LEAKAGE_DATA", str(tmp_path))
    return tmp_path


def element(kind: int, content: bytes) -> bytes:
    return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)


def mat5(faces: np.ndarray, *, packed: bool) -> bytes:
    """As MATLAB writes a matrix of bytes called faces, one picture a column, itself column by column."""
    columns = faces.transpose(0, 2, 1).tobytes()
    parts = element(6, struct.pack("<II", 9, 0)) + element(5, struct.pack("<ii", SIDE * SIDE, len(faces)))
    parts += element(1, b"faces") + element(2, columns)
    whole = element(14, parts)
    body = zlib.compress(whole) if packed else whole
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
    return header + (struct.pack("<II", 15, len(body)) + body if packed else body)


def put_olivetti(folder: Path, data: bytes) -> Path:
    path = folder / "faces/olivettifaces.mat"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("packed", [True, False])
def test_the_olivetti_faces_are_read_as_they_were_written(folder: Path, packed: bool) -> None:
    put_olivetti(folder, mat5(FACES, packed=packed))
    found = datasets()["faces"]
    assert found.count() == 30
    for index in (0, 9, 10, 29):
        np.testing.assert_array_equal(read("faces", str(index), SIDE, 1)[:, :, 0], FACES[index])
    assert [item.label for item in found.items(8, 4)] == [0, 0, 1, 1]
    assert find("faces", "29").title == "person 2, Olivetti faces 29"
    assert len(class_names("faces")) == 40


@pytest.mark.parametrize(
    "data",
    [
        mat5(FACES, packed=True)[:-1000],
        mat5(FACES, packed=False)[:-8],
        mat5(FACES, packed=True).replace(b"IM", b"MI"),
        b"",
        mat5(FACES[:, :32], packed=True),
        mat5(np.zeros((410, SIDE, SIDE), np.uint8), packed=True),  # 41 people, one without a name
    ],
    ids=["cut", "cut unpacked", "other byte order", "empty", "half pictures", "too many people"],
)
def test_a_damaged_file_is_named_with_what_to_do(folder: Path, data: bytes) -> None:
    path = put_olivetti(folder, data)
    with pytest.raises(PictureError, match=rf"{path.name} is damaged or cut short .*: delete it, and put a complete file there\."):
        datasets()["faces"].items()


def photograph(path: Path, shade: int, size: tuple[int, int] = (250, 250)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (shade, shade, shade)).save(path, "JPEG", quality=100)


@pytest.mark.parametrize("place", ["lfw-py/lfw_funneled", "lfw-py/lfw", "lfw"])
def test_people_are_labelled_in_the_order_of_their_names(folder: Path, place: str) -> None:
    (folder / place).mkdir(parents=True)
    (folder / place / "pairs.txt").write_text("no person")
    for shade, name in ((10, "Zoe_Last"), (90, "Ada_First"), (200, "Max_Middle")):
        for number in range(1, 3):
            photograph(folder / place / name / f"{name}_{number:04d}.jpg", shade + number)
    found = datasets()["lfw"]
    assert found.count() == 6
    assert [(item.label, item.class_name) for item in found.items(0, 60)][::2] == [(0, "Ada First"), (1, "Max Middle"), (2, "Zoe Last")]
    assert found.picture("Zoe_Last/Zoe_Last_0002.jpg").shape == (250, 250, 3)
    assert abs(int(read("lfw", "Zoe_Last/Zoe_Last_0002.jpg", 32, 1).mean()) - 12) <= 1
    assert find("lfw", "Max_Middle/Max_Middle_0001.jpg").label == 1
    with pytest.raises(PictureError, match=r"'5'.*one of 6 like Ada_First/Ada_First_0001\.jpg or"):
        find("lfw", "5")


def test_a_photograph_that_is_no_square_is_cut_in_its_middle_and_a_damaged_one_spoils_no_other(folder: Path) -> None:
    photograph(folder / "lfw/A/A_0001.jpg", 80, (100, 60))
    (folder / "lfw/B").mkdir()
    (folder / "lfw/B/B_0001.jpg").write_bytes(b"no picture")
    found = datasets()["lfw"]
    assert found.picture("A/A_0001.jpg").shape == (60, 60, 3)
    assert [item.class_name for item in found.items()] == ["A", "B"]
    with pytest.raises(PictureError, match="damaged or cut short"):
        found.picture("B/B_0001.jpg")


def test_an_empty_folder_is_told(folder: Path) -> None:
    (folder / "lfw").mkdir()
    with pytest.raises(PictureError, match="expected a folder with JPEG files for every person"):
        datasets()["lfw"].count()


@pytest.mark.parametrize(("name", "piece"), [("faces", "olivettifaces.mat"), ("lfw", "lfw-py/lfw_funneled")])
def test_where_they_are_absent_one_sentence_says_how_to_get_them(folder: Path, name: str, piece: str) -> None:
    missing = datasets()[name]
    assert not missing.is_available
    assert missing.remedy.startswith(f"The pictures of {missing.title} were not found in LEAKAGE_DATA: get ")
    assert piece in missing.remedy
    assert "fetch" not in missing.remedy
    with pytest.raises(PictureError, match="were not found"):
        read(name, "0", 32, 3)


def test_identities_are_the_labels_of_an_experiment(folder: Path) -> None:
    put_olivetti(folder, mat5(FACES, packed=True))
    asked = Experiment(pictures=(Picture(source="faces", id="5"), Picture(source="faces", id="25")), channels=1, size=64).resolve(CATALOG)
    x, y = load(asked, {})
    assert (asked.num_classes, y.tolist()) == (40, [0, 2])
    np.testing.assert_array_equal((x[1, 0] * 255).round().byte().numpy(), FACES[25])
