"""A plug-in that cannot be read is named on the page, which goes on by itself when the file is corrected."""

import shutil
from pathlib import Path

from dashboards import served
from playwright.sync_api import Browser, expect

from leakage.settings import ROOT

FAULT = "leakage/defenses/broken.py must define exactly one Defense; found 0."


def test_a_page_names_a_broken_plug_in_and_goes_on_when_it_is_corrected(tmp_path: Path, chromium: Browser) -> None:
    root, home = tmp_path / "checkout", tmp_path / "home"
    home.mkdir()
    for name in ("leakage", "assets", "pages", ".streamlit"):
        shutil.copytree(ROOT / name, root / name)
    shutil.copy(ROOT / "app.py", root)
    planted = root / "leakage/defenses/broken.py"
    planted.write_text('"""A defense of which nothing is written yet."""\n')
    with served(home, root=root) as address:
        page = chromium.new_page()
        page.goto(f"{address}/?expert=1")
        expect(page.get_by_text(FAULT)).to_be_visible(timeout=120_000)
        planted.unlink()
        expect(page.get_by_text("The attacker and what it knows")).to_be_visible(timeout=180_000)
        expect(page.get_by_text(FAULT)).to_have_count(0)
        page.close()
