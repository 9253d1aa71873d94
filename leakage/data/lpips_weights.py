"""The networks LPIPS looks through: which files hold them, where they may lie, and whether a file is what its name says. No torch."""

import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from leakage.data.datasets import data_folder


@dataclass(frozen=True)
class Backbone:
    """One network with torchvision's ImageNet weights. `sha256` is that of its file, or how it begins, as the file's own name says."""

    net: str  # as LPIPS calls it
    title: str
    file: str
    sha256: str
    megabytes: int
    other: tuple[str, str] | None = None  # another file with the same features, below the data folder, and its SHA-256

    @property
    def command(self) -> str:
        """What fetches it."""
        return f"python -m leakage fetch lpips-{self.net}"

    def places(self, hub: Path) -> list[tuple[Path, str]]:
        """Every path where it is looked for, with what its SHA-256 must begin with; `hub` is torch's own folder of downloads."""
        available_nets = [(data_folder() / "lpips" / self.file, self.sha256), (hub / self.file, self.sha256)]
        if self.other:
            available_nets.append((data_folder() / self.other[0], self.other[1]))
        return available_nets


BACKBONES = (  # in the order of preference: the net its authors recommend, the one most papers also print, the smallest
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
    """Torch's own folder of downloads, where torch.hub looks too."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("TORCH_HOME") or f"{cache}/torch").expanduser() / "hub" / "checkpoints"


def available_nets() -> str:
    """The nets that have a file here, genuine or not: results with LPIPS and without must not be taken for each other."""
    return "+".join(backbone.net for backbone in BACKBONES if any(path.is_file() for path, _ in backbone.places(hub()))) or "no LPIPS"


def choose(hub: Path) -> tuple[Backbone | None, Path | None, str]:
    """The first backbone of BACKBONES that is here and genuine, its file, and a sentence on files that are not what they should be."""
    wrong: list[str] = []
    for backbone in BACKBONES:
        for path, prefix in backbone.places(hub):
            problem = complaint(path, prefix, backbone.command)
            if problem is None:
                return backbone, path, " ".join(wrong)
            if problem:
                wrong.append(problem)
    return None, None, " ".join(wrong)


def complaint(path: Path, prefix: str, command: str) -> str | None:
    """None for a genuine file, "" where there is none, else one sentence naming the file, the expectation and the remedy."""
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
    """SHA-256; computed anew only when the file has changed."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
