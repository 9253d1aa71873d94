"""The components' modules: their version follows their content, and all their imports exist."""

import gzip
import re
from pathlib import Path

import pytest

from leakage.frontend import scripts
from leakage.frontend.join_page import ENTRY
from leakage.frontend.own_script import PAGE, WORKER
from leakage.frontend.scripts import FOLDER, read, stub

COMPONENTS = ("live/live.js", "picker/picker.js", "sent/sent.js", "sender/sender.js", "front/front.js", "reader/reader.js")
COMPONENTS = (*COMPONENTS, PAGE, WORKER, ENTRY, "papers/papers.js")
LARGEST_LESSON = 61_000  # bytes, compressed
NAMED = re.compile(r"""(?:\bfrom|\bimport)\s*\(?\s*['"]([^'"]+)['"]""")  # any import, also one that closure() would overlook


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


def code(text: str) -> str:
    """A script without its comments, in which types look like imports."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def test_the_version_follows_names_and_contents_alone(tmp_path: Path) -> None:
    files = {"a.js": "1", "live/b.js": "2"}
    first = read(written(tmp_path / "first", files))
    assert read(written(tmp_path / "same", files)).version == first.version
    assert sorted(first.files) == ["a.js", "live/b.js"]
    changed = [
        {"a.js": "1", "live/b.js": "3"},
        {"a.js": "1", "live/c.js": "2"},
        {"a.js": "12", "live/b.js": ""},
        {"a.js": "1"},
    ]
    versions = {read(written(tmp_path / f"changed{place}", other)).version for place, other in enumerate(changed)}
    assert len(versions | {first.version}) == 1 + len(changed)


def test_a_comment_changes_nothing_that_is_sent(tmp_path: Path) -> None:
    text = "// why\nimport { b } from './b.js';\n/** @type {string} */\nexport const a = `// ${b}`;\n"
    first = read(written(tmp_path / "first", {"a.js": text}))
    assert first.find(first.version, "a.js") == b"import{b}from'./b.js';\nexport const a=`// ${b}`;"
    assert read(written(tmp_path / "other", {"a.js": text.replace("why", "because")})).version == first.version


def test_the_modules_of_a_lesson_are_light() -> None:
    served = scripts.scripts()
    assert sum(len(gzip.compress(served.sent[name])) for name in served.closure("reader/reader.js")) < LARGEST_LESSON


def test_what_is_no_module_is_not_served(tmp_path: Path) -> None:
    files = {"a.js": "1", "stub.js": "s", "a.css": "c", "live/events.d.ts": "t", "__init__.py": "p"}
    assert set(read(written(tmp_path, files)).files) == {"a.js"}


def test_a_module_is_found_in_its_own_version_alone(tmp_path: Path) -> None:
    found = read(written(tmp_path / "in", {"a.js": "1"}))
    (tmp_path / "secret.js").write_text("s")
    assert found.find(found.version, "a.js") == b"1"
    assert found.find(f"{found.version}~3", "a.js") == b"1"  # as it is asked for after a failure
    for version, name in [
        ("0" * 16, "a.js"),
        ("", "a.js"),
        (f"{found.version}~", "a.js"),
        (f"{found.version}~x", "a.js"),
        (found.version, "b.js"),
        (found.version, "../secret.js"),
        (found.version, "./a.js"),
        (found.version, ""),
    ]:
        assert found.find(version, name) is None, (version, name)


def test_a_module_is_followed_by_all_that_it_needs_and_by_nothing_twice(tmp_path: Path) -> None:
    files = {
        "a/a.js": "import { b } from './b.js';\nimport {\n  c,\n} from '../c.js';\nconst x = 'from nowhere';\n",
        "a/b.js": "// import { e } from './e.js';\nimport { c } from '../c.js';\nimport { a } from './a.js';\n",
        "c.js": "import './d.js';\n",
        "d.js": "",
        "e.js": "",
    }
    assert read(written(tmp_path, files)).closure("a/a.js") == ["a/a.js", "a/b.js", "c.js", "d.js"]


def test_an_import_of_what_is_not_there_fails_before_a_browser_sees_it(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match=r"b\.js"):
        read(written(tmp_path, {"a.js": "import { b } from './b.js';\n"})).closure("a.js")


@pytest.mark.parametrize("name", COMPONENTS)
def test_every_import_of_a_component_is_a_served_file_that_is_asked_for_ahead(name: str) -> None:
    served = scripts.scripts()
    closure = served.closure(name)
    for one in closure:
        for named in NAMED.findall(code(served.files[one].decode())):
            assert named.startswith(("./", "../")), f"{one} imports {named}: a browser has no packages"
            target = (FOLDER / one).parent.joinpath(named).resolve().relative_to(FOLDER).as_posix()
            assert target in closure, f"{one} imports {named}"


def test_no_module_is_left_that_no_component_needs() -> None:
    served = scripts.scripts()
    needed = {name for component in COMPONENTS for name in served.closure(component)}
    assert set(served.files) - needed == {"attack/line_search.js"}  # a part of L-BFGS that no attack of a page uses


def test_the_stub_imports_nothing_by_itself_and_names_absolute_addresses() -> None:
    text = stub("/gle", "sent/sent.js")
    assert NAMED.findall(code(text)) == []
    assert f"'/gle/api/scripts/{scripts.scripts().version}'" in text
    assert "'sent/sent.js dom.js'" in text
    assert not re.search(r"__[A-Z]+__", text)
