"""The museum of papers in a real browser: filter, a recorded run, a link to the Lab, a gap; by keyboard, on phones, and from a folder."""

import re
from pathlib import Path

import pytest
from axe_checks import check
from playwright.sync_api import Browser, Page, expect
from small_problems import CATALOG

from leakage.learn.paper_rows import NumberRule, museum
from leakage.web.site import write_site

VERDICTS = [row.verdict for paper in museum().papers for row in paper.rows]
SHOWN = ".gle-paper tbody tr:visible"


def open_page(browser: Browser, address: str, width: int = 1280) -> Page:
    page = browser.new_context(viewport={"width": width, "height": 800}).new_page()
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.goto(address)
    return page


def test_a_reader_filters_plays_a_run_and_finds_the_command_of_a_gap(chromium: Browser, site: str) -> None:
    page = open_page(chromium, f"{site}/papers")
    expect(page.locator(SHOWN)).to_have_count(len(VERDICTS))
    page.get_by_role("link", name=re.compile("overturned")).click()
    expect(page.locator(SHOWN)).to_have_count(VERDICTS.count("overturned"))
    expect(page).to_have_url(re.compile("#overturned$"))
    page.get_by_role("link", name=re.compile("explained")).click()
    rows = [row for paper in museum().papers for row in paper.rows]
    explained = [row for row in rows if row.verdict == "explained"]
    causes = {row.rule.cause for row in explained if isinstance(row.rule, NumberRule)}
    shown = {row.id for row in explained} | causes  # "see the next row" is there to be seen
    expect(page.locator(SHOWN)).to_have_count(len(shown))
    page.get_by_role("link", name=re.compile("overturned")).click()
    page.locator("#admm-repaired").get_by_role("button").click()
    screen = page.locator("dialog .gle-screen")
    expect(screen).to_have_attribute("data-run", "r20")
    expect(screen.locator(".gle-word")).to_have_text("recognizable")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_be_hidden()
    page.get_by_role("link", name=re.compile("not measured")).click()
    expect(page.locator(SHOWN)).to_have_count(0)
    gaps = [gap.command for paper in museum().papers for gap in paper.missing]
    assert [code.removeprefix("python ") for code in page.locator(".gle-missing:visible code").all_inner_texts()] == gaps


def test_a_link_to_the_lab_opens_the_settings_of_its_row(chromium: Browser, school: str) -> None:
    page = open_page(chromium, f"{school}/papers#r-gap-1-dlg-d-mnist")
    link = page.locator("#r-gap-1-dlg-d-mnist").get_by_role("link", name="Open in the Lab")
    expect(page.locator("#precode-naive .gle-way > .gle-soft")).to_have_text("The Lab needs the pictures of CIFAR-10.")
    link.click()
    attack = page.get_by_role("combobox", name="How the attacker rebuilds the picture")
    expect(attack).to_have_value("Guess and compare (iDLG)")
    expect(page.get_by_role("combobox", name="Model on the phone")).to_have_value(re.compile("CNN6"))
    expect(page.get_by_role("switch", name="Knows the labels")).to_be_checked()


def test_an_unknown_name_in_the_address_shows_all_rows_with_a_note(chromium: Browser, site: str) -> None:
    page = open_page(chromium, f"{site}/papers/nobody")
    expect(page.locator(".gle-filter-note")).to_have_text('There is no paper and no verdict called "nobody". All rows are shown.')
    expect(page.locator(SHOWN)).to_have_count(len(VERDICTS))
    page.goto(f"{site}/papers#%E0%A4%A")
    expect(page.locator(".gle-filter-note")).to_contain_text('called "%E0%A4%A"')
    page.goto(f"{site}/papers#soteria")
    expect(page.locator("#soteria")).to_be_in_viewport()


def test_the_page_passes_axe_fits_a_phone_and_is_reached_by_keyboard(chromium: Browser, site: str) -> None:
    page = open_page(chromium, f"{site}/papers", width=390)
    assert page.evaluate("document.documentElement.scrollWidth") == 390  # tables scroll in a frame of their own
    expect(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Lab")).to_be_visible()
    check(page, "papers")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # "To the papers"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "gle-wide"
    page.goto(f"{site}/papers#overturned")
    press = page.locator("#admm-repaired button")
    press.focus()
    page.keyboard.press("Enter")
    expect(page.locator("dialog .gle-word")).to_have_text("recognizable")
    check(page, "a run in its dialog")
    page.keyboard.press("Escape")
    expect(press).to_be_focused()


def test_a_folder_shows_the_same_rows_and_plays_the_same_run_without_a_network(chromium: Browser, tmp_path: Path) -> None:
    write_site(tmp_path / "site", CATALOG)
    page = chromium.new_context(offline=True).new_page()
    page.goto(f"file://{tmp_path}/site/papers.html#overturned")
    expect(page.locator(SHOWN)).to_have_count(VERDICTS.count("overturned"))
    page.locator("#admm-repaired").get_by_role("button").click()
    expect(page.locator("dialog .gle-word")).to_have_text("recognizable")
    page.keyboard.press("Escape")
    page.goto(f"file://{tmp_path}/site/index.html")
    page.get_by_role("link", name="Papers").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("What papers print, and what came out here")
