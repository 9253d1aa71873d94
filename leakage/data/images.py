"""Pictures as arrays of bytes: the gallery, data sets, stored uploads, thumbnails and contact sheets. No torch."""

import base64
import gzip
from functools import lru_cache
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from leakage.data.datasets import DataSet, Item, PictureError, data_folder, data_set, datasets, training_pictures
from leakage.data.decoder import square
from leakage.data.drawn_xrays import COUNT, xray
from leakage.data.errors import BROKEN
from leakage.data.package_files import package_file
from leakage.data.readers import Pixels, Rows
from leakage.data.shipped_digits import digits_file

__all__ = ["GALLERY_CLASSES", "DataSet", "Item", "PictureError", "Pixels", "Rows", "data_folder", "datasets", "training_pictures"]
__all__ += ["class_names", "find", "fitted", "gallery", "is_grey", "portraits", "read", "saved", "sheet"]
__all__ += ["thumbnail", "tiles"]

GALLERY_CLASSES = ["person", "cat", "cup", "rocket", "eye scan", "tissue scan", "face", "digit", "document", "thing"]


class _Photo(NamedTuple):
    """A photograph inside scikit-image, and a square part of it that is recognizable at 32 pixels."""

    file: str
    title: str
    left: int
    top: int
    side: int
    alt: str


PHOTOS = {  # in the order of their classes
    "astronaut": _Photo("astronaut.png", "Astronaut", 100, 0, 256, "Portrait of a smiling astronaut with short hair in an orange suit."),
    "chelsea": _Photo("chelsea.png", "Cat", 75, 0, 300, "Face of a tabby cat with green eyes."),
    "coffee": _Photo("coffee.png", "Coffee", 75, 0, 400, "White cup of coffee on a red saucer with a spoon."),
    "rocket": _Photo("rocket.jpg", "Rocket", 180, 107, 300, "White rocket standing on its launch pad at dusk."),
    "retina": _Photo("retina.jpg", "Retina", 0, 0, 1411, "Round orange scan of the back of an eye with a bright spot at the left."),
    "immunohistochemistry": _Photo("ihc.png", "Tissue", 192, 256, 256, "Tissue under a microscope: a brown gland among small blue cells."),
}
SCANS = [*(("retina.jpg", left, top, 420) for left, top in ((100, 220), (100, 640), (460, 400), (340, 820)))]
SCANS += [("ihc.png", left, top, 170) for left, top in ((0, 0), (340, 0), (0, 340), (340, 340))]
PAGES = [("page.png", 4 + 48 * number, 2, 48) for number in range(6)]  # parts of a printed line; the next are handwriting
PAGES += [("text.png", 20 + 100 * number, 40, 96) for number in range(4)]
FACES = (18, 1, 2, 10, 11, 13, 15, 22, 31, 35, 37, 38)  # indices in `portraits()`


@lru_cache(maxsize=1)
def _gallery() -> dict[str, Item]:
    def item(id: str, title: str, label: int, alt: str) -> Item:
        return Item("gallery", id, title, label, GALLERY_CLASSES[label], alt)

    photos = [item(id, photo.title, label, photo.alt) for label, (id, photo) in enumerate(PHOTOS.items())]
    faces = [item(f"face-{n}", f"Face {n}", 6, f"Small grey portrait of a person, number {n} of {len(FACES)}.") for n in range(len(FACES))]
    digits = [item(f"digit-{n}", f"Digit {n}", 7, f"Handwritten digit {n}, white on black.") for n in range(10)]
    pages = [item(f"page-{n}", f"Document {n}", 8, f"A few letters of a document, number {n} of {len(PAGES)}.") for n in range(len(PAGES))]
    scans = [
        item(f"scan-{n}", f"Scan {n}", 4 if file == "retina.jpg" else 5, f"A part of a medical scan, number {n} of {len(SCANS)}.")
        for n, (file, *_) in enumerate(SCANS)
    ]
    xrays = [item(f"xray-{n}", f"X-ray {n} (drawn)", 9, f"A drawing like a chest X-ray, number {n} of {COUNT}.") for n in range(COUNT)]
    return {item.id: item for item in [*photos, faces[0], digits[0], *faces[1:], *digits[1:], *pages, *scans, *xrays]}


