"""On a phone the guess is in view beside the private picture, and a what-if beside its first run."""

import re

from browser_waiting import press_run
from playwright.sync_api import Browser, expect

TOPS = "(names) => names.map((name) => document.querySelector(`.gle-run ${name}`).getBoundingClientRect().top)"


def test_on_a_phone_both_pictures_are_on_one_screen_and_a_what_if_keeps_the_first_run(site: str, chromium: Browser) -> None:
    page = chromium.new_context(viewport={"width": 400, "height": 860}).new_page()
    page.goto(f"{site}/?v=1")
    press_run(page)
    first = re.findall(r"[?&]run=([^&]+)", page.url)[0]
    expect(page.locator(f'.gle-run[data-run="{first}"] .gle-guess canvas')).to_be_visible(timeout=120_000)
    private, guess = page.evaluate(TOPS, [".gle-private", ".gle-attacker"])
    assert private == guess  # side by side
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 400
    page.get_by_role("button", name="… prune 90 %?").click(timeout=120_000)
    page.wait_for_url(re.compile(rf"[?&]run={first}(,|%2C)"), timeout=120_000)
    expect(page.locator(".gle-run")).to_have_count(2, timeout=120_000)
    expect(page.locator(".gle-run").first).to_have_attribute("data-run", first)
    page.get_by_role("button", name="Only the second").click(timeout=120_000)
    expect(page.locator(".gle-run")).to_have_count(1, timeout=120_000)
    assert page.locator(".gle-run").get_attribute("data-run") != first
