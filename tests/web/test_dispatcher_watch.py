"""A web server watches its dispatcher: it survives failures, backs off, and two versions on one home do not fight."""

import asyncio
import contextlib
import fcntl
import logging
import os
import re
import shutil
import time
from pathlib import Path

import pytest
from event_loop import run_async
from home_processes import Place, place, until

import leakage
from leakage.runs import backoff
from leakage.runs.backoff import Backoff
from leakage.runs.programs import Holder, Program, lock_holder, take_lock
from leakage.settings import ROOT, Settings
from leakage.web import dispatcher_watch
from leakage.web.dispatcher_watch import DispatcherWatch
from leakage.web.routes import Stream

LOOKS = 0.5  # seconds between looks of a watch: a server looks more seldom
WATCHING = f"""
import asyncio, logging
from leakage.web import dispatcher_watch, server
dispatcher_watch.WATCH = {LOOKS}
dispatcher_watch.HANDOVER = 240
logging.basicConfig(level=logging.INFO, format="watch: %(message)s")
asyncio.run(server.dispatcher_watch().keep())
"""


def checkout(folder: Path, *, release: str, change: str = "") -> Path:
    """A copy of the program as another checkout has it; with `change` its results may differ."""
    folder.mkdir()
    for name in ("leakage", "assets"):
        shutil.copytree(ROOT / name, folder / name)  # with what was compiled
    start = folder / "leakage" / "__init__.py"
    start.write_text(start.read_text().replace(f'"{leakage.__version__}"', f'"{release}"'))
    with (folder / "leakage/attacks/dlg.py").open("a") as plugin:
        plugin.write(change)
    return folder


# ---------------------------------------------------------------- whatever goes wrong


@pytest.mark.parametrize(("fault", "said"), [("folder", "dispatch.lock cannot be opened (Is a directory)"), ("garbage", "")])
def test_the_watch_survives_any_exception_and_logs_it(
    fault: str, said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher_watch, "WATCH", 0.05)
    monkeypatch.setattr(backoff, "FIRST", 0.05)
    lock, held = tmp_path / "dispatch.lock", contextlib.ExitStack()
    if fault == "folder":
        lock.mkdir()
    else:  # a ValueError: the process that holds it has written no number
        fcntl.flock(held.enter_context(lock.open("a+")), fcntl.LOCK_EX)
        lock.write_text("no number")

    async def watched() -> None:
        watch = asyncio.create_task(watch_of(tmp_path).keep())
        while len(caplog.records) < 3:
            await asyncio.sleep(0.05)
            assert not watch.done(), "it has ended"
        watch.cancel()

    with held, caplog.at_level(logging.WARNING):
        run_async(asyncio.wait_for(watched(), 240))
    assert all("cannot be checked" in record.getMessage() for record in caplog.records)
    assert all(said in record.getMessage() for record in caplog.records)
    assert all(bool(record.exc_info) == (not said) for record in caplog.records)  # what a sentence tells needs no traceback


def watch_of(home: Path) -> DispatcherWatch:
    made = Place(home)
    return DispatcherWatch(made.config, Stream(made.service, made.store))


def test_pauses_double_up_to_a_minute_until_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = Backoff()
    assert tries.may_try
    assert [tries.failed() for _ in range(9)] == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert not tries.may_try
    tries.ended(lived=0.1)
    assert not tries.may_try, "it has not worked"
    for works, lived in ((False, 3600.0), (True, 0.1)):
        if works:
            tries.worked()
        tries.ended(lived)
        assert tries.may_try
        assert tries.failed() == 1


@pytest.mark.processes
def test_dispatchers_that_cannot_begin_are_started_ever_more_seldom_until_a_file_is_corrected(tmp_path: Path) -> None:
    root = checkout(tmp_path / "program", release="1.0")
    broken, home = root / "leakage/spec/fields.py", tmp_path / "home"
    text = broken.read_text()
    home.mkdir()
    with place(home, root=root) as made:
        made.start(["-c", WATCHING], "watch.log")
        until(made.dispatcher, what="a dispatcher is at work")
        broken.write_text("this is no Python")
        tries = lambda: (home / "dispatch.log").read_text().count("SyntaxError")  # noqa: E731
        until(lambda: tries() >= 2, what="it is tried again")
        waits = lambda: [int(number) for number in re.findall(r"starts in (\d+) s", (home / "watch.log").read_text())]  # noqa: E731
        until(lambda: max(waits(), default=0) >= 4, what="the pauses grow")
        made_so_far = tries()
        assert made_so_far <= len(waits()) + 2
        broken.write_text(text + "\n# corrected\n")
        until(made.dispatcher, what="a dispatcher is at work again")


