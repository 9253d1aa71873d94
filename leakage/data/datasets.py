"""Data sets on this machine: MNIST, CIFAR-10, CIFAR-100, the Olivetti faces, LFW and scikit-learn's digits. No torch."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from leakage.data import face_files, readers, shipped_digits
from leakage.data.errors import PictureError as PictureError
from leakage.data.readers import Pixels

FIRST = 256  # pictures that are read at first; the number is doubled until the wanted picture is among them

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CIFAR100 = tuple(
    """apple,aquarium fish,baby,bear,beaver,bed,bee,beetle,bicycle,bottle,bowl,boy,bridge,bus,butterfly,camel,can,castle,caterpillar,
cattle,chair,chimpanzee,clock,cloud,cockroach,couch,crab,crocodile,cup,dinosaur,dolphin,elephant,flatfish,forest,fox,girl,hamster,
house,kangaroo,keyboard,lamp,lawn mower,leopard,lion,lizard,lobster,man,maple tree,motorcycle,mountain,mouse,mushroom,oak tree,orange,
orchid,otter,palm tree,pear,pickup truck,pine tree,plain,plate,poppy,porcupine,possum,rabbit,raccoon,ray,road,rocket,rose,sea,seal,
shark,shrew,skunk,skyscraper,snail,snake,spider,squirrel,streetcar,sunflower,sweet pepper,table,tank,telephone,television,tiger,
tractor,train,trout,tulip,turtle,wardrobe,whale,willow tree,wolf,woman,worm""".replace("\n", "").split(",")
)
TITLES = {"digits": "Digits", "mnist": "MNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "faces": "Olivetti faces", "lfw": "LFW"}
CLASSES = {
    "digits": tuple("0123456789"),
    "mnist": tuple("0123456789"),
    "cifar10": CIFAR10,
    "cifar100": CIFAR100,
    "faces": tuple(f"person {n}" for n in range(40)),
}
PLACES = {  # where the test pictures can be, below the data folder; error messages name the first
    "mnist": tuple(f"{folder}/t10k-images-idx3-ubyte{end}" for folder in ("MNIST/raw", "mnist") for end in ("", ".gz")),
    "cifar10": (
        "cifar-10-batches-bin/test_batch.bin",
        "cifar-10-batches-py/test_batch",
        "cifar10/test_batch.bin",
        "cifar10/test_batch.bin.xz",
    ),
    "cifar100": ("cifar-100-binary/test.bin", "cifar-100-python/test", "cifar100/*.zip"),
    "faces": ("faces/olivettifaces.mat",),
    "lfw": ("lfw-py/lfw_funneled", "lfw-py/lfw-deepfunneled", "lfw-py/lfw", "lfw"),  # folders; the first three are torchvision's
}
OF_PEOPLE = ("faces", "lfw")  # data sets in which a label is a person
BY_HAND = {  # instructions for the data sets that no command downloads
    "faces": "get olivettifaces.mat from https://cs.nyu.edu/~roweis/data.html and put it into faces/",
    "lfw": "get lfw-funneled.tgz (Labeled Faces in the Wild) and unpack it as lfw-py/lfw_funneled/",
}

TRAINING = {  # patterns of the training pictures' files; all files that match the first pattern with a match are read
    "mnist": tuple(file.replace("t10k", "train") for file in PLACES["mnist"]),
    "cifar10": tuple(file.replace("test_batch", "data_batch_?") for file in PLACES["cifar10"]),
}


@dataclass(frozen=True)
class Item:
    """A picture that a user can choose."""

    source: str
    """"gallery" or the name of a data set."""
    id: str
    """Identifies the picture in its source."""
    title: str
    label: int
    class_name: str
    alt: str
    """A sentence that describes the picture for users who cannot see it."""


def data_folder() -> Path:
    """Return the folder in the environment variable LEAKAGE_DATA, or ~/.cache/leakage."""
    return Path(os.environ.get("LEAKAGE_DATA") or "~/.cache/leakage").expanduser()


@dataclass(frozen=True)
class DataSet:
    """The test pictures of a data set. Every method raises PictureError if the file is missing or damaged."""

    name: str
    path: Path | None
    """The file with the pictures; None if it was not found."""

    @property
    def title(self) -> str:
        """The name of the data set in menus."""
        return TITLES[self.name]

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of their labels."""
        return CLASSES[self.name]

    @property
    def is_available(self) -> bool:
        """Whether the file exists; it can still be damaged."""
        return self.path is not None

    @property
    def remedy(self) -> str:
        """A sentence which says how to get the files."""
        first = PLACES[self.name][0]
        way = f"run `python -m leakage fetch {self.name}`"
        if self.name in BY_HAND:
            way = f"{BY_HAND[self.name]} there"
        return f"The pictures of {self.title} were not found in LEAKAGE_DATA: {way}, or set LEAKAGE_DATA to a folder with {first}."

    def count(self) -> int:
        """Return the number of pictures."""
        path, stamp = self._file()
        with self._reading():
            return readers.length(path, stamp)

    def items(self, offset: int = 0, count: int = 60) -> list[Item]:
        """Return `count` pictures from the index `offset` on, or fewer at the end, as items without pixels."""
        return self._items(range(max(offset, 0), min(offset + count, self.count())))

    def item(self, id: str) -> Item:
        """Return a picture as an item without pixels.

        Args:
            id: The picture's index in the test set; in a zip file with other pictures also "class/name.png".
        """
        index = self._index(id)
        return self._items(range(index, index + 1))[0]

    def picture(self, id: str) -> Pixels:
        """Return a picture's pixels, read-only: (28, 28, 1) of MNIST and digits, (64, 64, 1) of the Olivetti faces, else (32, 32, 3)."""
        index = self._index(id)
        pixels: Pixels = self._rows(index).pixels[index]  # (H, W, C)
        return pixels

    def rows(self) -> readers.Rows:
        """Return all pictures with their labels, read-only."""
        return self._rows(self.count() - 1)

    def _items(self, indices: range) -> list[Item]:
        def item(id: str, label: int) -> Item:
            name, alt = self.classes[label], f"Picture {id} of the {self.title} test set, class {self.classes[label]}."
            return Item(self.name, id, f"{name}, {self.title} {id}", label, name, alt)

        if not indices:
            return []
        ids, labels = self._ids(), self._rows(indices[-1]).labels
        return [item(ids[index] if ids else str(index), int(labels[index])) for index in indices]

    def _index(self, id: str) -> int:
        ids, count = self._ids(), self.count()
        if id in ids:
            return ids.index(id)
        if ids or not id.isdecimal() or str(int(id)) != id or int(id) >= count:
            expected = f"a number from 0 to {count - 1}" if not ids else f"one of {count} like {ids[0]} or {ids[-1]}"
            raise PictureError(
                f"{self.title} has no test picture {id!r} in {place_of(self.path)}; expected is {expected}. Choose another picture."
            )
        return int(id)

    def _ids(self) -> list[str]:
        """Return the ids of all pictures in a zip file; empty for other files, in which the id is the index of the picture."""
        path, stamp = self._file()
        with self._reading():
            return [member.id for member in readers.members(path, stamp)] if path.suffix == ".zip" else []

    def _rows(self, index: int) -> readers.Rows:
        """Return the first pictures of the data set with their labels, at least up to the picture at `index`.

        They are FIRST pictures, or the next larger power of two; formats that can only be read completely give all.
        """
        path, stamp = self._file()
        stop = min(max(FIRST, 1 << index.bit_length()), self.count())
        with self._reading():
            return readers.rows(path, stamp, stop, self.classes)

    def _file(self) -> tuple[Path, int]:
        """Return the file and the time of its last change in nanoseconds, which are part of the key of the readers' caches."""
        if self.path is None:
            raise PictureError(self.remedy)
        with self._reading():
            return self.path, self.path.stat().st_mtime_ns

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Convert errors for a damaged file, raised inside the `with` block, into a PictureError with the file's name and a remedy."""
        try:
            yield
        except readers.BROKEN as error:
            why, remedy = str(error) or type(error).__name__, f"delete it and run `python -m leakage fetch {self.name}`"
            remedy = "delete it, and put a complete file there" if self.name in BY_HAND else remedy
            raise PictureError(f"{place_of(self.path)} is damaged or cut short ({why}): {remedy}.") from error


