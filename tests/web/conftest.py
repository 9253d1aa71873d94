"""The tests of routes run with and without a base path, in a home with a catalog and an open store."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from home_fixtures import furnished

from leakage.runs.store import Store


@pytest.fixture(params=["", "/gle"])
def prefix(request: pytest.FixtureRequest) -> str:
    """What stands before our routes."""
    return str(request.param)


@pytest.fixture
def store(tmp_path: Path, written: Path) -> Iterator[Store]:
    """The store of a home that lies in `tmp_path`."""
    opened = Store(furnished(tmp_path, written) / "store.db")
    yield opened
    opened.close()
