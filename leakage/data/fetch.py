"""The command `python -m leakage fetch`, which downloads data sets (by torchvision) and the backbones of LPIPS into the data folder."""

import importlib
import socket
from http.client import HTTPException
from pathlib import Path

from leakage.data.images import PictureError
from leakage.data.lpips_download import PATIENCE, download, source
from leakage.data.lpips_weights import BACKBONES, Backbone, complaint, hub

SETS = {  # name: torchvision's class, the file to download by hand, and where to put its content
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
    """Download a data set or a backbone of LPIPS, unless it is already on this machine, and return its folder or file.

    Args:
        name: One of NAMES.
        folder: The data folder, which is created if necessary.

    Raises:
        PictureError: If the name is unknown or the download fails; the message then says how to download the files by hand.
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
    """Return the file of a backbone, and download it if there is none yet. Raises RuntimeError if its SHA-256 is wrong."""
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
        _, file, step = SETS[name]
        return f"get {file} and {step.format(folder=folder)}"
    return f"get {source()}{_called(name).file} and put it into {folder / 'lpips'}"


def _called(name: str) -> Backbone:
    return next(backbone for backbone in BACKBONES if name == f"lpips-{backbone.net}")
