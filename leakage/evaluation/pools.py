"""The pools of other pictures for a line-up: uploads, the gallery, a data set or faces, of the private picture's kind."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from scipy.io import loadmat
from scipy.io.matlab import MatReadError
from torch import Tensor

from leakage.data.datasets import OF_PEOPLE
from leakage.data.images import (
    GALLERY_CLASSES,
    PHOTOS,
    Item,
    PictureError,
    Pixels,
    data_folder,
    datasets,
    find,
    fitted,
    gallery,
    portraits,
    read,
)
from leakage.data.readers import BROKEN
from leakage.engine.core import generator

SIZE = 100  # pictures in a line-up, with the private one
SOURCE = 256  # pixels of a side of a picture before it is cropped
REACH = 2000  # the others of a data set are drawn from this number of its first test pictures
SPARE = 10  # additional candidates, in place of near-duplicates
ENOUGH = 5  # other uploads of a kind that a line-up needs at least; the gallery has as many for one of its photographs
KINDS = {
    "face": ("face",),
    "digit": ("digit",),
    "scan": ("eye scan", "tissue scan"),
    "document": ("document",),
}  # -> class names; the rest are photographs
PHOTOGRAPH, XRAY = "photograph", "drawn X-ray"
OLIVETTI = "faces/olivettifaces.mat"  # optional, in the data folder: 40 people, ten pictures each
Shape = tuple[int, int, int]  # (C, H, W)


class Origin(NamedTuple):
    """Where a private picture is from. The attacker's side never has an Origin."""

    source: str
    """gallery, upload, the name of a data set, or own: a user's picture, with classes that are not those of the gallery."""
    id: str
    """The picture's name in its source."""
    kind: str = PHOTOGRAPH
    """The kind of an upload, by the class that the visitor chose."""
    file: bytes = b""
    """The bytes of an upload."""

    @property
    def identity(self) -> Hashable:
        """The key by which pictures of a pool count as the same: the person, if named, else the bytes of an upload, else the id."""
        if self.source in OF_PEOPLE:
            return find(self.source, self.id).label
        return self.file or self.id


OWN = Origin("own", "")


class PoolName(NamedTuple):
    """The name of the pool from which the other pictures of a line-up are taken."""

    source: str
    """uploads, gallery, people (faces of different people), or the name of a data set."""
    kind: str = ""
    """The kind of the pictures; empty for a data set."""


@dataclass(frozen=True)
class Candidates:
    """The pictures of a pool, in the order in which a line-up takes them."""

    identities: list[Hashable]
    """The identity of each picture, see `Origin.identity`."""
    pictures: Tensor
    """(P, C, H, W) in [0, 1]."""


def kind_of(label: int) -> str:
    """Return the kind of a picture (face, digit, scan, document or photograph), given its class among the gallery's classes."""
    name = GALLERY_CLASSES[label] if label < len(GALLERY_CLASSES) else ""
    return next((kind for kind, names in KINDS.items() if name in names), PHOTOGRAPH)


def pool_of(origin: Origin, batch: Sequence[Origin]) -> PoolName:
    """Choose the pool from which the other pictures of a private picture's line-up are taken.

    For an uploaded picture it is the batch's uploaded pictures of its kind if more than ENOUGH of them differ, else the faces of different
    people or the gallery's pictures of its kind. Other pictures have the pool of their source.

    Args:
        origin: where the private picture is from.
        batch: where all pictures of its batch are from.
    """
    if origin.source == "upload" and len(_uploads(origin.kind, batch)) > ENOUGH:
        return PoolName("uploads", origin.kind)
    if origin.source == "upload":
        return PoolName("people" if origin.kind == "face" else "gallery", origin.kind)
    if origin.source in ("gallery", "own"):
        return PoolName("gallery", _kind_in_gallery(find("gallery", origin.id)) if origin.source == "gallery" else PHOTOGRAPH)
    return PoolName(origin.source)


def gather(pool: PoolName, batch: Sequence[Origin], shape: Shape, seed: int) -> Candidates:
    """Load as many pictures of a pool as the line-ups of a batch need.

    Args:
        pool: the name of the pool.
        batch: the origins of the private pictures.
        shape: (C, H, W) of a picture.
        seed: of the draw.
    """
    if pool.source == "uploads":
        uploads = _uploads(pool.kind, batch).items()
        wholes = {identity: _whole(read("upload", upload.id, SOURCE, _channels(shape), upload.file)) for identity, upload in uploads}
        return _crops(wholes, shape)
    if pool.source == "people":
        return _drawn(_faces(), shape, seed)
    if pool.source == "gallery":
        return _gallery(pool.kind, shape)
    return _of_data_set(pool.source, batch, shape, seed)


def describe_pool(pool: PoolName, batch: Sequence[Origin]) -> str:
    """Return a text for the page that says from where the other pictures of a line-up are."""
    plural = f"{pool.kind}s"
    if pool.source == "uploads":
        return f"{SIZE - 1} crops of the {len(_uploads(pool.kind, batch)) - 1} other {plural} that you uploaded"
    if pool.source == "people":
        olivetti = ", and of the Olivetti faces, one of each person" if _olivetti_file() else ""
        return f"{SIZE - 1} others of the hundred faces in scikit-image{olivetti}, drawn by the seed"
    if pool.source == "gallery":
        return f"{SIZE - 1} crops of the other {plural} in the gallery"
    dataset = datasets()[pool.source]
    people = ", of other people," if pool.source in OF_PEOPLE else ""
    return f"{SIZE - 1} others{people} of the first {min(REACH, dataset.count()):,} {dataset.title} test pictures, drawn by the seed"


