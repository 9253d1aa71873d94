"""Steps are compiled while the machine is idle; whatever happens to the compiler or to its files, a run goes on without them."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from small_problems import CATALOG

from leakage.engine.core import generator
from leakage.evaluation.play import PreparedAttack
from leakage.runs.store import Store
from leakage.settings import settings
from leakage.spec.experiment import Experiment, Part
from leakage.workers import compiled_programs, step_compiler
from leakage.workers.adapter import plugin, prepare
from leakage.workers.compiled_programs import COUNTED, KEPT, RUNS, TRIES, WAITING, WORTH, CompiledPrograms, Missed
from leakage.workers.recorder import perform_in
from leakage.workers.step_compiler import NOTHING_LEFT, StepCompiler

NETWORK = Part(id="custom", fields={"network": "conv 3@3 /2 p1 - linear 10", "activation": "sigmoid", "bias": True})
ASKED = Experiment(model=NETWORK, attack=Part(id="inverting_gradients", fields={"steps": 12}), size=28, channels=1).resolve(CATALOG)
COMPILE = [sys.executable, "-m", "leakage.workers.compile_step"]
FEW = 16  # bytes in a row
pytestmark = [pytest.mark.long, pytest.mark.skipif(not shutil.which("g++"), reason="steps are compiled by g++")]


def use_home(home: Path, patch: pytest.MonkeyPatch) -> CompiledPrograms:
    """Compile steps in this home; return its programs."""
    patch.setenv("LEAKAGE_HOME", str(home))
    patch.setenv("LEAKAGE_COMPILE", "1")
    return compiled_programs.compiled_programs()


def miss(programs: CompiledPrograms) -> tuple[str, Missed, PreparedAttack]:
    """Take a step of ASKED, which no program computes yet; return the key of its program, the step and its scene."""
    scene = prepare(ASKED, device=torch.device("cpu"))
    programs.missed.clear()
    next(plugin("attack", ASKED.attack).run(scene.seen, generator(0, "step")))
    ((key, missed),) = programs.missed.items()
    return key, missed, scene


def record(programs: CompiledPrograms) -> tuple[str, Missed]:
    """Record the step of ASKED, and no step of the gallery."""
    key, missed, _ = miss(programs)
    programs.record_missed()
    (programs.folder / "known").write_text(f"{CATALOG.version} {torch.__version__}")
    return key, missed


@pytest.fixture
def programs(home: Path, monkeypatch: pytest.MonkeyPatch) -> CompiledPrograms:
    return use_home(home, monkeypatch)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Missed]:
    """The folder in which the process that compiles has compiled the step of ASKED, the key and the step."""
    home = tmp_path_factory.mktemp("compiled")
    with pytest.MonkeyPatch.context() as patch:
        programs = use_home(home, patch)
        key, missed = record(programs)
        assert subprocess.run(COMPILE).returncode == 0
        assert subprocess.run(COMPILE).returncode == NOTHING_LEFT
    return programs.folder, key, missed


@pytest.fixture
def with_package(programs: CompiledPrograms, compiled: tuple[Path, str, Missed]) -> CompiledPrograms:
    """Programs of an own home, with a copy of the compiled step."""
    shutil.copytree(compiled[0], programs.folder)
    return programs


def answer(folder: Path) -> tuple[bytes | None, object]:
    """The picture of ASKED's answer, and what the run says of its derivatives."""
    store = Store(folder)
    run = perform_in(store, ASKED)
    assert run.result is not None
    return store.frame(run.id, run.result["answer"]), run.result["note"].get("derivatives by")


def contents(folder: Path) -> bytes:
    """All that is in the files of a folder, also in packed ones, and their names."""
    parts = []
    for path in folder.rglob("*"):
        parts.append(path.name.encode())
        if path.is_file():
            parts.append(path.read_bytes())
            if zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive:
                    parts.extend(archive.read(name) for name in archive.namelist())
    return b"\n".join(parts)


