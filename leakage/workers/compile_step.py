"""Compile one step that waits for it: `python -m leakage.workers.compile_step`, a process of low priority.

The first process of a version of the code also records the steps that the gallery and the lessons run on small networks.
"""

import logging
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import torch

from leakage.data.images import gallery
from leakage.engine.core import generator
from leakage.settings import settings
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.workers import plugin_catalog
from leakage.workers.adapter import plugin, prepare
from leakage.workers.compiled_programs import CompiledPrograms, compiled_programs, digest_of
from leakage.workers.memory_limit import limit_memory
from leakage.workers.step_compiler import NOTHING_LEFT

LOWEST = 19  # niceness
AUTOGROUP = Path("/proc/self/autogroup")  # the session of this process
SCRATCH = "compiling-"  # the prefix of the folder for all that the compiler writes


def main() -> int:
    """Compile the step that has waited for the longest time; return NOTHING_LEFT where none waits."""
    os.umask(0o077)
    os.nice(LOWEST)
    lower_session(LOWEST)
    torch.set_num_threads(1)
    limit_memory(settings().memory_mb)
    programs = compiled_programs()
    programs.folder.mkdir(mode=0o700, exist_ok=True)
    for left in programs.folder.glob(f"{SCRATCH}*"):  # of a process that was ended
        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=programs.folder) as scratch:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = scratch
        record_known(programs)
        key = next(programs.recorded(), None)
        if key is None:
            return NOTHING_LEFT
        compile_recorded(programs, key, Path(scratch) / "program.pt2")
    programs.trim()
    return 0


def lower_session(niceness: int) -> None:
    """Give the session of this process a niceness if this process leads it; elsewhere than on Linux do nothing.

    Linux divides the cores among sessions, all alike, and by niceness only inside a session, unless its autogroups are switched off.
    """
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # no autogroups
            AUTOGROUP.write_text(str(niceness))


def record_known(programs: CompiledPrograms) -> None:
    """Record the steps of Inverting Gradients on LeNet and the MLP, with 1 and 8 starts and pictures, once for each version of the code."""
    catalog = plugin_catalog.describe()
    marker, version = programs.folder / "known", f"{catalog.version} {torch.__version__}"
    if marker.exists() and marker.read_text() == version:
        return
    for model in ("lenet", "mlp"):
        for count in (1, 8):
            for starts in (1, 8):
                attack = Part(id="inverting_gradients", fields={"starts": starts})
                pictures = tuple(Picture(id=item.id) for item in gallery()[:count])
                experiment = Experiment(model=Part(id=model), attack=attack, pictures=pictures).resolve(catalog)
                seen = prepare(experiment, device=torch.device("cpu")).seen
                programs.missed.clear()
                next(plugin("attack", experiment.attack).run(seen, generator(0, "known")))
                programs.record_missed()
    marker.write_text(version)


def compile_recorded(programs: CompiledPrograms, key: str, package: Path) -> None:
    """Compile a recorded program with one thread into a package, and put the package in place of the record."""
    recorded, tries = programs.folder / f"{key}.recorded.pt2", programs.folder / f"{key}.tries"
    tries.write_text(str(int(tries.read_text()) + 1 if tries.exists() else 1))
    torch._inductor.aoti_compile_and_package(torch.export.load(recorded), package_path=str(package))
    package.replace(programs.folder / f"{key}-{digest_of(package)}.pt2")
    recorded.unlink()
    tries.unlink()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s compile %(message)s")
    sys.exit(main())