def first_of(source: str) -> list[Item]:
    """Return the first REACH test pictures of a data set, from which the other pictures of line-ups are drawn."""
    return datasets()[source].items(0, REACH)


def tensor(pictures: Sequence[Pixels]) -> Tensor:
    """Convert N pictures, each uint8 (H, W, C), to float32 (N, C, H, W) in [0, 1]."""
    return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).contiguous().float() / 255


# ---------------------------------------------------------------- one pool each


def _uploads(kind: str, batch: Sequence[Origin]) -> dict[Hashable, Origin]:
    """Return the different uploaded pictures of one kind in a batch, by `Origin.identity`."""
    return {origin.identity: origin for origin in batch if origin.source == "upload" and origin.kind == kind and origin.file}


@lru_cache(maxsize=8)
def _gallery(kind: str, shape: Shape) -> Candidates:
    """Return crops of the gallery's pictures of one kind, resized to `shape`."""
    ids = [item.id for item in gallery() if _kind_in_gallery(item) == kind]
    return _crops({id: _whole(read("gallery", id, SOURCE, _channels(shape))) for id in ids}, shape)


def _kind_in_gallery(item: Item) -> str:
    if item.id.startswith("xray-"):  # their class is "thing"
        return XRAY
    return PHOTOGRAPH if item.id in PHOTOS else kind_of(item.label)


def _crops(wholes: Mapping[Hashable, Image.Image], shape: Shape) -> Candidates:
    """Cut the same number of squares from each picture, at least 99 without those of one picture: the whole, then random crops.

    Every second crop is mirrored. The crops do not depend on the seed. Each is resized to the shape; where the shape has neither 1 nor 3
    channels, every channel gets the grey picture.
    """
    count, height, width = shape
    each = -(-(SIZE - 1) // (len(wholes) - 1))  # at least 99 crops remain without those of the private picture
    rng = np.random.default_rng(0)
    identities, crops = list[Hashable](), []
    for number in range(each):
        for identity, whole in wholes.items():
            side = int(rng.integers(SOURCE // 2, SOURCE + 1)) if number else SOURCE
            left, top = (int(value) for value in rng.integers(0, SOURCE + 1 - side, 2))
            square = whole.crop((left, top, left + side, top + side)).resize((width, height), Image.Resampling.LANCZOS)
            square = square.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if number % 2 else square
            identities.append(identity)
            crops.append(np.asarray(square).reshape(height, width, _channels(shape)))
    return Candidates(identities, tensor(crops).expand(-1, count, -1, -1))


def _of_data_set(source: str, batch: Sequence[Origin], shape: Shape, seed: int) -> Candidates:
    """Draw test pictures of a data set by the seed, without the private ones.

    From a data set of named people it draws so many that enough remain when one person's pictures are left out.
    """
    private = [origin for origin in batch if origin.source == source]
    excluded, items, (channels, size, _) = {origin.id for origin in private}, first_of(source), shape
    order = torch.randperm(len(items), generator=generator(seed, "lineup", source)).tolist()
    left = [items[index] for index in order if items[index].id not in excluded]
    identities: list[Hashable] = [item.label if source in OF_PEOPLE else item.id for item in left]
    enough = SIZE - 1 + SPARE + max(identities.count(origin.identity) for origin in private)  # the count is 0 without named people
    return Candidates(identities[:enough], tensor([read(source, item.id, size, channels) for item in left[:enough]]))


def _drawn(faces: Sequence[Pixels], shape: Shape, seed: int) -> Candidates:
    """Return random faces by the seed, resized to `shape`, enough for a line-up."""
    order = torch.randperm(len(faces), generator=generator(seed, "lineup", "faces")).tolist()[: SIZE - 1 + SPARE]
    return Candidates([f"face {index}" for index in order], tensor([fitted(faces[index], shape[1], shape[0]) for index in order]))


def _faces() -> list[Pixels]:
    """Load grey faces of different people: the hundred of scikit-image, and the Olivetti faces if their file is there.

    Raises PictureError where the file is damaged.
    """
    path = _olivetti_file()
    if path is None:
        return [*portraits()]
    try:
        columns = loadmat(path)["faces"]  # (4096, 400), column by column; ten of each person
        return [*portraits(), *columns[:, ::10].T.reshape(-1, 64, 64, 1).transpose(0, 2, 1, 3)]
    except (*BROKEN, MatReadError) as error:
        raise PictureError(
            f"{path} is damaged or cut short ({error or type(error).__name__}): delete it, or put it there again."
        ) from error


def _olivetti_file() -> Path | None:
    path = data_folder() / OLIVETTI
    return path if path.is_file() else None


def _whole(picture: Pixels) -> Image.Image:
    return Image.fromarray(picture.squeeze())


def _channels(shape: Shape) -> int:
    return 3 if shape[0] == 3 else 1
