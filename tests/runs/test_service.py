"""The service is the only way from pages to the store, and no worker imports it."""

import ast
import io
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from store_rows import run

from leakage.data.images import read, tiles
from leakage.runs.events import FrameEvent
from leakage.runs.service import Place, Service
from leakage.settings import ROOT
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.spec.tasks import Ranks

PAGES = [ROOT / "app.py", *ROOT.glob("pages/*.py"), *ROOT.glob("leakage/ui/**/*.py"), *ROOT.glob("leakage/web/*.py")]
WORKERS = sorted(set(ROOT.glob("leakage/workers/*.py")) - {ROOT / "leakage/workers/recorder.py"})  # which asks first, as a page does


def named(file: Path) -> str:
    return str(file.relative_to(ROOT))


@pytest.mark.parametrize("file", sorted(PAGES), ids=named)
def test_nobody_reaches_through_the_service_at_its_store(file: Path) -> None:
    """Routes for files and events have their own Store, `self.store`; all other code asks the service."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Attribute) and node.attr == "store":
            assert isinstance(node.value, ast.Name), f"line {node.lineno}"
            assert node.value.id == "self", f"line {node.lineno}"


def test_the_test_above_sees_files() -> None:
    assert {"app.py", "pages/lab.py", "leakage/ui/lab/fallback.py", "leakage/web/routes.py"} <= {named(file) for file in PAGES}


@pytest.mark.parametrize("file", WORKERS, ids=named)
def test_a_worker_imports_no_service(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.module != "leakage.runs.service", f"line {node.lineno}"
            assert node.module != "leakage.runs" or "service" not in {name.name for name in node.names}, f"line {node.lineno}"
        elif isinstance(node, ast.Import):
            assert "leakage.runs.service" not in {name.name for name in node.names}, f"line {node.lineno}"


@pytest.mark.parametrize(
    "file", sorted(set(PAGES) - {ROOT / "leakage/web/server.py", ROOT / "leakage/web/routes.py", ROOT / "leakage/web/stream.py"}), ids=named
)
def test_no_page_takes_a_store_of_its_own(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        taken = (
            [one.name for one in node.names] if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("leakage.runs") else []
        )
        assert not {"store", "Store"} & {*taken}, "ask the service"
        assert not (isinstance(node, ast.Constant) and node.value == "store"), "ask the service"


def test_equal_experiments_share_a_run_until_another_network_measures_them(door: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    first = door.submit(Experiment(), "me")
    assert door.submit(Experiment(), "you") == first
    monkeypatch.setattr("leakage.runs.service.lpips_weights.available_nets", lambda: "another")
    assert door.submit(Experiment(), "me") != first


def test_only_who_holds_a_run_alone_stops_it_and_nobody_deletes_anothers(door: Service) -> None:
    mine = door.submit(Experiment(), "me")
    door.delete(mine, "you")
    door.cancel(mine, "you")
    found = door.look(mine)
    assert found is not None
    assert (found.status, found.cancelled) == ("queued", None)
    assert door.submit(Experiment(), "you") == mine  # shared: now neither of the two stops it for the other
    door.cancel(mine, "me")
    found = door.look(mine)
    assert found is not None
    assert (found.status, found.cancelled) == ("queued", None)
    door.delete(mine, "you")
    assert [run.id for run in door.mine("me")] == [mine]
    door.cancel(mine, "me")
    found = door.look(mine)
    assert found is not None
    assert found.status == "cancelled"


def test_the_private_pictures_of_a_run_that_waits_are_those_that_were_asked_for(door: Service) -> None:
    file = io.BytesIO()
    Image.new("RGB", (40, 40), (200, 30, 30)).save(file, "PNG")
    pictures = (Picture(id="coffee"), Picture(source="upload", id="red", label=6))
    id = door.submit(Experiment(pictures=pictures, size=28, channels=3), "me", uploads={"red": file.getvalue()})
    coffee, red = tiles(door.private(id) or b"", 2)
    assert (coffee == read("gallery", "coffee", 28, 3)).all()
    assert np.unique(red.reshape(-1, 3), axis=0).tolist() == [[200, 30, 30]]
    assert door.private("nobody") is None
    assert door.private(door.measure(Ranks(network="conv 4@1 - block 4 - mean", size=28, channels=1), "me")) is None


def test_the_wait_follows_the_pace_of_what_runs_and_the_load_that_it_shows(door: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    monkeypatch.setattr("leakage.runs.estimates.time.time", lambda: now)
    hundred = Experiment(attack=Part(id="idlg", fields={"steps": 100})).model_dump_json()
    for name, estimate in (("a", 50.0), ("b", 60.0), ("c", 10.0), ("d", 20.0), ("e", 1.0)):
        door.store.add(run(name, estimate=estimate, experiment=hundred), {})
    assert (door.place("a"), door.place("nobody")) == (Place(1, 0.0), Place(0, None))
    for _ in range(2):
        door.store.claim("0:1")
    slots = replace(door.config, slots=2)
    two = Service(door.store, slots)
    assert [two.place(name).position for name in "cde"] == [1, 2, 3]
    assert [two.place(name).wait for name in "cde"] == pytest.approx([50, 60, 60], abs=1)  # as was estimated: b and c end together
    door.store.add_frame("a", FrameEvent(step=10, seconds=10.0, loss=1.0), b"")  # twice as slow: 90 s are left, b takes 120 in all
    assert [two.place(name).wait for name in "cde"] == pytest.approx([90, 110, 120], abs=1)
    door.store.add_frame("b", FrameEvent(step=50, seconds=30.0, loss=1.0), b"")  # as fast as was thought: 30 s are left
    assert [two.place(name).wait for name in "cde"] == pytest.approx([30, 45, 75], abs=1)
    hurried = Experiment(max_seconds=5).model_dump_json()
    for limited in ("c", "d"):  # however slow: it is ended
        with door.store.database.write() as db:
            db.execute("UPDATE runs SET experiment = ? WHERE id = ?", (hurried, limited))
    assert two.place("e").wait == pytest.approx(40, abs=1)
    door.store.add(run("f", estimate=None), {})
    door.store.add(run("g", estimate=1.0), {})
    assert (two.place("f").wait, two.place("g").wait) == (pytest.approx(41.5, abs=1), None)