class Photographs(DataSet):
    """Photographs in a folder for each person; the label is the person's index in the order of names. `path` contains these folders."""

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(name.replace("_", " ") for name in self._people())

    def count(self) -> int:
        return len(self._all())

    def picture(self, id: str) -> Pixels:
        """Return the central square of a photograph, (S, S, 3) of any size S, read-only."""
        photograph = self._all()[self._index(id)]
        with self._reading():
            return face_files.open_square(photograph)

    def _items(self, indices: range) -> list[Item]:
        labels = {person: label for label, person in enumerate(self._people())}

        def item(photograph: face_files.Photograph) -> Item:
            name, label = photograph.person.replace("_", " "), labels[photograph.person]
            return Item(self.name, photograph.id, f"{name}, {self.title}", label, name, f"Photograph of {name}, {self.title}.")

        return [item(photograph) for photograph in self._all()[indices.start : indices.stop]]

    def _ids(self) -> list[str]:
        return [photograph.id for photograph in self._all()]

    def _people(self) -> list[str]:
        return list(dict.fromkeys(photograph.person for photograph in self._all()))

    def _all(self) -> tuple[face_files.Photograph, ...]:
        path, stamp = self._file()
        with self._reading():
            return face_files.photographs(path, stamp)


class ShippedDigits(DataSet):
    """The test digits inside scikit-learn; `path` is the file in the package."""

    @property
    def remedy(self) -> str:
        return "The digits of scikit-learn are missing: run `pip install -r requirements.txt`."

    def count(self) -> int:
        with self._reading():
            return len(shipped_digits.held_out_digits().labels)

    def _rows(self, index: int) -> readers.Rows:
        with self._reading():
            return shipped_digits.held_out_digits()


