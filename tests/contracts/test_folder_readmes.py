"""The README of a folder is short, and names no file that does not exist."""

import re
from pathlib import Path

import pytest

from leakage.settings import ROOT

READMES = sorted((ROOT / "leakage").rglob("README.md"))
LONGEST = 60  # lines
FILE = re.compile(r"(?<![\w/.*-])((?:\.\./)*(?:[\w-]+/)*[\w-]+\.(?:py|js|css|jinja|html\.jinja|sh|json|toml|md))(?![\w(])")


def missing(text: str, folder: Path) -> list[str]:
    """List the files that a text names and that lie neither in its folder nor below the root."""
    return [name for name in FILE.findall(text) if not any((place / name).is_file() for place in (folder, ROOT))]


@pytest.mark.parametrize("readme", READMES, ids=lambda file: str(file.parent.relative_to(ROOT)))
def test_a_readme_is_short_and_names_files_that_exist(readme: Path) -> None:
    text = readme.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    assert FILE.findall(text)
    assert missing(text, readme.parent) == []


def test_a_file_that_does_not_exist_is_found() -> None:
    text = "Read `no_such_file.py` after `leakage/settings.py` and `leakage/no_such_file.py`; `../gone.js` too, not `Engine.run`."
    assert missing(text, ROOT / "leakage" / "ui") == ["no_such_file.py", "leakage/no_such_file.py", "../gone.js"]
