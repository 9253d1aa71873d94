"""The architecture page at an address, and a worker that does what the page has queued."""

from collections.abc import Callable

import pytest
import torch
from page_visits import Open, fine
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from leakage.runs.service import Service
from leakage.settings import ROOT
from leakage.workers.worker import perform


@pytest.fixture
def look(bare: Service, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Open the page by an address, with no other page before it; it needs no catalog."""

    def opened(**address: str) -> AppTest:
        monkeypatch.setattr(ContextProxy, "cookies", {"gle_owner": "me"})
        at = AppTest.from_file(ROOT / "app.py", default_timeout=60).switch_page("pages/architecture.py")
        at.query_params.update(address)
        at.run()
        fine(at)
        return at

    return opened


@pytest.fixture
def work(door: Service) -> Callable[[], None]:
    """Let a worker perform the next run."""

    def performed() -> None:
        run = door.store.claim("0:1")
        assert run is not None
        perform(door.store, run, torch.device("cpu"))

    return performed
