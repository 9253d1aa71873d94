"""The components' modules over HTTP: cached for ever with the right version, and nothing else from the disk."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from leakage.frontend.script_text import compact
from leakage.frontend.scripts import FOLDER, scripts
from leakage.runs.service import Service
from leakage.runs.store import Store
from leakage.settings import Settings
from leakage.web.routes import Routes
from leakage.web.stream import Stream


@pytest.fixture
def web(tmp_path: Path, prefix: str) -> Iterator[TestClient]:
    store = Store(tmp_path / "store.db")
    service = Service(store, Settings(home=tmp_path, slots=1, store_mb=4096, memory_mb=0))
    yield TestClient(Starlette(routes=Routes(service, store, Stream(service, store)).below(prefix)))
    store.close()


def test_every_module_is_served_for_ever_without_its_comments(web: TestClient, prefix: str) -> None:
    folder = scripts().folder(prefix)
    assert folder == f"{prefix}/api/scripts/{scripts().version}"
    for name in scripts().files:
        answer = web.get(f"{folder}/{name}")
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].split(";")[0] == "text/javascript"
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert answer.headers["Content-Encoding"] == "gzip"
        assert answer.text == compact((FOLDER / name).read_text(encoding="utf-8"))
        assert web.get(f"{folder}~2/{name}").content == answer.content  # a second attempt


@pytest.mark.parametrize("name", ["nothing.js", "stub.js", "__init__.py", "live/live.css", "%2e%2e/__init__.py", "live/%2e%2e/dom.js", ""])
def test_nothing_else_is_served(web: TestClient, prefix: str, name: str) -> None:
    answer = web.get(f"{scripts().folder(prefix)}/{name}")
    assert (answer.status_code, answer.headers["Cache-Control"]) == (404, "no-store")
    assert answer.text == "No such script in this version; reload the page."


def test_another_version_is_not_answered_with_this_one(web: TestClient, prefix: str) -> None:
    answer = web.get(f"{prefix}/api/scripts/{'0' * 16}/dom.js")
    assert (answer.status_code, answer.text) == (404, "No such script in this version; reload the page.")


def test_our_other_routes_lie_below_the_prefix_too(web: TestClient, prefix: str) -> None:
    assert web.get(f"{prefix}/api/plotly.min.js").headers["Content-Type"].startswith("text/javascript")
    assert web.get(f"{prefix}/api/runs/nobody/private.png").text == "Nothing to download: no such run, or it has no pictures yet."
    assert web.get(f"{prefix}/api/runs/stream?ids=nobody").text == "No such run; it may have been deleted."
    if prefix:
        assert web.get("/api/plotly.min.js").status_code == 404