def gallery() -> list[Item]:
    """Return the pictures that need no download; the first eight have eight different classes."""
    return list(_gallery().values())


def find(source: str, id: str) -> Item:
    """Return a picture of the gallery or a data set as an item without pixels. Raises PictureError if there is none with this id."""
    if source != "gallery":
        return _data_set(source).item(id)
    if id not in _gallery():
        raise PictureError(f"The gallery has no picture {id!r}; it has {', '.join(_gallery())}. Choose one of these.")
    return _gallery()[id]


def class_names(source: str) -> list[str]:
    """Return the class names of a source of pictures, in the order of their labels; uploads have the classes of the gallery."""
    return GALLERY_CLASSES if source in ("gallery", "upload") else list(_data_set(source).classes)


def read(source: str, id: str, size: int, channels: int, upload: bytes | None = None) -> Pixels:
    """Return the pixels of a picture, resized by `fitted`; an MNIST picture first gets a black frame of 2 pixels above size 28.

    Args:
        source: "gallery", "upload" or the name of a data set.
        id: Identifies the picture in its source.
        size: Height and width in pixels.
        channels: 3 (RGB) or 1 (luminance, ITU-R 601).
        upload: The stored bytes of an upload; None for other sources.

    Returns:
        uint8 (size, size, channels); exactly the stored pixels if a data set has this size.

    Raises:
        PictureError: If there is no such picture, or it is damaged.
    """
    if channels not in (1, 3) or size < 1:
        raise PictureError(f"Channels must be 1 or 3 and size at least 1, got {channels} and {size}. Choose a size from 28 to 256.")
    if source == "upload":
        if upload is None:
            raise PictureError(f"Upload {id} is not on this machine: it was deleted, or never arrived. Upload it again.")
        picture = np.asarray(square(upload, f"Upload {id}"))
    elif source == "gallery":
        picture = _stored(find(source, id).id)
    else:
        picture = _data_set(source).picture(id)
    if source == "mnist" and size > picture.shape[0]:
        picture = np.pad(picture, ((2, 2), (2, 2), (0, 0)))  # (32, 32, 1)
    return fitted(picture, size, channels)


def fitted(picture: Pixels, size: int, channels: int) -> Pixels:
    """Return a square picture uint8 (H, H, 1 or 3) as (size, size, channels): reduced by Lanczos, or enlarged bicubically."""
    image = _image(picture).convert("L" if channels == 1 else "RGB")
    if image.width != size:
        image = image.resize((size, size), Image.Resampling.LANCZOS if image.width > size else Image.Resampling.BICUBIC)
    return np.array(image).reshape(size, size, channels)


def is_grey(upload: bytes) -> bool:
    """Return whether the channels of a stored upload are equal in every pixel."""
    picture = np.asarray(square(upload, "Your picture"))
    return bool((picture == picture[..., :1]).all())


def _data_set(source: str) -> DataSet:
    try:
        return data_set(source)
    except KeyError:
        raise PictureError(f"There is no source of pictures {source!r}; expected is gallery, upload, {', '.join(datasets())}.") from None


def _cut(file: str, left: int, top: int, side: int) -> Pixels:
    """Return a square part of a photograph inside scikit-image: (side, side, 3)."""
    with Image.open(package_file("skimage", f"data/{file}")) as image:
        return np.asarray(image.convert("RGB").crop((left, top, left + side, top + side)))


