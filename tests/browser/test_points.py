"""Wishes of people who tried the program, in a real browser: one word for a result, a countdown, names of runs."""

import re
from pathlib import Path

import pytest
from browser_waiting import press_run
from home_processes import LONG, Place, another, until
from playwright.sync_api import Browser, Page, expect

from leakage.settings import settings

QUICK = "model=mlp&attack=linear_layer&expert=1"  # one division
BEGINS = re.compile(r"begins in about (\d+) s")
WIDTHS = (
    "(names) => names.map((one) => document.querySelector(one).getBoundingClientRect()).map(({ left, right, top }) => [left, right, top])"
)

CUT_OFF = """() => [...document.querySelectorAll('.gle-pick-title, input, [data-testid=stMultiSelectTagsContainer] span, button, th, td')]
    .filter((one) => one.offsetParent && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== 'visible')
    .map((one) => one.value || one.innerText)"""  # the words that are wider than their box


def opened(chromium: Browser, address: str, *, width: int = 1280, height: int = 800) -> Page:
    page = chromium.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce").new_page()
    page.goto(address)
    return page


def test_one_result_has_one_word_wherever_it_stands(site: str, chromium: Browser) -> None:
    page = opened(chromium, f"{site}/compare")
    expect(page.locator('.gle-run[data-status="done"]:not([data-psnr=""])')).to_have_count(4, timeout=120_000)
    cards = [one.inner_text().strip().lower() for one in page.locator(".gle-badge").all()]
    lines = page.locator(".gle-compared").first.locator("tbody tr:not(.gle-baseline)")  # below it stand all tries
    assert [one.locator(".gle-said").first.inner_text().strip() for one in lines.all()] == cards
    assert lines.first.locator("th a").get_attribute("href")
    lines.last.locator("th a").click()
    expect(page.locator(".gle-badge").first).to_contain_text(cards[-1], ignore_case=True, timeout=120_000)


def test_a_wait_is_told_and_counts_down(site: str, rooms: Path, chromium: Browser) -> None:
    others = Place(rooms)
    for seed in range(71, 71 + settings().slots):
        others.submit(another(LONG, seed).model_copy(update={"max_seconds": 60}), f"somebody {seed}")
    until(lambda: len(others.store.running()) == settings().slots, what="every slot is taken")
    others.store.close()
    page = opened(chromium, f"{site}/?{QUICK}&seed=73")
    press_run(page)
    expect(page.locator(".gle-run")).to_contain_text("yours is next")
    expect(page.locator(".gle-run")).to_contain_text(BEGINS)
    waits: list[int] = []
    while len(waits) < 60 and (len(waits) < 2 or waits[-1] > waits[0] - 3):  # a busy machine may raise the estimate meanwhile
        found = BEGINS.search(page.locator(".gle-run").inner_text())
        assert found, page.locator(".gle-run").inner_text()
        waits.append(int(found[1]))
        page.wait_for_timeout(500)
    assert waits[-1] <= waits[0] - 3, waits


def test_local_training_varies_and_what_it_costs_is_on_the_screen(site: str, chromium: Browser) -> None:
    page = opened(chromium, f"{site}/compare")
    expect(page.locator('.gle-run[data-status="done"]')).to_have_count(4, timeout=120_000)
    cost = page.locator(".gle-compared tbody tr", has_text="Gaussian noise 0.01").locator("td", has_text="96.9%").first
    box = cost.bounding_box()
    assert box
    assert box["x"] + box["width"] <= 1280
    for name, told in {"Local steps": "Local steps: 1; ", "Local rate": "Local rate: ", "Rounds": "The round: "}.items():
        page.get_by_role("radio", name=name, exact=True).click()
        expect(page.get_by_text(re.compile(rf"^Differs\. {told}.*; "))).to_be_visible()
        expect(page.get_by_role("button", name="Run all")).to_be_enabled()
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto(f"{site}/compare")
    expect(page.locator('.gle-run[data-status="done"]')).to_have_count(4, timeout=120_000)
    (left, right, top), (other, end, level) = page.evaluate(WIDTHS, [".gle-run .gle-private canvas", ".gle-run .gle-guess canvas"])
    assert 0 <= left < right <= other < end <= 360
    assert abs(top - level) < 2


def test_an_average_of_one_round_is_named_before_run(site: str, chromium: Browser) -> None:
    page = opened(chromium, f"{site}/?v=1&defense=gaussian_noise&counter=average the rounds&rounds=3&attacked_round=1&expert=1")
    expect(page.get_by_text(re.compile("has a single round")).first).to_be_visible(timeout=120_000)


def test_a_run_gets_a_name_and_a_pin_and_stands_in_a_list_for_others(site: str, chromium: Browser) -> None:
    page = opened(chromium, f"{site}/?{QUICK}&seed=74")
    press_run(page)
    expect(page.locator(".gle-stage")).to_have_attribute("data-status", "done", timeout=120_000)
    page.get_by_test_id("stTopNav").get_by_role("link", name="Your runs").click()
    page.get_by_role("button", name="Rename").click(timeout=60_000)
    page.get_by_role("textbox", name="Name").fill("One division")
    page.get_by_role("textbox", name="Name").press("Enter")
    expect(page.get_by_role("link", name="One division")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Pin", exact=True).click()
    page.get_by_role("button", name="Make a lesson of the pinned runs").click(timeout=60_000)
    address = page.get_by_role("link", name="Open it").get_attribute("href") or ""
    elsewhere = opened(chromium, address if address.startswith("http") else f"{site}{address}")  # another browser
    expect(elsewhere.get_by_role("link", name="One division")).to_be_visible(timeout=120_000)


@pytest.mark.parametrize("page", ["?expert=1", "compare", "training", "ask"])
def test_no_name_is_cut_off_on_a_laptop(site: str, chromium: Browser, page: str) -> None:
    shown = opened(chromium, f"{site}/{page}")
    expect(shown.locator("[class*=st-key-step-], h1, h2").first).to_be_visible(timeout=120_000)
    if page in ("?expert=1", "compare"):
        expect(shown.locator(".gle-pick").last).to_be_attached()
    shown.wait_for_timeout(2000)  # the last widgets
    assert shown.evaluate(CUT_OFF) == []
