"""The pictures of an audit, from what their owner has: tensors, a DataLoader, a Dataset, or a folder of pictures."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from leakage.api import input_check
from leakage.api.normalization import Constants, constants_of
from leakage.auditing.picture_files import find_pictures, read_picture
from leakage.engine.core import generator
from leakage.spec.words import counted

SIDES = range(8, 257)  # pixels
Shape = tuple[int, int, int]
EXPECTED = (
    "data must be pictures and labels (x, y), a DataLoader, a Dataset of (picture, label) or of dictionaries with image and label, or the "
    "path of a folder of pictures; got a {}."
)
DENORMALIZED = 1e-3  # distance from [0, 1] that counts as rounding after a normalization was undone in float32


@dataclass(frozen=True, eq=False)
class Sample:
    """The pictures that an audit attacks."""

    x: Tensor
    """Pictures (N, C, H, W) in [0, 1]."""
    y: Tensor | None
    """Labels (N,), or numbers (N, K) as the loss takes them; None: the model's own predictions stand in for them."""
    names: tuple[str, ...]
    """What the owner calls each picture: its file, or its number in the data."""
    origin: str
    """Where the pictures are from, as a sentence."""
    classes: tuple[str, ...] = ()
    """The names of the classes, in the order of their numbers; empty if they have none."""

    def part(self, chosen: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Return the pictures and labels of a group, by their positions in the sample; the labels must be known."""
        assert self.y is not None
        return self.x[list(chosen)], self.y[list(chosen)]


@dataclass(frozen=True, eq=False)
class _Items:
    """Single pictures with their labels, before they are checked."""

    pairs: list[tuple[Any, Any]]
    names: tuple[str, ...]
    origin: str
    classes: tuple[str, ...] = field(default=())


def draw_sample(data: object, count: int, *, seed: int, normalized: Constants | None = None, image_shape: Shape | None = None) -> Sample:
    """Take pictures and labels from data.

    Args:
        data: (x, y); a DataLoader; a Dataset of (picture, label) or of dictionaries with `image` and `label`; or the path of a folder. The
            subfolders of a folder are classes; the pictures of a folder without subfolders have no labels.
        count: the number of pictures that are taken, if there are so many: the first of tensors and of a DataLoader, else by the seed.
        seed: of the draw.
        normalized: the normalization that the data have gone through, which is undone; None: the pictures are in [0, 1].
        image_shape: (C, H, W) to which pictures of a folder are cut and resized; None: they keep their size, which must be the same.

    Returns:
        A Sample.

    Raises:
        TypeError, ValueError: with a sentence that says what was wrong, what is expected, and what to do.
    """
    items = _items(data, count, seed, image_shape)
    if not items.pairs:
        raise ValueError("The data hold no picture. Give at least one, with its label.")
    pictures = [_picture(picture, name) for (picture, _), name in zip(items.pairs, items.names, strict=True)]
    shapes = sorted({tuple(picture.shape) for picture in pictures})
    if len(shapes) > 1:
        raise ValueError(
            f"The pictures have different shapes (C, H, W): {', '.join(map(str, shapes[:3]))}. Give them one shape, or for a folder "
            "image_shape=(C, H, W)."
        )
    x = torch.stack(pictures)
    if normalized is not None:
        mean, std = (part.to(x.dtype)[:, None, None] for part in constants_of(normalized, x.shape[1]))
        x = _rounded(x * std + mean)
    if min(x.shape[2:]) not in SIDES or max(x.shape[2:]) not in SIDES:
        raise ValueError(
            f"The pictures have {x.shape[2]} by {x.shape[3]} pixels; expected are sides from {SIDES[0]} to {SIDES[-1]} pixels."
        )
    labels = [label for _, label in items.pairs]
    y = None if any(label is None for label in labels) else _labels(labels)
    return Sample(input_check.pictures(x), y, items.names, items.origin, items.classes)


def _items(data: object, count: int, seed: int, image_shape: Shape | None) -> _Items:
    """Return at most `count` pictures with their labels. Raises TypeError, ValueError."""
    if isinstance(data, str | os.PathLike):
        return _of_folder(Path(data), count, seed, image_shape)
    if isinstance(data, tuple | list) and len(data) == 2 and isinstance(data[0], Tensor):
        x, y = data
        if not isinstance(y, Tensor) or len(y) != len(x):
            raise ValueError(f"data must have one label for each picture; got {len(x)} pictures, and labels {_described(y)}.")
        kept = range(min(count, len(x)))
        given = f"The {len(x):,} pictures that were given." if len(x) > 1 else "The picture that was given."
        first = f"The first {len(kept)} of {len(x):,} pictures." if len(kept) < len(x) else given
        return _Items([(x[index], y[index]) for index in kept], tuple(map(str, kept)), first)
    if isinstance(data, torch.utils.data.DataLoader):
        pairs = list(islice(_singles(data), count))
        return _Items(pairs, tuple(map(str, range(len(pairs)))), f"The first {counted(len(pairs), 'picture')} of a DataLoader.")
    if isinstance(data, torch.utils.data.IterableDataset):
        pairs = [_pair(item) for item in islice(data, count)]
        return _Items(pairs, tuple(map(str, range(len(pairs)))), f"The first {counted(len(pairs), 'picture')} of a data set.")
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not isinstance(data, Mapping | tuple | list):
        return _drawn(data.__getitem__, len(data), count, seed, tuple(map(str, getattr(data, "classes", ()))))
    raise TypeError(EXPECTED.format(type(data).__name__))


def _drawn(item: Callable[[int], Any], total: int, count: int, seed: int, classes: tuple[str, ...]) -> _Items:
    """Return items of a Dataset, drawn by the seed."""
    drawn = torch.randperm(total, generator=generator(seed, "audit"))[:count].tolist()
    origin = f"{len(drawn)} of {total:,} pictures of a data set, drawn by seed {seed}."
    return _Items([_pair(item(index)) for index in drawn], tuple(map(str, drawn)), origin, classes)


def _of_folder(folder: Path, count: int, seed: int, image_shape: Shape | None) -> _Items:
    """Return pictures of a folder, drawn by the seed; the label of each is its subfolder, or None where there are no subfolders."""
    files, classes = find_pictures(folder)
    drawn = torch.randperm(len(files), generator=generator(seed, "audit"))[:count].tolist()
    chosen = [files[index] for index in drawn]
    pairs = [(read_picture(path, image_shape), label) for path, label in chosen]
    origin = f"{len(chosen)} of {counted(len(files), 'picture')} of a folder, drawn by seed {seed}."
    return _Items(pairs, tuple(str(path.relative_to(folder)) for path, _ in chosen), origin, classes)


def _singles(loader: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the single pictures of a DataLoader's batches with their labels."""
    for batch in loader:
        x, y = _pair(batch)
        if not isinstance(x, Tensor) or x.dim() != 4:
            raise TypeError(f"The DataLoader gives pictures as {_described(x)}; expected is a tensor (B, C, H, W).")
        yield from zip(x, y, strict=True)


def _pair(item: Any) -> tuple[Any, Any]:
    """Return picture and label of an item of a data set. Raises TypeError."""
    if isinstance(item, Mapping):
        if {"image", "label"} <= item.keys():
            return item["image"], item["label"]
        raise TypeError(f"An item of the data has the keys {', '.join(map(str, item))}; expected are image and label.")
    if isinstance(item, tuple | list) and len(item) >= 2:
        return item[0], item[1]
    raise TypeError(f"An item of the data is {_described(item)}; expected is (picture, label), or a dictionary with image and label.")


def _picture(given: Any, name: str) -> Tensor:
    """Return a picture as a tensor (C, H, W) of floats; bytes become numbers from 0 to 1. Raises TypeError."""
    if isinstance(given, Image.Image):
        if given.mode[0] in "IF":
            raise TypeError(f"Picture {name} has more than 8 bits for each value. Give it as a tensor (C, H, W) of floats in [0, 1].")
        given = np.array(given.convert("L" if given.mode in ("1", "L", "LA") else "RGB"))
        given = given[..., None] if given.ndim == 2 else given
    if isinstance(given, np.ndarray) and given.ndim == 3:
        given = torch.from_numpy(np.array(given)).permute(2, 0, 1)
    if not isinstance(given, Tensor) or given.dim() != 3:
        raise TypeError(
            f"Picture {name} is {_described(given)}; expected is a tensor (C, H, W), an array (H, W, C), or a picture of Pillow. "
            "Add transforms.ToTensor() to the data set."
        )
    picture: Tensor = given.detach().cpu()
    if picture.dtype == torch.uint8:
        return picture.float() / 255
    if not picture.is_floating_point():
        raise TypeError(f"Picture {name} has numbers of type {picture.dtype}; expected are bytes, or floats in [0, 1].")
    return picture


def _labels(labels: list[Any]) -> Tensor:
    """Return the labels of all pictures as one tensor: (N,) whole numbers, or (N, K) numbers. Raises TypeError."""
    try:
        y = torch.stack([torch.as_tensor(label) for label in labels]).cpu()
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            f"A label is {_described(labels[0])}; expected is a whole number, or a tensor of numbers for each picture."
        ) from None
    return y.flatten() if y.dim() == 2 and y.shape[1] == 1 and not y.is_floating_point() else y


def _rounded(x: Tensor) -> Tensor:
    """Clamp pictures to [0, 1] whose normalization was undone. Raises ValueError if they lie further outside than rounding explains."""
    low, high = float(x.min()), float(x.max())
    if low < -DENORMALIZED or high > 1 + DENORMALIZED:
        raise ValueError(
            f"Without their normalization the pictures lie in {low:.3g} to {high:.3g}; expected is 0 to 1. Give the normalization that the "
            "data have gone through, or leave out normalized=True."
        )
    return x.clamp(0, 1)


def _described(value: object) -> str:
    """Return a short description of a value for an error."""
    return f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
