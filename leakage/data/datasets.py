"""Data sets on this machine: test pictures of MNIST, CIFAR-10 and CIFAR-100 in their layouts, Olivetti faces and LFW. No torch."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from leakage.data import face_files, readers, shipped_digits
from leakage.data.errors import PictureError as PictureError
from leakage.data.readers import Pixels

FIRST = 256  # pictures read at least, doubled on demand

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
PLACES = {  # where the test pictures may lie below the data folder; the first is what the remedy names
    "mnist": tuple(f"{folder}/t10k-images-idx3-ubyte{end}" for folder in ("MNIST/raw", "mnist") for end in ("", ".gz")),
    "cifar10": (
        "cifar-10-batches-bin/test_batch.bin",
        "cifar-10-batches-py/test_batch",
        "cifar10/test_batch.bin",
        "cifar10/test_batch.bin.xz",
    ),
    "cifar100": ("cifar-100-binary/test.bin", "cifar-100-python/test", "cifar100/*.zip"),
    "faces": ("faces/olivettifaces.mat",),
    "lfw": ("lfw-py/lfw_funneled", "lfw-py/lfw-deepfunneled", "lfw-py/lfw", "lfw"),  # folders; the first three as torchvision has them
}
OF_PEOPLE = ("faces", "lfw")  # the label is who is in the picture
BY_HAND = {  # what no command fetches
    "faces": "get olivettifaces.mat from https://cs.nyu.edu/~roweis/data.html and put it into faces/",
    "lfw": "get lfw-funneled.tgz (Labeled Faces in the Wild) and unpack it as lfw-py/lfw_funneled/",
}

TRAINING = {  # where the training pictures may lie: the files that the first pattern with a match finds, all of them
    "mnist": tuple(place.replace("t10k", "train") for place in PLACES["mnist"]),
    "cifar10": tuple(place.replace("test_batch", "data_batch_?") for place in PLACES["cifar10"]),
}


@dataclass(frozen=True)
class Item:
    """One picture that can be chosen. `alt` is one sentence for readers who cannot see it."""

    source: str
    id: str
    title: str
    label: int
    class_name: str
    alt: str


def data_folder() -> Path:
    """The folder in the environment variable LEAKAGE_DATA, or ~/.cache/leakage."""
    return Path(os.environ.get("LEAKAGE_DATA") or "~/.cache/leakage").expanduser()


@dataclass(frozen=True)
class DataSet:
    """The test pictures of one data set; `path` is their file, None where there is none. Every method raises PictureError."""

    name: str
    path: Path | None

    @property
    def title(self) -> str:
        """As a menu shows it."""
        return TITLES[self.name]

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names by label."""
        return CLASSES[self.name]

    @property
    def is_available(self) -> bool:
        """Whether there is a file; it may still be damaged."""
        return self.path is not None

    @property
    def remedy(self) -> str:
        """One sentence saying how to get the files."""
        first = PLACES[self.name][0]
        way = f"run `python -m leakage fetch {self.name}`"
        if self.name in BY_HAND:
            way = f"{BY_HAND[self.name]} there"
        return f"The pictures of {self.title} were not found in LEAKAGE_DATA: {way}, or set LEAKAGE_DATA to a folder with {first}."

    def count(self) -> int:
        """How many pictures there are."""
        path, stamp = self._file()
        with self._reading():
            return readers.length(path, stamp)

    def items(self, offset: int = 0, count: int = 60) -> list[Item]:
        """Pictures `offset` to `offset + count - 1`, fewer at the end. Reads at most twice as far as needed."""
        return self._items(range(max(offset, 0), min(offset + count, self.count())))

    def item(self, id: str) -> Item:
        """The picture of that id: its number in the test set (or, in a zip beyond the numbered ones, "class/name.png")."""
        index = self._index(id)
        return self._items(range(index, index + 1))[0]

    def picture(self, id: str) -> Pixels:
        """Its pixels as stored, read-only: (28, 28, 1) for MNIST, (64, 64, 1) for the Olivetti faces, else (32, 32, 3)."""
        index = self._index(id)
        pixels: Pixels = self._rows(index).pixels[index]  # (H, W, C)
        return pixels

    def rows(self) -> readers.Rows:
        """All pictures with their labels, read-only."""
        return self._rows(self.count() - 1)

    def _items(self, wanted: range) -> list[Item]:
        def item(id: str, label: int) -> Item:
            word, alt = self.classes[label], f"Picture {id} of the {self.title} test set, class {self.classes[label]}."
            return Item(self.name, id, f"{word}, {self.title} {id}", label, word, alt)

        if not wanted:
            return []
        ids, labels = self._ids(), self._rows(wanted[-1]).labels
        return [item(ids[index] if ids else str(index), int(labels[index])) for index in wanted]

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
        """The ids of a zip; empty where an id is the picture's number."""
        path, stamp = self._file()
        with self._reading():
            return [member.id for member in readers.members(path, stamp)] if path.suffix == ".zip" else []

    def _rows(self, index: int) -> readers.Rows:
        """The first pictures, as far as the one at `index` and at most twice as far."""
        path, stamp = self._file()
        stop = min(max(FIRST, 1 << index.bit_length()), self.count())
        with self._reading():
            return readers.rows(path, stamp, stop, self.classes)

    def _file(self) -> tuple[Path, int]:
        """The file and when it changed (ns), which the readers' caches are keyed by."""
        if self.path is None:
            raise PictureError(self.remedy)
        with self._reading():
            return self.path, self.path.stat().st_mtime_ns

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn whatever a damaged file makes its reader raise into a PictureError with the file's name and the remedy."""
        try:
            yield
        except readers.BROKEN as error:
            why, remedy = str(error) or type(error).__name__, f"delete it and run `python -m leakage fetch {self.name}`"
            remedy = "delete it, and put a whole one there" if self.name in BY_HAND else remedy
            raise PictureError(f"{place_of(self.path)} is damaged or cut short ({why}): {remedy}.") from error


