"""`python -m leakage fetch`: MNIST, CIFAR-10 or CIFAR-100 by torchvision, to where the page finds them."""

import importlib
import socket
from http.client import HTTPException
from pathlib import Path

from leakage.pictures import PictureError

PATIENCE = 30  # seconds without an answer before a server counts as out of reach
SETS = {  # name -> torchvision's class, the file to get by hand, and where its content belongs
    "mnist": (
        "MNIST",
        "t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz from https://ossci-datasets.s3.amazonaws.com/mnist/",
        "put both into {folder}/MNIST/raw",
    ),
    "cifar10": (
        "CIFAR10",
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "unpack it in {folder}, which gives {folder}/cifar-10-batches-bin/test_batch.bin",
    ),
    "cifar100": (
        "CIFAR100",
        "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        "unpack it in {folder}, which gives {folder}/cifar-100-binary/test.bin",
    ),
}


def fetch(name: str, folder: Path) -> Path:
    """Download a data set into `folder` (made when missing) and return it; nothing is downloaded twice.

    Raises PictureError with the way by hand when the network does not allow it.
    """
    if name not in SETS:
        raise PictureError(f"fetch knows no data set {name!r}; expected is {', '.join(SETS)}.")
    kind, file, place = SETS[name]
    patience = socket.getdefaulttimeout()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        socket.setdefaulttimeout(PATIENCE)
        getattr(importlib.import_module("torchvision.datasets"), kind)(folder, train=False, download=True)
    except (OSError, RuntimeError, HTTPException) as error:
        remedy = f"By hand: get {file} and {place.format(folder=folder)}."
        raise PictureError(f"{name} could not be downloaded ({' '.join(str(error).split())}). {remedy}") from error
    finally:
        socket.setdefaulttimeout(patience)
    return folder
