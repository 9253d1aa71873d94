"""Pages as visitors open them: the service of a home, a visitor with a cookie, and the page's texts."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from leakage.runs.service import Service, service
from leakage.settings import ROOT
from leakage.spec.experiment import Experiment

Open = Callable[..., AppTest]


@pytest.fixture(scope="session", autouse=True)
def one_look_at_the_packages() -> Iterator[None]:
    """Streamlit looks through all installed packages for components whenever a page is opened; here once, and they stay what they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """The service of an empty home: no catalog yet, and no workers."""
    monkeypatch.setenv("LEAKAGE_HOME", str(tmp_path))
    service.cache_clear()
    yield service()
    service().store.close()
    service.cache_clear()


@pytest.fixture
def door(bare: Service, written: Path) -> Service:
    """The service of a home with a catalog."""
    bare.config.catalog.write_bytes(written.read_bytes())
    return bare


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Open:
    """Open a page as somebody: `visit("pages/runs.py", who="you", run="abc")`; the keywords are the address.

    The Lab shows all its settings, unless it is asked to open as it is by itself: `itself=True`.
    """

    def opened(page: str = "", *, who: str = "me", itself: bool = False, **address: str) -> AppTest:
        monkeypatch.setattr(ContextProxy, "cookies", {"gle_owner": who})
        at = AppTest.from_file(ROOT / "app.py", default_timeout=240)
        at.query_params.update(address if itself else {"expert": "1", **address})
        at.run()
        return at.switch_page(page).run() if page else at

    return opened


def opener(page: str, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Return a function that opens one page by an address, with no other page before it."""

    def opened(**address: str) -> AppTest:
        monkeypatch.setattr(ContextProxy, "cookies", {"gle_owner": "me"})
        at = AppTest.from_file(ROOT / "app.py", default_timeout=240).switch_page(page)
        at.query_params.update(address)
        at.run()
        fine(at)
        return at

    return opened


def words(at: AppTest) -> str:
    """Return all text of a page."""
    elements = (*at.markdown, *at.caption, *at.warning, *at.info, *at.error)
    return "\n".join(str(element.value) for element in elements)


def asked(door: Service, at: AppTest) -> Experiment:
    """Return the experiment of the page's run, of two runs that of the later."""
    run = door.look(at.query_params["run"].split(",")[-1])
    assert run is not None
    return run.experiment_as(Experiment)


def all_asked(door: Service, at: AppTest) -> list[Experiment]:
    """Return the experiments of the page Compare, in the order of its address."""
    runs = [door.look(id) for id in at.query_params["runs"].split(",")]
    return [run.experiment_as(Experiment) for run in runs if run]


def press_without_error(at: AppTest) -> AppTest:
    """Press Run, and assert that the page shows no error."""
    at = press_run(at)
    fine(at)
    return at


def press_run(at: AppTest) -> AppTest:
    return at.button(key="run-button").click().run()


def fine(at: AppTest) -> None:
    assert [element.value for element in at.exception] == []


def write(at: AppTest, text: str) -> AppTest:
    """Write another network into the page."""
    at = at.text_area[0].set_value(text).run()
    fine(at)
    return at