class Photographs(DataSet):
    """A folder of photographs with one below it for each person, whose place in the order of names is the label. `path`: the folder."""

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(name.replace("_", " ") for name in self._people())

    def count(self) -> int:
        return len(self._all())

    def picture(self, id: str) -> Pixels:
        """Its square, of any side; only this file is read."""
        one = self._all()[self._index(id)]
        with self._reading():
            return face_files.open_square(one)

    def _items(self, wanted: range) -> list[Item]:
        labels = {person: label for label, person in enumerate(self._people())}

        def item(one: face_files.Photograph) -> Item:
            word = one.person.replace("_", " ")
            return Item(self.name, one.id, f"{word}, {self.title}", labels[one.person], word, f"Photograph of {word}, {self.title}.")

        return [item(one) for one in self._all()[wanted.start : wanted.stop]]

    def _ids(self) -> list[str]:
        return [one.id for one in self._all()]

    def _people(self) -> list[str]:
        return list(dict.fromkeys(one.person for one in self._all()))

    def _all(self) -> tuple[face_files.Photograph, ...]:
        path, stamp = self._file()
        with self._reading():
            return face_files.photographs(path, stamp)


class ShippedDigits(DataSet):
    """The digits that come with scikit-learn; `path`: the file in the package."""

    @property
    def remedy(self) -> str:
        return "The digits of scikit-learn are missing: run `pip install -r requirements.txt`."

    def count(self) -> int:
        with self._reading():
            return len(shipped_digits.tried_digits().labels)

    def _rows(self, index: int) -> readers.Rows:
        with self._reading():
            return shipped_digits.tried_digits()


def place_of(path: Path | None) -> str:
    """A file as visitors of the page may read it: below the data folder, or its name alone."""
    if path is None:
        return "its file"
    return str(path.relative_to(data_folder())) if path.is_relative_to(data_folder()) else path.name


def datasets() -> dict[str, DataSet]:
    """digits, mnist, cifar10, cifar100, faces and lfw by name, found or not. Opens no file, so one that is damaged spoils no other."""
    folder = data_folder()
    is_available = {name: [path for place in places for path in sorted(folder.glob(place))] for name, places in PLACES.items()}
    found = {name: (Photographs if name == "lfw" else DataSet)(name, paths[0] if paths else None) for name, paths in is_available.items()}
    digits = None
    with suppress(PictureError):
        digits = shipped_digits.digits_file()
    return {"digits": ShippedDigits("digits", digits), **found}


def training_files(name: str) -> list[Path]:
    """The files with the training pictures of "digits", "mnist" or "cifar10" on this machine. Raises PictureError when there are none."""
    if name == "digits":
        return [shipped_digits.digits_file()]
    for place in TRAINING[name]:
        if is_available := sorted(data_folder().glob(place)):
            return is_available
    expected = f"run `python -m leakage fetch {name}`, or set LEAKAGE_DATA to a folder with {TRAINING[name][0]}"
    raise PictureError(f"The training pictures of {TITLES[name]} were not found in LEAKAGE_DATA: {expected}.")


def training_pictures(name: str) -> readers.Rows:
    """All training pictures (N, H, W, C) of a data set that are on this machine, with their labels (N,). Raises PictureError."""
    if name == "digits":
        return shipped_digits.training_digits()
    batches = [DataSet(name, path).rows() for path in training_files(name)]
    return readers.Rows(np.concatenate([batch.pixels for batch in batches]), np.concatenate([batch.labels for batch in batches]))
