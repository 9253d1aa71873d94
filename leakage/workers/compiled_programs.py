"""The compiled programs of this machine, in the home folder. A run takes the program of its step where one is ready.

A program is made of a formula, shapes and a kind of distance (`engine.compilable_step`); no number of a run is in it. A file is one of:

    KEY.asked           how many runs missed the program, and their seconds
    KEY.recorded.pt2    the program as torch.export writes it, to be compiled
    KEY.tries           how often compiling was begun
    KEY.failed          compiling failed or took too long, and is not tried again
    KEY-DIGEST.pt2      the compiled program; the digest of the content keeps a damaged file from being loaded
"""

import hashlib
import json
import logging
import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from leakage.engine.compilable_step import CompilableStep, Program
from leakage.settings import settings

LOADED = 8  # programs that a process keeps
KEPT = 64  # compiled programs in the folder
WAITING = 16  # recorded programs in the folder
COUNTED = 1000  # programs of which the folder keeps how many runs missed them
RUNS, WORTH = 2, 60.0  # runs that missed a program, and their seconds together, from which it is compiled
TRIES = 3
log = logging.getLogger(__name__)


@dataclass
class Missed:
    """A step without a compiled program, with zeros in place of all numbers."""

    step: CompilableStep
    x: Tensor
    y: Tensor

    def record(self, path: Path) -> None:
        """Write the program, uncompiled, to a file."""
        numbers = [torch.zeros_like(value) for value in self.step.numbers]
        with torch.no_grad():
            program = torch.export.export(self.step, (numbers, self.x, self.y), strict=False)
        if program.constants or program.state_dict:
            raise ValueError(f"a program must hold no numbers, got {sorted(program.constants or program.state_dict)}")
        partial = path.with_suffix(f".{os.getpid()}")
        with partial.open("wb") as file:
            torch.export.save(program, file)
        partial.replace(path)


@dataclass
class CompiledPrograms:
    """The programs in a folder, and those that this process has loaded."""

    folder: Path
    loaded: OrderedDict[str, Program] = field(default_factory=OrderedDict)
    missed: dict[str, Missed] = field(default_factory=dict)
    """The steps for which no program was found since `missed` was cleared."""

    def find(self, step: CompilableStep, x: Tensor, y: Tensor) -> Program | None:
        """Return the compiled program of a step for pictures x and labels y; None, and a step more in `missed`, where none is ready."""
        if x.device.type != "cpu":
            return None
        key = step.key(x, y)
        program = self.loaded.pop(key, None) or self._load(key)
        if program is None:
            self.missed[key] = Missed(step, torch.zeros_like(x), torch.zeros_like(y))
            return None
        self.loaded[key] = program
        while len(self.loaded) > LOADED:
            self.loaded.popitem(last=False)
        return program

    def _load(self, key: str) -> Program | None:
        for path in self.folder.glob(f"{key}-*.pt2"):
            try:
                if path.stem != f"{key}-{digest_of(path)}":
                    raise ValueError("the file is damaged")
                program = load_program(path)
                os.utime(path)
            except (OSError, ValueError, RuntimeError) as error:
                log.warning("a compiled program is left out (%s): %s", path.name, error)
                _remove(path)
            else:
                return program
        return None

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Leave `missed` as it is, whatever is computed in the block."""
        before = dict(self.missed)
        yield
        self.missed = before

    def count_run(self, seconds: float, *, record: bool) -> None:
        """Note that a run of so many seconds missed its programs; if `record`, record those that are worth compiling (3 s each)."""
        for key, missed in self.missed.items():
            asked = self.folder / f"{key}.asked"
            try:
                self.folder.mkdir(mode=0o700, exist_ok=True)
                runs, total = json.loads(asked.read_text()) if asked.exists() else (0, 0.0)
                asked.write_text(json.dumps([runs + 1, total + seconds]))
                worth = runs + 1 >= RUNS and total + seconds >= WORTH and not self._is_tried(key)
                if record and worth and len(list(self.folder.glob("*.recorded.pt2"))) < WAITING:
                    missed.record(self.folder / f"{key}.recorded.pt2")
            except (OSError, ValueError, TypeError, RuntimeError) as error:
                log.warning("a step is not recorded for compiling: %s", error)
        self.missed.clear()
        self.trim()

    def _is_tried(self, key: str) -> bool:
        """Return whether a program is recorded, compiled or given up."""
        return any(path.suffix in (".pt2", ".failed") for path in self.folder.glob(f"{key}*"))

    def record_missed(self) -> None:
        """Record all steps in `missed`, whatever they cost, and clear it."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        for key, missed in self.missed.items():
            if not self._is_tried(key):
                missed.record(self.folder / f"{key}.recorded.pt2")
        self.missed.clear()

    def recorded(self) -> Iterator[str]:
        """Yield the keys of programs that wait to be compiled, the oldest first; give up what was tried too often."""
        for path in sorted(self.folder.glob("*.recorded.pt2"), key=lambda path: path.stat().st_mtime):
            key = path.name.split(".")[0]
            tries = self.folder / f"{key}.tries"
            if tries.exists() and int(tries.read_text()) >= TRIES:
                log.warning("a step is not compiled: %d tries failed or took too long", TRIES)
                path.rename(self.folder / f"{key}.failed")
                _remove(tries)
            else:
                yield key

    def trim(self) -> None:
        """Remove the compiled programs that have not been used for the longest time, beyond KEPT, and the oldest counts beyond COUNTED."""
        for pattern, most in (("*-*.pt2", KEPT), ("*.asked", COUNTED), ("*.failed", COUNTED)):
            with suppress(OSError):  # another process trims too
                for path in sorted(self.folder.glob(pattern), key=lambda path: path.stat().st_mtime)[:-most]:
                    path.unlink()


def load_program(path: Path) -> Program:
    """Return a compiled program; the loader that torch._inductor wraps takes 2 ms, its wrapper 1.5 s for its imports."""
    loader = torch._C._aoti.AOTIModelPackageLoader(str(path), "model", True, 1, -1)  # one run at a time, on the CPU

    def program(numbers: list[Tensor], x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        distances, derivative = loader.run([*numbers, x, y])
        return distances, derivative

    return program


def compiled_programs() -> CompiledPrograms:
    """Return the programs in the home folder, as this process has loaded them."""
    return _programs_in(settings().programs)


@cache
def _programs_in(folder: Path) -> CompiledPrograms:
    return CompiledPrograms(folder)


def find_program(step: CompilableStep, x: Tensor, y: Tensor) -> Program | None:
    """Return the compiled program of a step; None where none is ready. A function, because copies of a model copy what they refer to."""
    return compiled_programs().find(step, x, y)


def digest_of(path: Path) -> str:
    """Return the fingerprint of a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:  # a read-only home
        log.warning("%s cannot be removed: %s", path.name, error)
