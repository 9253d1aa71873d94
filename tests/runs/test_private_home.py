"""Another user of the machine sees nothing of the home folder, be it new or left open by an earlier version."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from home_processes import QUICK, Place, Server, until

from leakage.runs.private_home import keep_private
from leakage.settings import ROOT, Settings

WRITE = """
import sys
from pathlib import Path
from leakage.runs.private_home import keep_private
from leakage.settings import settings
keep_private(settings())
(settings().home / "checkpoints" / "new").mkdir(parents=True)
(settings().home / "checkpoints" / "new" / "card.json").write_text("{}")
(settings().home / "dispatch.log").write_text("late")
"""


def modes(home: Path) -> dict[str, str]:
    """Return the paths of a home that others could open: folders without mode 0700, files without mode 0600."""
    found = {path: path.stat().st_mode & 0o7777 for path in (home, *home.rglob("*"))}
    return {str(path): oct(mode) for path, mode in found.items() if mode != (0o700 if path.is_dir() else 0o600)}


@pytest.fixture
def open_home(tmp_path: Path) -> Path:
    """A home as an earlier version made it, for all to read."""
    home = tmp_path / "home"
    (home / "checkpoints" / "mine").mkdir(parents=True)
    for name in ("store.db", "store.db-wal", "store.reserve", "server.log", "checkpoints/mine/card.json"):
        (home / name).write_text("private")
        (home / name).chmod(0o644)
    for folder in (home, home / "checkpoints", home / "checkpoints" / "mine"):
        folder.chmod(0o755)
    return home


def test_a_home_that_was_open_is_closed_and_what_comes_later_is_closed_too(open_home: Path) -> None:
    assert len(modes(open_home)) == 8
    given = {**os.environ, "LEAKAGE_HOME": str(open_home)}
    subprocess.run([sys.executable, "-c", WRITE], cwd=ROOT, env=given, check=True, umask=0o022)
    assert (open_home / "checkpoints" / "new" / "card.json").exists()
    assert modes(open_home) == {}


def test_what_a_link_leads_to_is_not_touched(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.txt"
    elsewhere.write_text("of somebody else")
    elsewhere.chmod(0o644)
    home = tmp_path / "home"
    home.mkdir()
    (home / "link").symlink_to(elsewhere)
    before = os.umask(0o022)
    try:
        keep_private(Settings(home=home, slots=1, store_mb=16, memory_mb=0))
    finally:
        os.umask(before)
    assert elsewhere.stat().st_mode & 0o777 == 0o644


@pytest.mark.processes
def test_after_a_run_nobody_else_can_read_store_logs_or_catalog(server: tuple[Place, Server]) -> None:
    home, _ = server
    assert home.finished(home.submit(QUICK)).status == "done"
    until(lambda: (home.home / "workers.log").exists(), what="workers write their log")
    names = {path.name for path in home.home.iterdir()}
    assert {"store.db", "store.db-wal", "store.db-shm", "store.reserve", "server.log", "dispatch.log", "catalog.json"} <= names
    assert modes(home.home) == {}
