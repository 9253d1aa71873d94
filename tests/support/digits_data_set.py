"""A small data set that is always present: scikit-learn's digits in MNIST's format, 1,500 to train on and 297 to test."""

from pathlib import Path

import numpy as np

LEARNT = 1500


def write_digits(folder: Path) -> Path:
    """Put the digits where a data folder has MNIST: 8 by 8 pixels enlarged three times, with a black frame of 2. Answers the folder."""
    from sklearn.datasets import load_digits  # takes a second, so not while tests are only listed

    pixels, labels = load_digits(return_X_y=True)
    large = np.kron((pixels.reshape(-1, 8, 8) * 255 / 16).round().astype(np.uint8), np.ones((1, 3, 3), np.uint8))  # (N, 24, 24)
    pictures = np.pad(large, ((0, 0), (2, 2), (2, 2)))  # (N, 28, 28)
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name, part in (("train", slice(LEARNT)), ("t10k", slice(LEARNT, None))):
        x, y = pictures[part], labels[part].astype(np.uint8)
        head = b"".join(number.to_bytes(4, "big") for number in x.shape)
        (raw / f"{name}-images-idx3-ubyte").write_bytes(b"\0\0\x08\x03" + head + x.tobytes())
        (raw / f"{name}-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01" + len(y).to_bytes(4, "big") + y.tobytes())
    return folder