@pytest.mark.processes
def test_plug_ins_that_cannot_be_listed_are_tried_again(tmp_path: Path) -> None:
    """What was in the way need not be the plug-ins: here it is a folder of the catalog's name."""
    home = tmp_path / "home"
    (home / "catalog.json").mkdir(parents=True)
    with place(home) as made:
        made.dispatch()
        until(lambda: "the next try is in" in (home / "dispatch.log").read_text(), what="it has failed")
        (home / "catalog.json").rmdir()
        assert until(made.service.catalog, what="the plug-ins are listed")


@pytest.mark.processes
def test_a_broken_plug_in_is_named_in_the_terminal_until_it_is_corrected(tmp_path: Path) -> None:
    root, home = checkout(tmp_path / "program", release="1.0"), tmp_path / "home"
    planted = root / "leakage" / "attacks" / "mine.py"
    planted.write_text("import torch\n\nthis is no Python\n")
    home.mkdir()
    said = (
        "The plug-ins cannot be listed, because of leakage/attacks/mine.py, line 3: SyntaxError: invalid syntax. "
        "Correct the file, or move it elsewhere; then everything goes on by itself.\n"
    )
    with place(home, root=root) as made:
        watch = made.start(["-c", WATCHING], "watch.log")
        until(lambda: said in (home / "watch.log").read_text(), what="the plug-in is named")
        time.sleep(4 * LOOKS)
        assert (home / "watch.log").read_text().count(said) == 1
        assert "SyntaxError" in (home / "dispatch.log").read_text()
        planted.unlink()
        until(lambda: not (home / "catalog.fault").exists(), what="the fault is gone")
        assert (home / "catalog.json").exists()  # it is written before the fault is removed
        assert watch.poll() is None


# ---------------------------------------------------------------- two versions


def program(release: str, changed: int, version: str, root: str) -> Program:
    return Program(tuple(int(number) for number in release.split(".")), changed, version, root)


@pytest.mark.parametrize(
    ("mine", "other", "wins"),
    [
        (("0.3.0", 1, "a", "/one"), ("0.2.9", 2, "b", "/two"), True),  # a later release
        (("0.10.0", 1, "a", "/one"), ("0.9.0", 2, "b", "/two"), True),  # as numbers
        (("0.3.0", 2, "a", "/one"), ("0.3.0", 1, "b", "/two"), True),  # changed later
        (("0.3.0", 1, "b", "/one"), ("0.3.0", 1, "a", "/two"), True),  # somebody has to
        (("0.2.0", 1, "a", "/one"), ("0.3.0", 2, "b", "/one"), True),  # the same folder: it was changed, back to what it was
    ],
)
def test_of_two_versions_one_is_the_newer(mine: tuple[str, int, str, str], other: tuple[str, int, str, str], wins: bool) -> None:
    assert program(*mine).replaces(program(*other)) is wins
    if mine[3] != other[3]:
        assert program(*other).replaces(program(*mine)) is not wins


def test_equal_versions_do_not_replace_each_other() -> None:
    assert not program("0.3.0", 1, "a", "/one").replaces(program("0.2.0", 2, "a", "/two"))


def test_the_lock_tells_whose_it_is(tmp_path: Path) -> None:
    config = Settings(home=tmp_path, slots=1, store_mb=1, memory_mb=1)
    assert lock_holder(config) is None
    lock = take_lock(config)
    assert lock is not None
    assert take_lock(config) is None
    assert lock_holder(config) == Holder(os.getpid(), Program.here())
    found = lock_holder(config)
    assert found is not None
    assert found.program is not None
    assert found.program.root == str(ROOT)
    lock.close()
    assert lock_holder(config) is None


def test_a_dispatcher_of_0_2_0_is_older_than_any() -> None:
    assert Program.here().replaces(Program.of("0123456789abcdef"))


@pytest.mark.processes
def test_of_two_versions_on_one_home_the_newer_wins_and_the_older_says_so_once(tmp_path: Path) -> None:
    old = checkout(tmp_path / "old", release="1.0", change="\n# older\n")
    new = checkout(tmp_path / "new", release="1.1")
    home = tmp_path / "home"
    home.mkdir()
    with place(home, root=old) as made, place(home, root=new) as other:
        made.start(["-c", WATCHING], "old.log")
        first = until(made.dispatcher, what="the older one has a dispatcher")
        other.start(["-c", WATCHING], "new.log")
        until(lambda: root_of(other) == str(new), what="the newer one has taken over")
        taken = other.dispatcher()
        assert taken not in (0, first)
        said = f"A newer version of this program (1.1, in {new}) is at work on {home}."
        until(lambda: said in (home / "old.log").read_text(), what="the older one says so")
        ends = time.monotonic() + 4 * LOOKS
        while time.monotonic() < ends:
            assert other.dispatcher() == taken, "they fight"
            time.sleep(0.1)
        assert (home / "old.log").read_text().count(said) == 1
        assert "A newer version" not in (home / "new.log").read_text()


def root_of(made: Place) -> str:
    holder = lock_holder(made.config)
    return holder.program.root if holder and holder.program else ""
