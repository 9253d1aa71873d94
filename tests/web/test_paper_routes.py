"""The museum of papers over HTTP: one page with all rows, addresses of papers, and the recorded runs that its rows play."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from leakage.learn import recordings
from leakage.learn.data_address import data_folder
from leakage.learn.paper_rows import museum
from leakage.runs.service import Service
from leakage.runs.store import Store
from leakage.settings import Settings
from leakage.web.paper_routes import PaperRoutes

ROWS = [row for paper in museum().papers for row in paper.rows]


@pytest.fixture
def web(tmp_path: Path, prefix: str) -> Iterator[TestClient]:
    store = Store(tmp_path / "store.db")
    service = Service(store, Settings(home=tmp_path, slots=1, store_mb=4096, memory_mb=0))
    yield TestClient(Starlette(routes=PaperRoutes(service, prefix).routes()), follow_redirects=False)
    store.close()


def test_the_page_has_every_row_once_and_asks_for_our_own_files_only(web: TestClient, prefix: str) -> None:
    answer = web.get(f"{prefix}/papers")
    assert answer.status_code == 200
    assert re.findall(r'<tr id="([^"]+)"', answer.text) == [row.id for row in ROWS]
    assert f"{len(ROWS)} rows from {sum(bool(paper.tables) for paper in museum().papers)} papers" in answer.text
    addresses = re.findall(r'(?:href|src)="([^"#]+)"', answer.text)
    assert all(address.startswith(("data:,", f"{prefix}/")) for address in addresses)
    assert "<img" not in answer.text, "a data set's pictures are never shown"


def test_the_address_of_a_paper_leads_to_its_place_on_the_page(web: TestClient, prefix: str) -> None:
    answer = web.get(f"{prefix}/papers/r-gap")
    assert (answer.status_code, answer.headers["Location"]) == (307, f"{prefix}/papers#r-gap")


@pytest.mark.parametrize("run", sorted({row.run for row in ROWS if row.run}))
def test_a_run_that_a_row_plays_has_frames_and_a_film(web: TestClient, prefix: str, run: str) -> None:
    got = web.get(f"{data_folder(prefix)}/records/{run}.json").json()
    assert len(got["columns"]["step"]) >= len(got["film"]["places"]) >= 1
    assert (recordings.FOLDER / f"{run}.webp").is_file()


def test_other_recordings_are_not_served_there(web: TestClient, prefix: str) -> None:
    answer = web.get(f"{data_folder(prefix)}/records/r81.json")
    assert (answer.status_code, answer.text) == (404, "No row of a paper plays such a run.")
