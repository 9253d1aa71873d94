"""`python -m leakage fetch`: data sets by torchvision, and the networks LPIPS looks through, to where the page finds them."""

import importlib
import socket
from http.client import HTTPException
from pathlib import Path

from leakage.data.images import PictureError
from leakage.data.lpips_download import PATIENCE, download, source
from leakage.data.lpips_weights import BACKBONES, Backbone, complaint, hub

SETS = {  # name -> torchvision's class, the file to get by hand, and where its content belongs
    "mnist": (
        "MNIST",
        "t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz (and, to train, both files that begin with train- instead of t10k-) "
        "from https://ossci-datasets.s3.amazonaws.com/mnist/",
        "put them into {folder}/MNIST/raw",
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


NAMES = (*SETS, *(f"lpips-{backbone.net}" for backbone in BACKBONES))


def fetch(name: str, folder: Path) -> Path:
    """Download a data set or a backbone into `folder` (made when missing) and return where it is; nothing is downloaded twice.

    Raises PictureError with the way by hand when the network does not allow it.
    """
    if name not in NAMES:
        raise PictureError(f"fetch knows no data set {name!r}; expected is {', '.join(NAMES)}.")
    patience = socket.getdefaulttimeout()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        socket.setdefaulttimeout(PATIENCE)
        return _data_set(name, folder) if name in SETS else _backbone(_called(name), folder / "lpips")
    except (OSError, RuntimeError, HTTPException) as error:
        raise PictureError(
            f"{name} could not be downloaded ({' '.join(str(error).split())}). By hand: {_by_hand(name, folder)}."
        ) from error
    finally:
        socket.setdefaulttimeout(patience)


def _data_set(name: str, folder: Path) -> Path:
    getattr(importlib.import_module("torchvision.datasets"), SETS[name][0])(folder, train=False, download=True)
    return folder


def _backbone(backbone: Backbone, folder: Path) -> Path:
    """Raises RuntimeError when what arrives does not have the SHA-256 that is expected."""
    for path, prefix in backbone.places(hub()):
        if complaint(path, prefix, backbone.command) is None:
            return path
    try:
        return download(backbone, folder)
    finally:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _by_hand(name: str, folder: Path) -> str:
    if name in SETS:
        _, file, place = SETS[name]
        return f"get {file} and {place.format(folder=folder)}"
    return f"get {source()}{_called(name).file} and put it into {folder / 'lpips'}"


def _called(name: str) -> Backbone:
    return next(backbone for backbone in BACKBONES if name == f"lpips-{backbone.net}")