@lru_cache(maxsize=64)
def _stored(id: str) -> Pixels:
    """Return a gallery picture as the Python package that ships it stores it, (S, S, 3) or (S, S, 1), without importing the package."""
    if id in PHOTOS:
        photo = PHOTOS[id]
        return _cut(photo.file, photo.left, photo.top, photo.side)
    kind, number = id.split("-")
    if kind in ("page", "scan"):
        return _cut(*(PAGES if kind == "page" else SCANS)[int(number)])
    if kind == "xray":
        return xray(int(number))
    if kind == "face":
        return portraits()[FACES[int(number)]]
    with gzip.open(digits_file(), "rt") as file:
        line = next(islice(file, int(number), None))  # the first ten lines are the digits 0 to 9: 64 values from 0 to 16, then the digit
    values = np.array([float(value) for value in line.split(",")[:64]]).reshape(8, 8, 1)
    return np.round(values * (255 / 16)).astype(np.uint8)


@lru_cache(maxsize=1)
def portraits() -> list[Pixels]:
    """Return the hundred faces in scikit-image, uint8 (25, 25, 1) each; the gallery shows twelve of them."""
    faces = np.load(package_file("skimage", "data/lfw_subset.npy"))[:100]  # (100, 25, 25), in [0, 1]; the others are no faces
    return [*np.round(faces[..., None] * 255).astype(np.uint8)]


# ---------------------------------------------------------------- pictures for the page


def thumbnail(item: Item, side: int = 64, upload: bytes | None = None) -> str:
    """Return a picture at 32 pixels, enlarged to `side` by nearest neighbour, as the data address of a PNG.

    Uploads are not cached, because a deleted upload must not stay in memory. Raises PictureError if the picture is missing or damaged.
    """
    make = _thumbnail.__wrapped__ if item.source == "upload" else _thumbnail
    return make(item, side, upload, data_folder())


@lru_cache(maxsize=1024)
def _thumbnail(item: Item, side: int, upload: bytes | None, _folder: Path) -> str:
    image = _image(read(item.source, item.id, 32, 3, upload)).resize((side, side), Image.Resampling.NEAREST)
    return "data:image/png;base64," + base64.b64encode(_png(image)).decode()


def sheet(pictures: Pixels) -> bytes:
    """Return pictures uint8 (B, H, W, C), C 1 or 3, side by side as a lossless PNG. Raises ValueError for another shape or type."""
    if pictures.dtype != np.uint8 or pictures.ndim != 4 or pictures.shape[3] not in (1, 3) or 0 in pictures.shape:
        raise ValueError(f"sheet: expected uint8 (B, H, W, 1 or 3), got {pictures.dtype} {pictures.shape}. Scale to 0..255 first.")
    row = pictures.transpose(1, 0, 2, 3).reshape(pictures.shape[1], -1, pictures.shape[3])  # (H, B * W, C)
    return _png(_image(row), level=1)


def tiles(png: bytes, count: int) -> Pixels:
    """Return the pictures of a contact sheet, uint8 (count, H, W, C). Raises PictureError if it does not contain `count` pictures."""
    try:
        with Image.open(BytesIO(png), formats=("PNG",)) as image:
            row = np.array(image)
    except BROKEN as error:
        raise PictureError(f"This contact sheet is damaged ({error}). Run the experiment again.") from error
    if count < 1 or row.shape[1] % count:
        raise PictureError(f"A sheet {row.shape[1]} pixels wide does not contain {count} pictures. Give the batch size of its run.")
    return row.reshape(row.shape[0], count, row.shape[1] // count, -1).transpose(1, 0, 2, 3)  # (B, H, W, C)


def _image(picture: Pixels) -> Image.Image:
    """Return pixels (H, W, C) as a Pillow image, in mode L if C is 1, else RGB."""
    return Image.fromarray(np.ascontiguousarray(picture[:, :, 0] if picture.shape[2] == 1 else picture))


def _png(image: Image.Image, *, level: int = 6) -> bytes:
    """Return an image as a PNG without color profile, comment or EXIF data."""
    return saved(Image.fromarray(np.asarray(image)), "PNG", compress_level=level)


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    """Encode an image as a file of a format, such as "PNG", with Pillow's options."""
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()
