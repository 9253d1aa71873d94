"""Back and Forward in a real browser: from run to run, from page to page, and out again."""

import re

from browser_waiting import press, uncover
from playwright.sync_api import Browser, Page, expect

MARKS = {"Compare": ".gle-compared", "Lab": ".st-key-step-1"}  # what a page has that the other has not


def opened(browser: Browser, url: str, *, first: bool = False) -> Page:
    """A page that shows a run. `first`: a first-time visitor has it uncovered."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce").new_page()
    page.goto(url)
    if first:
        uncover(page)
    expect(page.locator(".gle-run")).to_be_visible(timeout=120_000)
    return page


def test_back_and_forward_lead_from_run_to_run_and_page_to_page_with_their_settings(site: str, chromium: Browser) -> None:
    page = opened(chromium, site, first=True)
    steps = page.evaluate("history.length")
    run, sent, size = page.locator(".gle-run").first, page.locator(".gle-sent svg"), page.get_by_role("spinbutton", name="Batch size")
    recorded = run.get_attribute("data-run") or ""

    def shows(id: str | re.Pattern[str], words: str) -> None:
        expect(run).to_have_attribute("data-run", id)
        expect(sent).to_have_attribute("aria-label", re.compile(words))

    page.get_by_role("button", name="A published result, overturned").click()
    shows("r19", "hidden correction")
    page.locator('.gle-pick[data-id="gallery:coffee"]').click()
    page.wait_for_url(re.compile("pictures=gallery%3Acoffee(&|$)"), timeout=60_000)
    page.get_by_role("button", name="Add Face 0 to the batch").click()
    expect(size).to_have_value("2")
    page.wait_for_url(re.compile("pictures=gallery%3Acoffee%2Cgallery%3Aface-0"), timeout=60_000)
    assert page.evaluate("history.length") == steps + 3
    page.get_by_test_id("stTopNav").get_by_role("link", name="Compare").click()
    expect(page.get_by_text("1 · What differs")).to_be_visible()
    page.go_back()
    shows("r19", "hidden correction")
    expect(size).to_have_value("2")
    page.go_back()
    expect(size).to_have_value("1")
    expect(page.get_by_text("Coffee (class:")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("Coffee (class:")).to_have_count(0)
    page.go_back()
    expect(run).to_have_attribute("data-run", recorded)
    page.go_forward()
    shows("r19", "hidden correction")


def test_history_leads_from_run_to_run_in_the_simple_form_and_never_holds_anybody_back(site: str, chromium: Browser) -> None:
    page = opened(chromium, f"{site}/?run=r02")
    run = page.locator(".gle-run").first
    steps = page.evaluate("history.length")

    def shows(id: str, *, simply: bool) -> None:
        expect(run).to_have_attribute("data-run", id)
        expect(page.get_by_text("The attacker and what it knows")).to_have_count(0 if simply else 1)

    def go(to: str) -> None:
        press(page.get_by_test_id("stTopNav").get_by_role("link", name=to, exact=True), page.locator(MARKS[to]))

    shows("r02", simply=True)
    page.get_by_role("button", name="A published result, overturned").click()
    shows("r19", simply=False)
    page.go_back()
    shows("r02", simply=True)
    expect(page).to_have_url(f"{site}/?run=r02")  # as it was opened: no step was added to it
    page.go_forward()
    shows("r19", simply=False)
    assert page.evaluate("history.length") == steps + 1
    go("Compare")
    expect(page.get_by_text("1 · What differs")).to_be_visible()
    page.go_back()
    shows("r19", simply=False)
    go("Compare")
    expect(page.get_by_text("1 · What differs")).to_be_visible()
    go("Lab")
    shows("r19", simply=False)  # whichever page one comes from
    page.wait_for_url(re.compile("run=r19"), timeout=60_000)
    page.go_back()
    shows("r19", simply=False)
    page.go_back()
    expect(page.get_by_text("1 · What differs")).to_be_visible()
    page.goto(f"{site}/compare?runs=r19,r20")
    expect(run).to_have_attribute("data-run", "r20")  # the better of both
    page.wait_for_timeout(1000)
    expect(page).to_have_url(f"{site}/compare?runs=r19,r20")
