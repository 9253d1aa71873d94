"""Who may stand in a line-up beside a private picture: others of its kind, uploaded with it, of the gallery, a data set or faces."""

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

SIZE = 100  # pictures in a line-up, the true one among them
SOURCE = 256  # pixels of a picture before it is cut
REACH = 2000  # the others of a data set are drawn from its first so many test pictures
SPARE = 10  # more than are needed, for near-duplicates
ENOUGH = 5  # other uploads of its kind, of which a line-up can be cut: as many as stand beside a photograph of the gallery
KINDS = {
    "face": ("face",),
    "digit": ("digit",),
    "scan": ("eye scan", "tissue scan"),
    "document": ("document",),
}  # -> class names; the rest are photographs
PHOTOGRAPH, XRAY = "photograph", "drawn X-ray"
OLIVETTI = "faces/olivettifaces.mat"  # in the data folder, where somebody has put it: 40 people, ten pictures each
Shape = tuple[int, int, int]  # (C, H, W)


class Origin(NamedTuple):
    """Where a private picture is from. Only the referee's side ever holds one.

    source  gallery, upload, a data set, or own: somebody's own, whose class says nothing about the gallery's
    id      there
    kind    of an upload: what the class that the visitor chose makes it
    file    of an upload: its bytes
    """

    source: str
    id: str
    kind: str = PHOTOGRAPH
    file: bytes = b""

    @property
    def who(self) -> Hashable:
        """What tells it from others of its pool: the same picture uploaded twice is one, and so is a person whose name is known."""
        if self.source in OF_PEOPLE:
            return find(self.source, self.id).label
        return self.file or self.id


OWN = Origin("own", "")


class PoolName(NamedTuple):
    """Which pool stands beside a picture: uploads, gallery or people (different ones), and the kind; or a data set, without one."""

    source: str
    kind: str = ""


@dataclass(frozen=True)
class Candidates:
    """Pictures (P, C, H, W) of one kind in [0, 1], in the order in which they are asked to stand, with who is in each."""

    who: list[Hashable]
    pictures: Tensor


def kind_of(label: int) -> str:
    """The kind of picture that a class of the gallery, or of an upload, is."""
    name = GALLERY_CLASSES[label] if label < len(GALLERY_CLASSES) else ""
    return next((kind for kind, names in KINDS.items() if name in names), PHOTOGRAPH)


def pool_of(origin: Origin, batch: Sequence[Origin]) -> PoolName:
    """Which pool stands beside it. For an upload: the others of its kind in the batch where there are enough, else its kind's."""
    if origin.source == "upload" and len(_uploads(origin.kind, batch)) > ENOUGH:
        return PoolName("uploads", origin.kind)
    if origin.source == "upload":
        return PoolName("people" if origin.kind == "face" else "gallery", origin.kind)
    if origin.source in ("gallery", "own"):
        return PoolName("gallery", _kind_in_gallery(find("gallery", origin.id)) if origin.source == "gallery" else PHOTOGRAPH)
    return PoolName(origin.source)


def gather(pool: PoolName, batch: Sequence[Origin], shape: Shape, seed: int) -> Candidates:
    """Enough of a pool for every picture of the batch."""
    if pool.source == "uploads":
        wholes = {
            who: _whole(read("upload", one.id, SOURCE, _channels(shape), one.file)) for who, one in _uploads(pool.kind, batch).items()
        }
        return _crops(wholes, shape)
    if pool.source == "people":
        return _drawn(_faces(), shape, seed)
    if pool.source == "gallery":
        return _gallery(pool.kind, shape)
    return _of_data_set(pool.source, batch, shape, seed)


def words(pool: PoolName, batch: Sequence[Origin]) -> str:
    """What a line-up from there is made of, for the page."""
    plural = f"{pool.kind}s"
    if pool.source == "uploads":
        return f"{SIZE - 1} crops of the {len(_uploads(pool.kind, batch)) - 1} other {plural} that you uploaded"
    if pool.source == "people":
        olivetti = ", and of the Olivetti faces, one of each person" if _olivetti_file() else ""
        return f"{SIZE - 1} others of the hundred faces in scikit-image{olivetti}, drawn by the seed"
    if pool.source == "gallery":
        return f"{SIZE - 1} crops of the other {plural} in the gallery"
    found = datasets()[pool.source]
    people = ", of other people," if pool.source in OF_PEOPLE else ""
    return f"{SIZE - 1} others{people} of the first {min(REACH, found.count()):,} {found.title} test pictures, drawn by the seed"


