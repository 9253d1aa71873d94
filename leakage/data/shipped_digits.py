"""The 1,797 handwritten digits of scikit-learn, which are on every machine: some to learn from, the others to be tried on. No torch."""

import gzip
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image

from leakage.data.package_files import package_file
from leakage.data.readers import Rows

LEARNT = 1500  # the first, to learn from
SIDE = 28  # pixels, as MNIST's; the package has 8, and 17 levels of grey


def digits_file() -> Path:
    """The file in the package. Raises PictureError."""
    return package_file("sklearn", "datasets/data/digits.csv.gz")


def training_digits() -> Rows:
    """Those to learn from: uint8 (1500, 28, 28, 1), labels (1500,). Raises PictureError."""
    pixels, labels = _all(digits_file())
    return Rows(pixels[:LEARNT], labels[:LEARNT])


def tried_digits() -> Rows:
    """Those to be tried on: uint8 (297, 28, 28, 1), labels (297,). Raises PictureError."""
    pixels, labels = _all(digits_file())
    return Rows(pixels[LEARNT:], labels[LEARNT:])


@lru_cache(maxsize=1)
def _all(path: Path) -> Rows:
    """Enlarged as the gallery enlarges its ten: bicubically."""
    with gzip.open(path, "rt") as file:
        table = np.loadtxt(file, delimiter=",")  # (1797, 65): 64 levels from 0 to 16, and the digit
    small = np.round(table[:, :64].reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    large = [np.array(Image.fromarray(one).resize((SIDE, SIDE), Image.Resampling.BICUBIC)) for one in small]
    rows = Rows(np.stack(large)[..., None], table[:, 64].astype(np.int64))
    for array in rows:
        array.setflags(write=False)
    return rows
