"""The backbones of LPIPS (networks with ImageNet weights): where their files can be, and the check of a file's SHA-256. No torch."""

import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from leakage.data.datasets import data_folder


@dataclass(frozen=True)
class Backbone:
    """A network with torchvision's ImageNet weights, on whose features LPIPS (a perceptual distance of pictures) can be computed."""

    net: str
    """The name of the network in LPIPS."""
    title: str
    file: str
    sha256: str
    """The SHA-256 of the file, or the digits with which it begins."""
    megabytes: int
    other: tuple[str, str] | None = None
    """Another file with the same features, below the data folder, and its SHA-256."""

    @property
    def command(self) -> str:
        """The command that downloads the file."""
        return f"python -m leakage fetch lpips-{self.net}"

    def places(self, hub: Path) -> list[tuple[Path, str]]:
        """Return every path where the file can be, with the beginning of its SHA-256; `hub` is torch's folder of downloads."""
        candidates = [(data_folder() / "lpips" / self.file, self.sha256), (hub / self.file, self.sha256)]
        if self.other:
            candidates.append((data_folder() / self.other[0], self.other[1]))
        return candidates


BACKBONES = (  # in the order of preference: recommended by the authors of LPIPS, also reported by most papers, smallest
    Backbone("alex", "AlexNet", "alexnet-owt-7be5be79.pth", "7be5be79", 244),
    Backbone("vgg", "VGG-16", "vgg16-397923af.pth", "397923af", 553),
    Backbone(
        "squeeze",
        "SqueezeNet",
        "squeezenet1_1-b8a52dc0.pth",
        "b8a52dc049b60e4b6ab68ad0df457362afab8b6304b2febdc1650a5dab4d7e7b",
        5,
        ("lpips_squeeze/squeezenet1_1_features.pth", "65848f4c678bba05bcc2fc7c35df775d303ffcbc3e24e770a727cb4296e10e84"),
    ),
)


def hub() -> Path:
    """Return torch's folder of downloads, which torch.hub uses."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("TORCH_HOME") or f"{cache}/torch").expanduser() / "hub" / "checkpoints"


def available_nets() -> str:
    """Return the names of the networks that have a file on this machine, joined by +, or "no LPIPS"; the files are not checked.

    The names are part of what a result depends on, so that results with LPIPS and results without it are kept apart.
    """
    folder = hub()
    nets = [backbone.net for backbone in BACKBONES if any(path.is_file() for path, _ in backbone.places(folder))]
    return "+".join(nets) or "no LPIPS"


def choose(hub: Path) -> tuple[Backbone | None, Path | None, str]:
    """Choose the first backbone in BACKBONES that has a valid file.

    Args:
        hub: Torch's folder of downloads.

    Returns:
        The backbone and its file, both None if there is no valid file, and sentences about the invalid files that were found before.
    """
    problems: list[str] = []
    for backbone in BACKBONES:
        for path, prefix in backbone.places(hub):
            problem = complaint(path, prefix, backbone.command)
            if problem is None:
                return backbone, path, " ".join(problems)
            if problem:
                problems.append(problem)
    return None, None, " ".join(problems)


def complaint(path: Path, prefix: str, command: str) -> str | None:
    """Check that the SHA-256 of a file begins with a prefix.

    Returns:
        None if it does; an empty text if there is no file; otherwise a sentence with the file, the expectation and the command to run.
    """
    try:
        stat = path.stat()
        digest = _digest(path, stat.st_mtime_ns, stat.st_size)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return f"{path} cannot be read ({error.strerror}): allow reading it, or delete it and run `{command}`."
    if digest.startswith(prefix):
        return None
    expected = f"a SHA-256 that begins with {prefix[:8]}, its content has {digest[:8]}"
    return f"{path} is not the file that its name says (expected is {expected}): delete it and run `{command}`."


@lru_cache(maxsize=8)
def _digest(path: Path, _stamp: int, _size: int) -> str:
    """Return the SHA-256 of a file; the cache is used until the file's time or size changes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
