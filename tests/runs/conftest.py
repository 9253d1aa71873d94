"""The store of these tests, checked for damage at the end."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from home_processes import damaged

from leakage.runs.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store.db")
    yield made
    assert damaged(made) == []
    made.close()
