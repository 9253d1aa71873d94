"""The folder of `make site`: small, complete, and without anything that a page from a disk may not do."""

import json
import re
from hashlib import sha256
from pathlib import Path

import pytest
from small_problems import CATALOG

from leakage.frontend.own_script import own_script
from leakage.learn.lessons import lessons
from leakage.learn.reader_data import reader_lesson
from leakage.learn.stories import front_door
from leakage.web.site import HOME, read_manifest, write_manifest, write_site

MOST = 5_500_000  # bytes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("made") / "site"
    size = write_site(made, CATALOG, address="https://example.org/leakage/")
    assert size == sum(file.stat().st_size for file in made.rglob("*") if file.is_file())
    assert 2_000_000 < size < MOST
    return made


@pytest.mark.long
def test_a_lesson_is_a_script_that_hands_over_what_the_program_would_answer(folder: Path) -> None:
    for lesson in lessons():
        text = (folder / "data" / f"{lesson.id}.js").read_text()
        name, _, value = text.removeprefix("gle.data(").removesuffix(");\n").partition(", ")
        assert json.loads(name) == f"lessons/{lesson.id}"
        assert json.loads(value) == reader_lesson(lesson.id, CATALOG)


def test_every_picture_that_a_lesson_shows_is_there(folder: Path) -> None:
    for lesson in lessons():
        assert (folder / "thumbnails" / f"{lesson.id}.webp").stat().st_size > 1000
        read = reader_lesson(lesson.id, CATALOG)
        films = [f"{kind}/{name}.webp" for kind in ("runs", "grids") for name, one in read[kind].items() if one.get("film")]
        slides = [f"slides/{name}.png" for name, one in read["runs"].items() if one.get("film")]
        assert [name for name in [*films, *slides] if not (folder / name).is_file()] == []


def test_the_front_door_stands_in_the_page_and_finds_its_pictures_in_the_folder(folder: Path) -> None:
    about = json.loads(re.findall(r'id="about">(.*?)</script>', (folder / HOME).read_text(), re.DOTALL)[0])
    door, stories = about["door"], front_door().stories
    assert [card["title"] for card in door["stories"]] == [story.title for story in stories]
    pictures = [door["film"]["address"], *(card["thumbnail"] for card in door["stories"])]
    assert [name for name in pictures if not (folder / name).is_file()] == []
    assert [card["href"] for card in door["stories"]] == [f"#{story.lesson}/{story.beat}" for story in stories]
    assert {card["lab"].split("?")[0] for card in door["stories"]} | {door["links"]["lab"]} == {"program.html"}


def test_the_script_for_a_visitors_own_picture_lies_in_the_folder_and_both_its_places_name_it(folder: Path) -> None:
    about = json.loads(re.findall(r'id="about">(.*?)</script>', (folder / HOME).read_text(), re.DOTALL)[0])
    scripts = [file.name for file in folder.glob("own.*.js")]
    assert scripts == [about["own"]] == [about["door"]["own"]]
    assert (folder / about["own"]).read_text() == own_script()


def test_every_link_leads_to_a_file_of_the_folder_and_none_to_a_network(folder: Path) -> None:
    pages = sorted(folder.rglob("*.html"))
    assert len(pages) == 3 + 1 + 3 * len(lessons())  # home, papers, program; the plan; three for each lesson
    for page in pages:
        text = page.read_text()
        assert 'type="module"' not in text
        addresses = re.findall(r'(?:href|src)="([^"]+)"', text)
        assert addresses
        files = [re.split("[#?]", address)[0] for address in addresses if not address.startswith(("data:", "http://127.0.0.1:8501/", "#"))]
        assert [file for file in files if not (page.parent / file).is_file()] == [], page.name


@pytest.mark.long
def test_a_worksheet_prints_the_address_of_its_host_or_the_file_to_open_and_foreign_files_stay(folder: Path) -> None:
    assert ">https://example.org/leakage/#07-noise</a>" in (folder / "worksheets" / "07-noise.html").read_text()
    foreign = {".git/config": "[core]", "CNAME": "lessons.example.org", "data/own.js": "mine", "worksheets/index.pdf": "printed by hand"}
    for name, text in foreign.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    stale, changed = {"old/reader.old.js": "old", "old/kept.js": "old"}, folder / "old" / "kept.js"
    (folder / "old").mkdir()
    for name, text in stale.items():
        (folder / name).write_text(text)
    write_manifest(folder, read_manifest(folder) | {name: sha256(text.encode()).hexdigest() for name, text in stale.items()})
    changed.write_text("old, and a line of somebody else")
    write_site(folder, CATALOG)  # its own files are written anew
    assert ">index.html, lesson 7</a>" in (folder / "worksheets" / "07-noise.html").read_text()
    assert len(list(folder.glob("reader.*"))) == 2
    assert {name: (folder / name).read_text() for name in foreign} == foreign
    assert [path.name for path in (folder / "old").iterdir()] == ["kept.js"]
    changed.write_text("old")
    write_manifest(folder, read_manifest(folder) | {"old/kept.js": sha256(b"old").hexdigest(), "../site-beside": sha256(b"x").hexdigest()})
    (folder.parent / "site-beside").write_bytes(b"x")
    write_site(folder, CATALOG)
    assert not changed.parent.exists()
    assert (folder.parent / "site-beside").exists()  # a list that somebody changed leads to nothing outside


def test_a_folder_that_holds_a_repository_and_nothing_else_is_taken(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("[core]")
    write_site(tmp_path, CATALOG)
    assert (tmp_path / ".git" / "config").read_text() == "[core]"
    assert (tmp_path / HOME).is_file()


@pytest.mark.long
def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / HOME).write_text("My page.")
    with pytest.raises(ValueError, match=r"is neither empty nor an earlier site: name another folder"):
        write_site(tmp_path, CATALOG)
    assert (tmp_path / HOME).read_text() == "My page."