def place_of(path: Path | None) -> str:
    """Return a path as pages may show it: relative to the data folder, or the file name alone; the words "its file" for None."""
    if path is None:
        return "its file"
    return str(path.relative_to(data_folder())) if path.is_relative_to(data_folder()) else path.name


def datasets() -> dict[str, DataSet]:
    """Return all six data sets by name, also those without a file on this machine. No file is opened, so a damaged file does no harm."""
    return {name: data_set(name) for name in ("digits", *PLACES)}


def data_set(name: str) -> DataSet:
    """Return a data set, also without a file on this machine; no file is opened. Raises KeyError if no data set has this name."""
    if name == "digits":
        with suppress(PictureError):
            return ShippedDigits(name, shipped_digits.digits_file())
        return ShippedDigits(name, None)
    folder = data_folder()
    path = next((path for pattern in PLACES[name] for path in sorted(folder.glob(pattern))), None)
    return (Photographs if name == "lfw" else DataSet)(name, path)


def training_files(name: str) -> list[Path]:
    """Return the files with the training pictures of "digits", "mnist" or "cifar10". Raises PictureError if there are none."""
    if name == "digits":
        return [shipped_digits.digits_file()]
    for pattern in TRAINING[name]:
        if files := sorted(data_folder().glob(pattern)):
            return files
    expected = f"run `python -m leakage fetch {name}`, or set LEAKAGE_DATA to a folder with {TRAINING[name][0]}"
    raise PictureError(f"The training pictures of {TITLES[name]} were not found in LEAKAGE_DATA: {expected}.")


def training_pictures(name: str) -> readers.Rows:
    """Return the training pictures (N, H, W, C) of a data set and their labels (N,). Raises PictureError if they are missing or damaged."""
    if name == "digits":
        return shipped_digits.training_digits()
    batches = [DataSet(name, path).rows() for path in training_files(name)]
    return readers.Rows(np.concatenate([batch.pixels for batch in batches]), np.concatenate([batch.labels for batch in batches]))
