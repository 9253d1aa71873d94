"""The page Audit in a browser: files go to the server with their progress, the audit runs, and its findings appear and are deleted."""

from pathlib import Path

import pytest
from browser_waiting import wait_for
from playwright.sync_api import Browser, Page, expect
from recorded_updates import write_update

LONG = 240_000  # milliseconds: for a worker on a busy machine


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_update(tmp_path_factory.mktemp("recorded"))


@pytest.fixture
def page(chromium: Browser, site: str) -> Page:
    made = chromium.new_context(viewport={"width": 1440, "height": 1000}).new_page()
    made.goto(f"{site}/audit")
    expect(made.locator(".gle-drop input")).to_be_enabled(timeout=LONG)
    return made


def choose(page: Page, *files: Path | dict[str, object]) -> None:
    page.locator(".gle-drop input").set_input_files(list(files))  # type: ignore[arg-type]


def test_files_are_sent_the_audit_runs_and_what_it_finds_appears(page: Page, recorded: Path, rooms: Path) -> None:
    run = page.locator(".st-key-run-button button")
    expect(run).to_be_disabled()
    choose(page, recorded / "after.npz")
    expect(page.get_by_text("Still missing: the weights before the training, with which attacks compute.")).to_be_visible(timeout=LONG)
    choose(page, recorded / "before.npz", recorded / "card.json")
    expect(page.locator(".gle-file-size", has_text="✓")).to_have_count(3, timeout=LONG)
    expect(page.get_by_role("spinbutton", name="Learning rate")).to_have_value("0.1", timeout=LONG)
    folders = list((rooms / "updates").glob("*/*"))
    assert [sorted(path.name for path in folder.iterdir()) for folder in folders] == [["after.npz", "before.npz", "card.json"]]
    assert {path.stat().st_mode & 0o077 for folder in folders for path in (folder, folder.parent, *folder.iterdir())} == {0}
    page.get_by_text("1 min", exact=True).click()
    expect(run).to_be_enabled()
    run.click()
    expect(page.locator(".gle-finding-pictures img").first).to_be_visible(timeout=LONG)
    expect(page.get_by_text("None of this is a proof.")).to_be_visible()
    wait_for(page, "() => document.querySelector('.gle-finding-pictures img').naturalHeight === 32")
    expect(page.get_by_text("Findings (JSON)")).to_be_visible(timeout=LONG)
    page.reload()
    expect(page.locator(".gle-finding-pictures img").first).to_be_visible(timeout=LONG)
    page.get_by_role("button", name="Delete all mine").click()
    page.get_by_role("button", name="Delete them").click()
    expect(page.get_by_text("Say what you know")).to_be_visible(timeout=LONG)
    assert list((rooms / "updates").glob("*")) == []


def test_a_file_without_a_telling_name_is_asked_about_and_code_is_not_sent(page: Page, recorded: Path) -> None:
    data, before = (recorded / "gradient.npz").read_bytes(), (recorded / "before.npz").read_bytes()
    choose(
        page,
        {"name": "before.npz", "mimeType": "", "buffer": before},
        {"name": "round_7.npz", "mimeType": "", "buffer": data},
        {"name": "model.pt", "mimeType": "", "buffer": b"code"},
    )
    expect(page.get_by_text("Reading this kind of file can run code")).to_be_visible()
    page.get_by_label("What is round_7.npz?").select_option("gradient")
    expect(page.locator(".gle-file-size", has_text="✓")).to_have_count(2)
    expect(page.locator(".st-key-run-button button")).to_be_enabled()
    page.get_by_role("button", name="Remove this file: gradient.npz").click()
    expect(page.locator(".st-key-run-button button")).to_be_disabled()
    expect(page.locator(".gle-file-size", has_text="✓")).to_have_count(1)


def test_what_the_server_refuses_is_said_beside_the_file(page: Page) -> None:
    choose(page, {"name": "card.json", "mimeType": "", "buffer": b" " * 100_000})
    expect(page.locator(".gle-file-problem")).to_have_text("A card (card.json) has less than 64 kB. This file has 98 kB.")


@pytest.mark.parametrize("width", [400, 1440])
def test_the_page_fits_its_window(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
