"""The pictures in a folder: their files, their classes, and their pixels."""

from pathlib import Path

import numpy as np
import torch
from PIL import ExifTags, Image, ImageOps
from torch import Tensor

from leakage.data.color_profiles import in_srgb, profile_of
from leakage.data.decoder import DAMAGED, MAX_BYTES, TOO_LARGE, TURNS, open_picture
from leakage.data.errors import BROKEN, PictureError
from leakage.data.png_depth import Depth

KINDS = (".png", ".jpg", ".jpeg", ".webp")
UNREAD = (".dcm", ".dicom", ".tif", ".tiff", ".heic", ".avif", ".gif", ".bmp", ".npy", ".npz", ".nii", ".gz")
DEEP = (
    "{} has 16 bits for each value, and an audit of a folder reads 8. Save it with 8 bits, or give the pictures as tensors in [0, 1]: "
    "leakage.audit(model, (x, y))."
)
OTHERS = (
    " It has {} files, which an audit does not read. Convert them to PNG, or give the pictures as tensors in [0, 1]: "
    "leakage.audit(model, (x, y))."
)


def find_pictures(folder: Path) -> tuple[list[tuple[Path, int | None]], tuple[str, ...]]:
    """List the pictures of a folder, each with the number of its class, and the names of the classes.

    The subfolders are the classes, sorted by name, as in torchvision's ImageFolder. A folder without subfolders has no classes, and its
    pictures have the class None. Hidden files and links are left out.

    Raises:
        ValueError: there is no such folder, or it has no pictures.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder. Give the path of a folder of pictures, or (x, y).")
    entries = _entries(folder)
    classes = [entry for entry in entries if entry.is_dir()]
    listed: list[tuple[Path, int | None]] = [(path, number) for number, one in enumerate(classes) for path in _entries(one)]
    files = _pictures(listed) or _pictures([(path, None) for path in entries])
    if not files:
        strange = sorted({path.suffix.lower() for path in [*entries, *(path for path, _ in listed)]} & set(UNREAD))
        raise ValueError(
            f"The folder {folder} has no pictures; expected are PNG, JPEG or WebP files, in the folder itself or in a subfolder for each "
            f"class.{OTHERS.format(', '.join(strange)) if strange else ''}"
        )
    return files, tuple(one.name for one in classes)


def _pictures(listed: list[tuple[Path, int | None]]) -> list[tuple[Path, int | None]]:
    return [(path, label) for path, label in listed if path.is_file() and path.suffix.lower() in KINDS]


def _entries(folder: Path) -> list[Path]:
    return [entry for entry in sorted(folder.iterdir()) if not entry.name.startswith(".") and not entry.is_symlink()]


def read_picture(path: Path, shape: tuple[int, int, int] | None) -> Tensor:
    """Read a picture file as a tensor (C, H, W) in [0, 1].

    Args:
        path: the file.
        shape: (C, H, W) to which it is cut around its center and resized; None: its own size, and one channel if the file is grey.

    Raises:
        PictureError: a ValueError; the file is no picture that can be read, is damaged or too large, or has 16 bits for each value.
    """
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise PictureError(TOO_LARGE.format(path.name, size / 2**20))
    data = path.read_bytes()
    if Depth.of(data).stored == 16:
        raise PictureError(DEEP.format(path.name))
    with open_picture(data, path.name) as image:
        try:
            image.load()
            turn = TURNS.get(image.getexif().get(ExifTags.Base.Orientation, 1))
            upright = image if turn is None else image.transpose(turn)
        except BROKEN as error:
            raise PictureError(DAMAGED.format(path.name, " ".join(str(error).split())[:100])) from error
        grey = image.mode in ("1", "L", "LA")
        pixels = in_srgb(upright.convert("L" if grey else "RGB"), profile_of(image))
    if shape is not None:
        grey = shape[0] == 1
        pixels = ImageOps.fit(pixels, (shape[2], shape[1]), Image.Resampling.LANCZOS)
    array = np.array(pixels.convert("L" if grey else "RGB"))
    return torch.from_numpy(array.reshape(*array.shape[:2], -1)).permute(2, 0, 1).contiguous().float() / 255
