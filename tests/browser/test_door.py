"""The front page in a real browser: what a newcomer sees in the first ten seconds, and where it leads."""

import re

import pytest
from browser_waiting import wait_for
from playwright.sync_api import Browser, Page, expect

TOPS = """(selector) => {
    const [first, ...others] = [...document.querySelectorAll(selector)].map((one) => one.getBoundingClientRect().top);
    return others.map((top) => top - first);
}"""  # what Streamlit lays out above the door is not the door's
SPACE = """(button) => {
    const picture = button.querySelector('span span');
    const before = document.createRange();
    before.setStart(picture.previousSibling, 0);
    before.setEnd(picture.previousSibling, 'Try your own'.length);
    return picture.getBoundingClientRect().left - before.getBoundingClientRect().right;
}"""  # pixels between the words "own" and "picture"
BELOW = "(selector) => Math.max(...[...document.querySelectorAll(selector)].map((one) => one.getBoundingClientRect().bottom))"


def newcomer(browser: Browser, url: str, *, width: int = 1280, height: int = 720) -> tuple[Page, list[str]]:
    page = browser.new_context(viewport={"width": width, "height": height}).new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(url)
    expect(page.locator(".gle-opening")).to_be_visible(timeout=120_000)
    return page, wrong


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (400, 720)])
def test_a_newcomer_guesses_sees_the_lock_open_and_goes_on(site: str, chromium: Browser, width: int, height: int) -> None:
    page, wrong = newcomer(chromium, site, width=width, height=height)
    opening = page.locator(".gle-opening")
    expect(page.get_by_role("heading", name="What will it become?")).to_be_visible()
    assert page.locator(".gle-door-server small").inner_text() == "step 20"
    first = "h1, .gle-door-scene, .gle-door .gle-option, .gle-door-actions a"
    assert page.evaluate(BELOW, first) <= height  # nothing of it needs scrolling
    before = page.evaluate(TOPS, first)
    page.wait_for_timeout(7_000)  # longer than anybody's patience: it waits
    expect(opening).to_have_attribute("data-phase", "asked")
    assert "blur" in page.locator(".gle-story").first.evaluate("(one) => getComputedStyle(one).filter")
    assert page.locator(".gle-stage .gle-run").evaluate("(one) => getComputedStyle(one).visibility") == "hidden"
    page.get_by_role("button", name="The picture on the phone").click()
    expect(page.get_by_role("heading", name="It never left the phone.")).to_be_visible()
    expect(opening).to_have_attribute("data-phase", "open")
    wait_for(page, "() => getComputedStyle(document.querySelector('.gle-story')).filter === 'none'", timeout=60_000)
    assert page.locator(".gle-stage .gle-run").evaluate("(one) => getComputedStyle(one).visibility") == "visible"
    expect(page.locator(".gle-door .gle-option").nth(1)).to_contain_text("Your guess · ✓ The answer")
    after = page.evaluate(TOPS, first)
    assert max(abs(one - other) for one, other in zip(before, after, strict=True)) < 1  # nothing jumps
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    teach = page.get_by_role("link", name="Teach with this")
    expect(teach).to_have_attribute("href", re.compile(r"/learn/worksheets/02-search-plan\.html$"))
    cards = page.locator(".gle-story")
    expect(cards).to_have_count(12)
    lefts = page.evaluate("() => [...document.querySelectorAll('.gle-story')].map((one) => one.getBoundingClientRect().left)")
    assert len(set(lefts)) == (3 if width > 900 else 1)
    cards.last.scroll_into_view_if_needed()
    loaded = "() => [...document.querySelectorAll('.gle-story img')].filter((one) => one.naturalWidth === 2 * one.naturalHeight).length"
    wait_for(page, f"{loaded.replace('() =>', '() => 12 ===')}", timeout=60_000)
    own = page.get_by_role("button", name="Try your own picture")
    assert width < 900 or own.evaluate(SPACE) >= 3  # a space is about a quarter of the letters' 16 pixels
    own.click()
    expect(page.get_by_role("region", name="Your own picture")).to_be_visible()
    page.get_by_role("link", name="Open in the Lab: Protecting one part of the gradient").click()
    expect(page.get_by_role("radio", name="Simple")).to_be_visible()
    expect(page.locator(".gle-door-line")).to_be_visible()  # a visitor who comes by a link knows the front page
    expect(page.locator(".gle-opening")).to_have_count(0)
    page.locator(".gle-door-line summary").click()
    page.get_by_role("link", name=re.compile("^Protecting one part of the gradient")).click()
    expect(page.locator(".gle-lesson")).to_have_attribute("data-place", "2")
    assert wrong == []


@pytest.mark.parametrize("goes", ["Try your own picture", "a setting"])
def test_who_goes_on_without_a_guess_sees_the_run_beside_the_settings(site: str, chromium: Browser, goes: str) -> None:
    page, wrong = newcomer(chromium, site)
    run = page.locator(".gle-stage .gle-run")
    expect(run).to_be_attached(timeout=120_000)
    expect(run).to_be_hidden()
    if goes == "Try your own picture":
        page.get_by_role("button", name=goes).click()
    else:
        page.locator(".st-key-step-1 button").first.click()
    expect(run).to_be_visible()
    expect(page.locator(".gle-opening")).to_have_attribute("data-phase", "open")
    assert wrong == []
