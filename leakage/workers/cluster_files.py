"""The files of a run on another machine: which files it reads, how they are fetched, and how a training's files come back.

These files are public data sets and trained weights. Uploads are sent with the run, and never written to another machine's disk.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from leakage.data import lpips_weights
from leakage.data.checkpoints import SHIPPED, STATE, find, write
from leakage.data.datasets import training_files
from leakage.data.images import PictureError, data_folder, datasets
from leakage.data.readers import files_of
from leakage.runs.store import Run
from leakage.settings import Settings
from leakage.spec.experiment import parse
from leakage.spec.tasks import GradientNorms, InverterTraining, parse_training

FACES = "faces/olivettifaces.mat"  # see evaluation/pools.py
CARD = "card.json"  # the file that a training writes at its end


@dataclass(frozen=True)
class NeededFile:
    """A file that a run reads. A file of the same path, size and modification time on another machine is the same and is not sent."""

    root: str
    """The folder of the file: "data" or "checkpoints"."""
    path: str
    """The path below this folder."""
    size: int
    """In bytes."""
    written: int
    """When the file was last written, in nanoseconds since 1970."""


# ---------------------------------------------------------------- where the store is


def needed_files(run: Run, config: Settings) -> dict[NeededFile, Path]:
    """Return the files that a run reads, with their paths on this machine. Raises PictureError or CheckpointError if a file is missing."""
    if run.kind in ("rank", "handed", "audit"):
        return {}
    folder = data_folder()
    if run.kind == "train":
        training = parse_training(run.experiment)
        data = [*training_files(training.data), _test_file(training.data)]
        weights = iter(_list_files(training_folder(run, config)))
    elif run.kind == "invert":
        task = run.experiment_as(InverterTraining)
        data, weights = [*training_files(task.data), _test_file(task.data)], _weights(task.checkpoint)
    elif run.kind == "norms":
        norms = run.experiment_as(GradientNorms)
        data, weights = [_test_file(norms.source)], _weights(norms.checkpoint)
    else:
        experiment = parse(run.experiment)
        data = [_test_file(name) for name in {picture.source for picture in experiment.pictures} - {"gallery", "upload"}]
        data += [folder / FACES] if (folder / FACES).is_file() else []
        weights = _weights(experiment.checkpoint)
    data = [file for path in data for file in files_of(path)]
    needed = {_described("data", str(path.relative_to(folder)), path): path for path in data if path.is_relative_to(folder)}
    needed |= {_described("checkpoints", f"{path.parent.name}/{path.name}", path): path for path in weights}
    backbone, path, _ = lpips_weights.choose(lpips_weights.hub())
    if run.kind == "attack" and backbone and path:
        inside = path.relative_to(folder) if path.is_relative_to(folder) else Path("lpips", path.name)
        needed[_described("data", str(inside), path)] = path
    return needed


def _test_file(name: str) -> Path:
    path = datasets()[name].path
    if path is None:
        raise PictureError(datasets()[name].remedy)
    return path


def _weights(checkpoint: str) -> Iterator[Path]:
    """Yield the paths of model card and weights for "id@rounds" (trained model, rounds of training), unless the program ships with them."""
    if checkpoint and not (SHIPPED / checkpoint.split("@")[0]).exists():
        card, stage = find(checkpoint)
        yield from (card.folder / CARD, card.folder / stage.file)


def _described(root: str, path: str, file: Path) -> NeededFile:
    stat = file.stat()
    return NeededFile(root, path, stat.st_size, stat.st_mtime_ns)


def training_folder(run: Run, config: Settings) -> Path:
    """Return the folder in which the training of this run keeps its state and its weights."""
    if run.kind == "invert":
        return config.home / "inverters" / run.experiment_as(InverterTraining).name
    return config.checkpoints / parse_training(run.experiment).name


def keep_training(folder: Path, present: Iterable[str], fresh: Mapping[str, bytes]) -> None:
    """Copy the changes of a training's folder on the worker's machine into `folder`, its copy on this machine.

    Files are written in the order in which a training writes them, so that the training can go on from the copy even if this is
    interrupted.

    Args:
        folder: the copy.
        present: the names of all files in the worker's folder; other files are removed from the copy.
        fresh: the contents of the files that have changed, by name.
    """
    names = {name for name in present if Path(name).name == name}
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(names & fresh.keys(), key=lambda name: (name == CARD, name == STATE, name)):
        write(folder / name, fresh[name])
    for path in _list_files(folder):
        if path.name not in names:
            path.unlink()


def _list_files(folder: Path) -> list[Path]:
    """List the files of a training in its folder, without its lock and unfinished files."""
    return [path for path in sorted(folder.glob("*.*")) if path.suffix != ".tmp"]


# ---------------------------------------------------------------- where the worker is


def fetch_files(needed: Iterable[NeededFile], read: Callable[[NeededFile], bytes], roots: Mapping[str, Path]) -> None:
    """Write the files that a run reads to this machine, unless the same files are there already.

    Args:
        needed: the files.
        read: returns the content of a file from the other machine.
        roots: the folders of `NeededFile.root` on this machine.
    """
    for file in needed:
        target = roots[file.root] / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.parent):
            if not target.exists() or _described(file.root, file.path, target) != file:
                write(target, read(file))
                os.utime(target, ns=(file.written, file.written))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder, so that one process at a time fetches files into it."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def changed_files(folder: Path, kept: Mapping[str, int]) -> tuple[dict[str, int], dict[str, bytes]]:
    """Return the times at which a training's files were written, and the contents of the files with another time than in `kept`.

    Args:
        folder: the folder of the training.
        kept: name of a file -> the time at which its copy elsewhere was written, in nanoseconds since 1970.
    """
    present = {path.name: path.stat().st_mtime_ns for path in _list_files(folder)}
    return present, {name: (folder / name).read_bytes() for name, written in present.items() if kept.get(name) != written}


def process_home(cache: Path) -> Path:
    """Create and return an empty home folder for this process below `cache`; remove the folders of processes that have ended."""
    homes = cache / "homes"
    homes.mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in homes.iterdir():
        if folder.name.isdigit() and (int(folder.name) == os.getpid() or not _runs(int(folder.name))):
            shutil.rmtree(folder, ignore_errors=True)
    home = homes / str(os.getpid())
    home.mkdir()
    return home


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, PermissionError):  # gone, or somebody else's by now
        return False
    return True
