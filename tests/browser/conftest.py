"""A real dashboard with its own home folder, and a real browser."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dashboards import served
from digits_data_set import write_digits
from home_fixtures import furnished
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from leakage.runs.store import Store

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-sync"]
PATIENCE = 60_000  # milliseconds
expect.set_options(timeout=PATIENCE)  # a page answers later where other tests take the machine's time
FLAGS += ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]  # a camera that shows a test picture, allowed at once


@pytest.fixture(scope="session")
def rooms(tmp_path_factory: pytest.TempPathFactory, written: Path) -> Path:
    """The home of the dashboard."""
    return furnished(tmp_path_factory.mktemp("rooms"), written)


@pytest.fixture(scope="session")
def site(rooms: Path) -> Iterator[str]:
    """The address of a dashboard: one for all tests, since its processes take seconds to start."""
    with served(rooms) as url:
        yield url


@pytest.fixture(scope="module")
def below(tmp_path_factory: pytest.TempPathFactory, written: Path) -> Iterator[str]:
    """The address of a dashboard that shares its host with others: `server.baseUrlPath` is set."""
    with served(furnished(tmp_path_factory.mktemp("below"), written), "/gle") as url:
        yield url


@pytest.fixture(scope="module")
def school(tmp_path_factory: pytest.TempPathFactory, written: Path) -> Iterator[str]:
    """The address of a dashboard that has pictures to learn from: scikit-learn's digits where MNIST's are looked for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKAGE_DATA", str(write_digits(tmp_path_factory.mktemp("digits"))))
        with served(furnished(tmp_path_factory.mktemp("school"), written)) as url:
            yield url


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """LEAKAGE_BROWSER is set by `make test`."""
    path = os.environ.get("LEAKAGE_BROWSER") or subprocess.check_output(["bash", str(ROOT / "scripts" / "browser.sh")], text=True).strip()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=240_000)
        new_context = browser.new_context

        def patient(**options: Any) -> BrowserContext:
            context = new_context(**options)
            context.set_default_timeout(PATIENCE)
            return context

        browser.new_context = patient
        yield browser
        browser.close()


@pytest.fixture(autouse=True)
def nothing_goes_on(chromium: Browser, rooms: Path) -> Iterator[None]:
    """Pages that play, and runs that nobody watches any more, would take the time of the tests that follow."""
    yield
    for context in chromium.contexts:
        context.close()
    store = Store(rooms / "store.db")
    for run in [*store.queue(), *store.running()]:
        store.cancel(run.id)
    store.close()