def shows(folder: Path, values: torch.Tensor) -> bool:
    """Whether FEW bytes in a row, not all equal, of these values (as floats or as bytes of pixels) are in a folder."""
    there = contents(folder)
    for data in (values.float().numpy().tobytes(), (values * 255).round().clamp(0, 255).byte().numpy().tobytes()):
        pieces = {data[start : start + FEW] for start in range(0, len(data) - FEW, FEW)}
        if any(len(set(piece)) > 1 and piece in there for piece in pieces):
            return True
    return False


def test_the_compiled_step_computes_what_the_formula_does(compiled: tuple[Path, str, Missed]) -> None:
    """For the weights of the record, and pictures of another seed."""
    folder, _, missed = compiled
    x, programs = torch.rand(missed.x.shape, generator=generator(1, "guess")), CompiledPrograms(folder)
    program = programs.find(missed.step, x, missed.y)
    assert program is not None
    assert not programs.missed
    with torch.no_grad():
        found, expected = program(missed.step.numbers, x, missed.y), missed.step(missed.step.numbers, x, missed.y)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_a_compiled_run_says_so_and_is_repeated_bit_for_bit(
    with_package: CompiledPrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = torch.get_num_threads()
    first, second = answer(tmp_path / "first.db"), answer(tmp_path / "second.db")
    with_package.loaded.clear()
    third = answer(tmp_path / "third.db")
    monkeypatch.setenv("LEAKAGE_COMPILE", "0")
    without = answer(tmp_path / "without.db")
    torch.set_num_threads(threads)
    assert first == second == third
    assert first[1] == "formula, compiled"
    assert without[1] is None


def test_a_damaged_file_is_removed_and_the_run_goes_on(with_package: CompiledPrograms, compiled: tuple[Path, str, Missed]) -> None:
    _, key, missed = compiled
    (path,) = with_package.folder.glob(f"{key}-*.pt2")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert with_package.find(missed.step, missed.x, missed.y) is None
    assert not path.exists()
    assert key in with_package.missed


def test_a_compiler_killed_in_its_work_leaves_nothing_behind(programs: CompiledPrograms) -> None:
    key, missed = record(programs)
    process = subprocess.Popen(COMPILE, start_new_session=True)
    tries = programs.folder / f"{key}.tries"
    while not tries.exists():
        assert process.poll() is None
        time.sleep(0.02)
    if (group := Path(f"/proc/{process.pid}/autogroup")).exists():  # pages come first, which belong to another session
        assert group.read_text().split()[-2:] == ["nice", "19"]
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not list(programs.folder.glob(f"{key}-*"))
    assert programs.find(missed.step, missed.x, missed.y) is None
    assert [path.name for path in programs.folder.glob("compiling-*") if path.is_dir()] != []
    tries.write_text(str(TRIES))  # it was killed as often as it may be
    assert subprocess.run(COMPILE).returncode == NOTHING_LEFT
    assert not list(programs.folder.glob("compiling-*"))
    assert (programs.folder / f"{key}.failed").exists()
    programs.record_missed()  # not recorded again
    assert not list(programs.folder.glob("*.recorded.pt2"))


def test_runs_that_miss_a_program_often_enough_have_it_recorded(programs: CompiledPrograms) -> None:
    recorded = None
    for runs in range(1, RUNS + 1):
        key, _, _ = miss(programs)
        recorded = programs.folder / f"{key}.recorded.pt2"
        assert not recorded.exists(), runs
        programs.count_run(WORTH, record=False)  # while others wait, nothing is recorded
        assert not recorded.exists()
    miss(programs)
    programs.count_run(0.0, record=True)
    assert recorded is not None
    assert recorded.exists()


def test_what_is_timed_to_choose_threads_is_not_missed(programs: CompiledPrograms) -> None:
    key, missed = record(programs)
    x = torch.zeros(2, *missed.x.shape[1:])
    assert programs.find(missed.step, missed.x, missed.y) is None
    with programs.uncounted():
        assert programs.find(missed.step, x, missed.y) is None
        assert len(programs.missed) == 2
    assert list(programs.missed) == [key]


def test_short_runs_do_not(programs: CompiledPrograms) -> None:
    for _ in range(RUNS + 1):
        miss(programs)
        programs.count_run(WORTH / 10, record=True)
    assert not list(programs.folder.glob("*.recorded.pt2"))


def test_a_folder_that_cannot_be_written_changes_nothing(programs: CompiledPrograms, caplog: pytest.LogCaptureFixture) -> None:
    """A file in the place of the folder: as the superuser, tests may write to any folder."""
    programs.folder.write_text("")
    miss(programs)
    programs.count_run(WORTH, record=True)
    assert "not recorded" in caplog.text
    assert not programs.missed


def test_the_folder_keeps_what_was_used_last(programs: CompiledPrograms) -> None:
    programs.folder.mkdir()
    for number in range(KEPT + 3):
        path = programs.folder / f"{number}-0.pt2"
        path.touch()
        os.utime(path, (number, number))
    programs.trim()
    assert {int(path.name.split("-")[0]) for path in programs.folder.iterdir()} == set(range(3, KEPT + 3))


def test_a_busy_server_records_only_so_many(programs: CompiledPrograms) -> None:
    programs.folder.mkdir()
    for number in range(WAITING):
        (programs.folder / f"{number}.recorded.pt2").touch()
    for _ in range(RUNS):
        miss(programs)
        programs.count_run(WORTH, record=True)
    assert len(list(programs.folder.glob("*.recorded.pt2"))) == WAITING
    for number in range(COUNTED):
        (programs.folder / f"{number}.asked").touch()
    programs.trim()
    assert len(list(programs.folder.glob("*.asked"))) == COUNTED


def test_no_picture_and_no_gradient_is_in_a_file(compiled: tuple[Path, str, Missed], programs: CompiledPrograms) -> None:
    """The planted leak, a record of the step with its pictures, is found."""
    _, missed, scene = miss(programs)
    secrets = [scene.x, *scene.seen.as_gradient().values()]
    assert not any(shows(compiled[0], secret) for secret in secrets)
    programs.record_missed()
    assert not any(shows(programs.folder, secret) for secret in secrets)
    Missed(missed.step, scene.x.unsqueeze(0), missed.y).record(programs.folder / "planted.recorded.pt2")
    assert shows(programs.folder, scene.x)


def test_only_this_user_can_read_the_files(compiled: tuple[Path, str, Missed]) -> None:
    assert stat.S_IMODE(compiled[0].stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in compiled[0].glob("*-*.pt2")} == {0o600}


class TestStepCompiler:
    def test_it_waits_for_an_idle_machine_and_ends_when_a_run_arrives(
        self, programs: CompiledPrograms, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        key, _ = record(programs)
        compiler = StepCompiler(settings())
        compiler.step(idle=True)
        assert compiler.process is None  # not idle for long enough
        monkeypatch.setattr(step_compiler, "IDLE", 0.0)
        compiler.step(idle=True)
        process = compiler.process
        assert process is not None
        self.wait_for((programs.folder / f"{key}.tries").exists)
        compiler.step(idle=False)
        assert compiler.process is None
        assert process.returncode == -signal.SIGKILL
        assert not (programs.folder / f"{key}.tries").exists()  # the try does not count

    def test_it_looks_again_later_where_nothing_waits(self, programs: CompiledPrograms, monkeypatch: pytest.MonkeyPatch) -> None:
        programs.folder.mkdir()
        (programs.folder / "known").write_text(f"{CATALOG.version} {torch.__version__}")
        monkeypatch.setattr(step_compiler, "IDLE", 0.0)
        compiler = StepCompiler(settings())
        compiler.step(idle=True)
        process = compiler.process
        assert process is not None
        self.wait_for(lambda: process.poll() is not None)
        compiler.step(idle=True)
        compiler.step(idle=True)
        assert compiler.process is None
        assert process.returncode == NOTHING_LEFT

    @pytest.mark.parametrize("name", ["LEAKAGE_COMPILE", "LEAKAGE_STEP", "PATH"])
    def test_it_starts_nothing_where_it_must_not(self, name: str, programs: CompiledPrograms, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(name, {"LEAKAGE_COMPILE": "0", "LEAKAGE_STEP": "autograd", "PATH": str(programs.folder)}[name])
        monkeypatch.setattr(step_compiler, "IDLE", 0.0)
        compiler = StepCompiler(settings())
        compiler.step(idle=True)
        assert compiler.process is None

    def wait_for(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 600
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.02)
