"""The architecture page at an address, and a worker that does what the page has queued."""

from collections.abc import Callable

import pytest
import torch
from page_visits import Open, opener

from leakage.runs.service import Service
from leakage.workers.worker import perform


@pytest.fixture
def look(bare: Service, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Open the page by an address, with no other page before it; it needs no catalog."""
    return opener("pages/architecture.py", monkeypatch)


@pytest.fixture
def work(door: Service) -> Callable[[], None]:
    """Let a worker perform the next run."""

    def performed() -> None:
        run = door.store.claim("0:1")
        assert run is not None
        perform(door.store, run, torch.device("cpu"))

    return performed
