"""The 1,797 handwritten digits inside scikit-learn, so on every machine: 1,500 for training, the others for tests. No torch."""

import gzip
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image

from leakage.data.package_files import package_file
from leakage.data.readers import Rows

LEARNT = 1500  # so many digits, the first, are the training set
SIDE = 28  # pixels, as in MNIST; the digits in the package have 8 pixels and 17 levels of grey


def digits_file() -> Path:
    """Return the path of the file with the digits inside scikit-learn. Raises PictureError if it is missing."""
    return package_file("sklearn", "datasets/data/digits.csv.gz")


def training_digits() -> Rows:
    """Return the training set: uint8 (1500, 28, 28, 1), labels (1500,). Raises PictureError if the file is missing."""
    pixels, labels = _all(digits_file())
    return Rows(pixels[:LEARNT], labels[:LEARNT])


def held_out_digits() -> Rows:
    """Return the test set: uint8 (297, 28, 28, 1), labels (297,). Raises PictureError if the file is missing."""
    pixels, labels = _all(digits_file())
    return Rows(pixels[LEARNT:], labels[LEARNT:])


@lru_cache(maxsize=1)
def _all(path: Path) -> Rows:
    """Return all digits, enlarged bicubically to SIDE, as the gallery enlarges its ten digits."""
    with gzip.open(path, "rt") as file:
        table = np.loadtxt(file, delimiter=",")  # (1797, 65): 64 levels from 0 to 16, and the digit
    small = np.round(table[:, :64].reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    large = [np.array(Image.fromarray(digit).resize((SIDE, SIDE), Image.Resampling.BICUBIC)) for digit in small]
    rows = Rows(np.stack(large)[..., None], table[:, 64].astype(np.int64))
    for array in rows:
        array.setflags(write=False)
    return rows
