"""Home folders with running processes. Starting a dispatcher with warm workers takes seconds, so tests share one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from home_processes import Place, Server, place

from leakage.workers import plugin_catalog


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog, written once for all homes."""
    path = tmp_path_factory.mktemp("written") / "catalog.json"
    plugin_catalog.write(path)
    return path


def furnished(home: Path, written: Path) -> Path:
    """Return the home with the catalog in it, so that its dispatcher need not import the plug-ins."""
    home.mkdir(exist_ok=True)
    (home / "catalog.json").write_bytes(written.read_bytes())
    return home


@pytest.fixture
def home(tmp_path: Path, written: Path) -> Path:
    return furnished(tmp_path / "home", written)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 6 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)]
    if sys.platform != "linux" or os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root on Linux")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture(scope="session")
def dispatcher(tmp_path_factory: pytest.TempPathFactory, written: Path) -> Iterator[Place]:
    """A place with a dispatcher and two slots."""
    with place(furnished(tmp_path_factory.mktemp("dispatched"), written), LEAKAGE_SLOTS="2") as made:
        made.dispatch()
        yield made


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, Server]]:
    """A place with a web server, which starts its dispatcher; for the first test there is no catalog yet."""
    with place(tmp_path_factory.mktemp("served")) as made:
        yield made, made.serve()
