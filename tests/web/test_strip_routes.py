"""The addresses of strips: a run's, a comparison's, the steps in them, and what is cached."""

import dataclasses
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sample_events import end, frame
from starlette.applications import Starlette
from starlette.testclient import TestClient
from store_rows import run

from leakage.data.images import sheet
from leakage.results import run_strips
from leakage.runs.service import NOT_READY, Service
from leakage.runs.store import Store
from leakage.settings import Settings
from leakage.spec.experiment import Experiment
from leakage.web.routes import Routes
from leakage.web.stream import Stream

NOISE = sheet(np.random.default_rng(0).integers(0, 256, (1, 32, 32, 3), dtype=np.uint8))


@pytest.fixture
def web(tmp_path: Path, store: Store, prefix: str) -> TestClient:
    service = Service(store, Settings(home=tmp_path, slots=1, store_mb=4096, memory_mb=0))
    return TestClient(Starlette(routes=Routes(service, store, Stream(service, store)).below(prefix)), base_url=f"http://here{prefix}")


def played(store: Store, name: str, *, seed: int = 1, shareable: bool = True, frames: int = 3) -> None:
    experiment = Experiment(seed=seed).model_dump_json()
    store.add(dataclasses.replace(run(name), experiment=experiment, shareable=shareable), {})
    store.claim("0:1")
    store.put_file(name, "private.png", NOISE)
    seqs = [store.add_frame(name, frame(step), NOISE) for step in range(1, 1 + frames)]
    store.finish(name, "done", result=end(seqs[-1]) if seqs else None)


@pytest.mark.parametrize("kind", ["png", "webp"])
def test_a_run_and_a_comparison_have_a_strip(web: TestClient, store: Store, kind: str) -> None:
    played(store, "abcdefgh")
    played(store, "b", seed=2)
    one, both = web.get(f"api/runs/abcdefgh/strip.{kind}"), web.get(f"api/compare/strip.{kind}?ids=abcdefgh,b")
    for answer, name in ((one, "leakage-abcdef-strip"), (both, "leakage-strip")):
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, f"image/{kind}")
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}.{kind}"'
    sizes = [Image.open(io.BytesIO(answer.content)).size for answer in (one, both)]
    assert sizes[0][0] == sizes[1][0]
    assert sizes[1][1] > 1.7 * sizes[0][1]
    assert "Cache-Control" not in one.headers
    assert both.headers["Cache-Control"] == "no-store"


def test_the_steps_in_the_address_choose_the_columns(web: TestClient, store: Store) -> None:
    played(store, "a", frames=3)
    sizes = [Image.open(io.BytesIO(web.get(f"api/runs/a/strip.png{query}").content)).width for query in ("", "?steps=1", "?steps=1,2,3")]
    assert sizes[0] == sizes[2]  # steps 1 and 2, and the answer
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize("steps", ["x", "-1", "1e9", "99999999999999999999", "%00", "%C2%B2", ",,,", "1," * 3000, "x" * 3000, "<script>"])
def test_bad_steps_give_a_strip(web: TestClient, store: Store, steps: str) -> None:
    played(store, "a")
    for path in (f"api/runs/a/strip.png?steps={steps}", f"api/compare/strip.png?ids=a&steps={steps}"):
        answer = web.get(path)
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/png")
        assert Image.open(io.BytesIO(answer.content)).height < 1200


def test_a_strip_is_drawn_once_for_the_same_steps_and_never_kept_of_an_upload(
    web: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    make = run_strips.make
    monkeypatch.setattr(run_strips, "make", lambda store, ids, *rest: made.append(ids[0]) or make(store, ids, *rest))
    played(store, "a")
    played(store, "own", shareable=False)
    for _ in range(2):
        for steps in ("1", " 1,1", "2"):
            web.get(f"api/runs/a/strip.png?steps={steps}")
        assert web.get("api/runs/own/strip.png").headers["Cache-Control"] == "no-store"
    assert (made.count("a"), made.count("own")) == (2, 2)


def test_without_pictures_or_plugins_there_is_no_strip(web: TestClient, store: Store, tmp_path: Path) -> None:
    played(store, "a", frames=0)
    for path in ("runs/a/strip.png", "runs/nobody/strip.png", "compare/strip.png", "compare/strip.png?ids=a,nobody", "runs/a/strip.gif"):
        answer = web.get(f"api/{path}")
        assert (answer.status_code, answer.text[:19]) == (404, "Nothing to download"), path
    (tmp_path / "catalog.json").unlink()
    answer = web.get("api/runs/a/strip.png")
    assert (answer.status_code, answer.text) == (503, NOT_READY)
