"""The reader over HTTP: one page, lessons as data, films that browsers cache, and nothing else from the disk."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from leakage.frontend.own_script import own_script, own_script_address
from leakage.frontend.scripts import scripts
from leakage.learn import recordings
from leakage.learn.data_address import data_version
from leakage.learn.lessons import lessons
from leakage.runs.service import Service
from leakage.runs.store import Store
from leakage.settings import Settings
from leakage.web.learn_routes import LearnRoutes
from leakage.web.reader_page import ENTRY
from leakage.workers import plugin_catalog


@pytest.fixture
def web(tmp_path: Path, prefix: str) -> Iterator[TestClient]:
    store = Store(tmp_path / "store.db")
    service = Service(store, Settings(home=tmp_path, slots=1, store_mb=4096, memory_mb=0))
    yield TestClient(Starlette(routes=LearnRoutes(service, prefix).routes()), follow_redirects=False)
    store.close()


def test_the_page_has_the_index_in_it_and_asks_for_our_scripts_only(web: TestClient, prefix: str) -> None:
    answer = web.get(f"{prefix}/learn")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/html")
    found = re.search(r'<script type="application/json" id="about">(.*?)</script>', answer.text, re.DOTALL)
    assert found
    about = json.loads(found[1])
    assert about["base"] == prefix
    assert about["data"] == f"{prefix}/api/learn/{data_version()}"
    assert about["own"] == own_script_address(prefix)
    assert [one["id"] for one in about["lessons"]] == [lesson.id for lesson in lessons()]
    addresses = re.findall(r'(?:href|src)="([^"#]+)"', answer.text)
    folder = scripts().folder(prefix)
    assert f"{folder}/{ENTRY}" in addresses
    assert all(address.startswith(("data:,", f"{prefix}/")) for address in addresses)
    assert {f"{folder}/{name}" for name in scripts().closure(ENTRY)} <= set(addresses)  # all at once, none after another
    assert "__" not in re.sub(r"<script.*", "", answer.text, flags=re.DOTALL)  # every blank is filled


def test_the_script_for_a_visitors_own_picture_may_be_kept_under_the_name_of_its_content_alone(web: TestClient, prefix: str) -> None:
    answer = web.get(own_script_address(prefix))
    assert (answer.text, answer.headers["Content-Type"].split(";")[0]) == (own_script(), "text/javascript")
    assert "immutable" in answer.headers["Cache-Control"]
    assert web.get(f"{prefix}/api/own/own.000000000000.js").status_code == 404


def test_an_address_of_a_lesson_leads_to_it_and_any_other_to_the_index(web: TestClient, prefix: str) -> None:
    assert web.get(f"{prefix}/learn/02-search").headers["Location"] == f"{prefix}/learn#02-search"
    assert web.get(f"{prefix}/learn/nothing").headers["Location"] == f"{prefix}/learn"


def test_every_lesson_comes_whole_and_under_its_budget(web: TestClient, prefix: str) -> None:
    data = f"{prefix}/api/learn/{data_version()}"
    for lesson in lessons():
        answer = web.get(f"{data}/lessons/{lesson.id}.json")
        assert answer.headers["Cache-Control"] == "no-cache"
        read = answer.json()
        assert read["id"] == lesson.id
        assert answer.headers["Content-Encoding"] == "gzip"
        weight = int(answer.headers["Content-Length"])  # what travels
        for folder, names in (("runs", read["runs"]), ("grids", read["grids"])):
            for name, one in names.items():
                if one.get("film"):
                    film = web.get(f"{data}/{folder}/{name}.webp")
                    assert (film.status_code, film.headers["Content-Type"]) == (200, "image/webp")
                    assert "immutable" in film.headers["Cache-Control"]
                    weight += len(film.content)
        assert weight < 400_000, lesson.id


def test_a_film_is_the_recordings_own(web: TestClient, prefix: str) -> None:
    film = web.get(f"{prefix}/api/learn/{data_version()}/runs/r02.webp")
    assert film.content == (recordings.FOLDER / "r02.webp").read_bytes()
    picture = web.get(f"{prefix}/api/learn/{data_version()}/thumbnails/02-search.webp")
    assert picture.content[:4] == b"RIFF"


def test_worksheets_are_served_with_the_address_that_was_asked(web: TestClient, prefix: str) -> None:
    sheet = web.get(f"{prefix}/learn/worksheets/07-noise.html")
    assert (sheet.status_code, sheet.headers["Cache-Control"]) == (200, "no-cache")
    assert f'<a href="{prefix}/learn#07-noise">http://testserver{prefix}/learn/07-noise</a>' in sheet.text
    assert "Plan of the 12 lessons" in web.get(f"{prefix}/learn/worksheets/index.html").text
    assert web.get(f"{prefix}/learn/worksheets/99-none.html").status_code == 404


def test_a_recorded_run_is_saved_as_a_slide_once_the_plugins_are_known(web: TestClient, prefix: str, tmp_path: Path) -> None:
    slides = f"{prefix}/api/learn/{data_version()}/slides"
    assert web.get(f"{slides}/r09.png").status_code == 503
    plugin_catalog.write(tmp_path / "catalog.json")
    for kind, start in (("png", b"\x89PNG"), ("gif", b"GIF89a")):
        answer = web.get(f"{slides}/r09.{kind}")
        assert answer.headers["Content-Disposition"] == f'attachment; filename="leakage-r09.{kind}"'
        assert answer.headers["Content-Type"] == f"image/{kind}"
        assert answer.content.startswith(start)
    assert web.get(f"{slides}/r99.png").status_code == web.get(f"{slides}/r09.bmp").status_code == 404


NOT_THERE = [
    "runs/r99.webp",
    "runs/r02.json",
    "lessons/99-none.json",
    "thumbnails/99-none.webp",
    "runs/%2e%2e/recorded.webp",
    "films/r02.webp",
]


@pytest.mark.parametrize("name", NOT_THERE)
def test_nothing_else_is_served(web: TestClient, prefix: str, name: str) -> None:
    assert web.get(f"{prefix}/api/learn/{data_version()}/{name}").status_code == 404