def first_of(source: str) -> list[Item]:
    """The test pictures of a data set that others are drawn from."""
    return datasets()[source].items(0, REACH)


def tensor(pictures: Sequence[Pixels]) -> Tensor:
    """uint8 (H, W, C) each, as float32 (N, C, H, W) in [0, 1]."""
    return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).contiguous().float() / 255


# ---------------------------------------------------------------- one pool each


def _uploads(kind: str, batch: Sequence[Origin]) -> dict[Hashable, Origin]:
    """The different pictures of one kind that were uploaded for this batch, the one that is compared among them."""
    return {one.who: one for one in batch if one.source == "upload" and one.kind == kind and one.file}


@lru_cache(maxsize=8)
def _gallery(kind: str, shape: Shape) -> Candidates:
    """Crops of the gallery's pictures of one kind."""
    own = [item.id for item in gallery() if _kind_in_gallery(item) == kind]
    return _crops({id: _whole(read("gallery", id, SOURCE, _channels(shape))) for id in own}, shape)


def _kind_in_gallery(item: Item) -> str:
    if item.id.startswith("xray-"):  # their class is "thing"
        return XRAY
    return PHOTOGRAPH if item.id in PHOTOS else kind_of(item.label)


def _crops(wholes: Mapping[Hashable, Image.Image], shape: Shape) -> Candidates:
    """Squares of pictures, as many of each: the whole, then random crops and mirror images, always the same.

    Stretched to the shape; where it is neither grey nor colour, the grey picture stands in every channel.
    """
    count, height, width = shape
    each = -(-(SIZE - 1) // (len(wholes) - 1))  # so that 99 remain without those of one picture
    rng = np.random.default_rng(0)
    who, found = list[Hashable](), []
    for number in range(each):
        for name, whole in wholes.items():
            side = int(rng.integers(SOURCE // 2, SOURCE + 1)) if number else SOURCE
            left, top = (int(value) for value in rng.integers(0, SOURCE + 1 - side, 2))
            square = whole.crop((left, top, left + side, top + side)).resize((width, height), Image.Resampling.LANCZOS)
            square = square.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if number % 2 else square
            who.append(name)
            found.append(np.asarray(square).reshape(height, width, _channels(shape)))
    return Candidates(who, tensor(found).expand(-1, count, -1, -1))


def _of_data_set(source: str, batch: Sequence[Origin], shape: Shape, seed: int) -> Candidates:
    """Test pictures drawn by the seed, none of them private; of people with names enough without those of a private one."""
    private = [one for one in batch if one.source == source]
    own, items, (channels, size, _) = {one.id for one in private}, first_of(source), shape
    order = torch.randperm(len(items), generator=generator(seed, "lineup", source)).tolist()
    left = [items[place] for place in order if items[place].id not in own]
    who: list[Hashable] = [item.label if source in OF_PEOPLE else item.id for item in left]
    enough = SIZE - 1 + SPARE + max(who.count(one.who) for one in private)  # 0 without names
    return Candidates(who[:enough], tensor([read(source, item.id, size, channels) for item in left[:enough]]))


def _drawn(faces: Sequence[Pixels], shape: Shape, seed: int) -> Candidates:
    """Faces drawn by the seed."""
    order = torch.randperm(len(faces), generator=generator(seed, "lineup", "faces")).tolist()[: SIZE - 1 + SPARE]
    return Candidates([f"face {place}" for place in order], tensor([fitted(faces[place], shape[1], shape[0]) for place in order]))


def _faces() -> list[Pixels]:
    """Different people, grey: the hundred of scikit-image, and those of the Olivetti faces where these are. Raises PictureError."""
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
