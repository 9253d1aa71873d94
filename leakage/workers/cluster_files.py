"""The files that a run on another machine needs, and those that a training leaves there: what they are, and how they come and go.

Only public data sets and trained weights. Uploads are never written to another machine's disk: they come with the run.
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
from leakage.spec.tasks import InverterTraining, parse_training

FACES = "faces/olivettifaces.mat"  # see evaluation/pools.py
CARD = "card.json"  # of a training that has ended


@dataclass(frozen=True)
class NeededFile:
    """A file as it lies in the data folder (`place`: "data") or among the checkpoints. Equal size and time: the same file."""

    place: str
    path: str
    size: int
    written: int  # nanoseconds since 1970


# ---------------------------------------------------------------- where the store is


def needed_files(run: Run, config: Settings) -> dict[NeededFile, Path]:
    """Return the files that this run reads, with their paths here. Raises PictureError or CheckpointError where one is missing."""
    if run.kind == "rank":
        return {}
    folder = data_folder()
    if run.kind == "train":
        training = parse_training(run.experiment)
        data = [*training_files(training.data), _test_file(training.data)]
        weights = iter(_written(training_folder(run, config)))
    elif run.kind == "invert":
        task = run.experiment_as(InverterTraining)
        data, weights = [*training_files(task.data), _test_file(task.data)], _weights(task.checkpoint)
    else:
        experiment = parse(run.experiment)
        data = [_test_file(name) for name in {one.source for one in experiment.pictures} - {"gallery", "upload"}]
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
    """Return the card and the stage that "id@rounds" names, unless they ship with the program."""
    if checkpoint and not (SHIPPED / checkpoint.split("@")[0]).exists():
        card, stage = find(checkpoint)
        yield from (card.folder / CARD, card.folder / stage.file)


def _described(place: str, path: str, file: Path) -> NeededFile:
    stat = file.stat()
    return NeededFile(place, path, stat.st_size, stat.st_mtime_ns)


def training_folder(run: Run, config: Settings) -> Path:
    """Return the folder in which the training of this run keeps its state and its weights."""
    if run.kind == "invert":
        return config.home / "inverters" / run.experiment_as(InverterTraining).name
    return config.checkpoints / parse_training(run.experiment).name


def keep_training(folder: Path, present: Iterable[str], fresh: Mapping[str, bytes]) -> None:
    """Make `folder` what it is on the worker's machine: `present` names all of its files, `fresh` holds those that have changed.

    In the order in which a training writes them, so that it can go on from what is there whenever this is interrupted.
    """
    names = {name for name in present if Path(name).name == name}
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(names & fresh.keys(), key=lambda name: (name == CARD, name == STATE, name)):
        write(folder / name, fresh[name])
    for path in _written(folder):
        if path.name not in names:
            path.unlink()


def _written(folder: Path) -> list[Path]:
    """Return what a training keeps in its folder, without its lock and unfinished files."""
    return [path for path in sorted(folder.glob("*.*")) if path.suffix != ".tmp"]


# ---------------------------------------------------------------- where the worker is


def fetch_files(needed: Iterable[NeededFile], read: Callable[[NeededFile], bytes], places: Mapping[str, Path]) -> None:
    """Bring these files into the folders `places`, but for those that are there already, perhaps since another worker brought them."""
    for file in needed:
        target = places[file.place] / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.parent):
            if not target.exists() or _described(file.place, file.path, target) != file:
                write(target, read(file))
                os.utime(target, ns=(file.written, file.written))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder, so that one process at a time fetches files into it."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def changed_files(folder: Path, kept: Mapping[str, int]) -> tuple[dict[str, int], dict[str, bytes]]:
    """Return when each file of a training was written (nanoseconds), and the content of those whose time differs in `kept`."""
    present = {path.name: path.stat().st_mtime_ns for path in _written(folder)}
    return present, {name: (folder / name).read_bytes() for name, written in present.items() if kept.get(name) != written}


def own_home(cache: Path) -> Path:
    """Make a fresh folder for this process below `cache`; remove those of processes that are gone."""
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
