"""WCAG 2.2 AA: axe on every kind of page of the reader and on our parts of other pages, and tests of what axe does not see."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_checks import COLOURS, HALL, LEVELS, SIZES, check, violations
from browser_waiting import wait_for
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from leakage.data.images import read

WALL = (1920, 1080)
THEMED = """
(scheme) => getComputedStyle(document.querySelector('.stApp')).colorScheme === scheme
  && (document.querySelector('.gle-stage')?.dataset.dark ?? String(scheme === 'dark')) === String(scheme === 'dark')
"""
FOCUSED = """
() => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const shown = one.closest('.gle-value') ?? one;
  const box = shown.getBoundingClientRect();
  const bar = document.querySelector('.gle-bar');
  const hidden = !bar.contains(one) && box.bottom > bar.getBoundingClientRect().top + 1 && box.height < innerHeight / 2;
  return { name: `${one.tagName} ${one.className}`, ring: getComputedStyle(shown).outlineStyle !== 'none', hidden };
}
"""


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page without motion, as the looks of a test need it to stand still."""
    context = chromium.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    yield context.new_page()
    context.close()


def go(page: Page, address: str) -> None:
    page.goto(address)
    lesson = address.split("#")[1].split("/")[0]
    expect(page.locator(f"[data-lesson='{lesson}'] .gle-words")).to_be_visible()


def test_every_kind_and_phase_of_a_lesson_passes_axe(site: str, page: Page) -> None:
    page.goto(f"{site}/learn")
    expect(page.locator(".gle-card").first).to_be_visible()
    check(page, "index")
    met = set()
    go(page, f"{site}/learn#01-gradient/1")
    for at in range(1, page.locator(".gle-dot").count() + 1):
        expect(page.locator(".gle-lesson")).to_have_attribute("data-place", str(at))
        kind = page.locator(".gle-lesson").get_attribute("data-kind")
        met.add(kind)
        for folded in page.locator("summary:visible").all():
            folded.click()
        check(page, f"{at}: {kind}")
        if kind == "guess":
            page.keyboard.press("ArrowRight")
            expect(page.locator(".gle-hint")).not_to_be_empty()
            page.keyboard.press("1")
            check(page, "chosen")
            page.keyboard.press("ArrowRight")
            page.keyboard.press("ArrowLeft")
            expect(page.locator(".gle-why").first).to_be_visible()
            check(page, "seen")
        page.keyboard.press("ArrowRight")
    assert met == {"text", "play", "guess", "reveal", "try", "figure", "takeaway"}
    for address in ("08-only-the-naive/2", "09-solve/2"):  # two runs; one that climbs from layer to layer
        go(page, f"{site}/learn#{address}")
        check(page, address)


def test_the_visitors_own_picture_passes_axe_and_is_reached_by_keyboard(site: str, page: Page, tmp_path: Path) -> None:
    file = tmp_path / "own.png"
    Image.fromarray(read("gallery", "chelsea", 64, 3)).save(file)
    go(page, f"{site}/learn#02-search/1")
    while page.locator(".gle-lesson").get_attribute("data-kind") != "try":
        if page.locator(".gle-option").count():
            page.keyboard.press("2")
        page.keyboard.press("ArrowRight")
    page.get_by_role("button", name="Compute it here, with your own picture").press("Enter")
    expect(page.locator(".gle-own-picture input[type=file]")).to_be_focused()
    check(page, "before a picture is chosen", (*SIZES, WALL))
    page.locator(".gle-own-picture input[type=file]").set_input_files(file)
    page.get_by_role("button", name="Attack it").press("Enter")
    expect(page.locator(".gle-own-run")).to_have_attribute("data-over", "true", timeout=120_000)
    page.get_by_label("Protection", exact=True).select_option("noise")
    page.locator(".gle-own-picture summary").press("Enter")
    expect(page.get_by_label("Network", exact=True)).to_be_visible()
    expect(page.locator(".gle-own-old")).to_have_text("Made with the settings before")
    check(page, "after an attack, all settings open", (*SIZES, WALL))
    page.get_by_label("Protection", exact=True).select_option("none")
    check(page, "what cannot be chosen", (*SIZES, WALL))


def test_the_visitors_own_picture_passes_axe_in_front_of_a_hall(site: str, page: Page, tmp_path: Path) -> None:
    file = tmp_path / "own.png"
    Image.fromarray(read("gallery", "chelsea", 64, 3)).save(file)
    page.set_viewport_size({"width": WALL[0], "height": WALL[1]})
    go(page, f"{site}/learn#02-search/1?present")
    while page.locator(".gle-lesson").get_attribute("data-kind") != "try":
        for key in ("Shift+Digit1", "r") if page.locator(".gle-option").count() else ():
            page.keyboard.press(key)
        page.keyboard.press("PageDown")
    page.get_by_role("button", name="Compute it here, with your own picture").click()
    page.locator(".gle-own-picture input[type=file]").set_input_files(file)
    page.get_by_role("button", name="Attack it").click()
    expect(page.locator(".gle-own-run")).to_have_attribute("data-over", "true", timeout=120_000)
    expect(page.locator("html.gle-presenting")).to_have_count(1)
    check(page, "in front of a hall", (WALL,))


def test_pages_to_print_pass_axe(site: str, page: Page) -> None:
    for name in ("index", "02-search", "02-search-solution"):
        page.goto(f"{site}/learn/worksheets/{name}.html")
        check(page, name, HALL)


def test_in_front_of_a_hall_too_with_hands_dialogs_and_the_speaker(site: str, page: Page) -> None:
    go(page, f"{site}/learn#01-gradient/1?present")
    for at in range(1, page.locator(".gle-dot").count() + 1):
        expect(page.locator(".gle-lesson")).to_have_attribute("data-place", str(at))
        check(page, str(at), HALL)
        if page.locator(".gle-option").count():
            for key in ("Shift+Digit1", "v", "Shift+Digit2"):
                page.keyboard.press(key)
            check(page, "second vote", HALL)
            page.keyboard.press("r")
            check(page, "votes", HALL)
            with page.context.expect_page() as opening:
                page.keyboard.press("s")
            assert violations(opening.value, LEVELS) == []
            page.bring_to_front()
        page.keyboard.press("PageDown")
    go(page, f"{site}/learn#01-gradient/1?present")
    for key in ("?", "g", "q"):
        page.keyboard.press(key)
        expect(page.locator(".gle-panel")).to_be_visible()
        check(page, f"dialog {key}", HALL)
        page.keyboard.press("Escape")
    expect(page.locator("html.gle-presenting")).to_have_count(1)


def test_our_parts_of_lab_compare_and_ask_pass_axe(site: str, page: Page) -> None:
    for address, runs, last in (("/", 1, ".gle-table"), ("/compare", 4, ".gle-compared"), ("/ask", 0, ".gle-row")):
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 1280, "height": 720})
        page.goto(f"{site}{address}")
        expect(page.locator(last).first).to_be_visible(timeout=120_000)
        expect(page.locator('.gle-run[data-status="done"]')).to_have_count(runs, timeout=120_000)
        for scheme, rules in (("light", LEVELS), ("dark", COLOURS)):
            page.emulate_media(color_scheme=scheme)
            wait_for(page, THEMED, arg=scheme)
            for width, height in SIZES:
                page.set_viewport_size({"width": width, "height": height})
                assert violations(page, rules, ours=True) == [], f"{address}, {width} px, {scheme}"
            page.set_viewport_size({"width": 1280, "height": 720})
            if runs:
                page.keyboard.press("f")
                expect(page.locator("html.gle-projecting")).to_have_count(1)
                assert violations(page, rules, ours=True) == [], f"{address}, projector view, {scheme}"
                page.keyboard.press("f")


def test_a_lesson_by_tab_and_enter_the_focus_is_seen_and_nothing_covers_it(site: str, page: Page) -> None:
    page.set_viewport_size({"width": 400, "height": 640})
    go(page, f"{site}/learn#01-gradient/1")
    count = page.locator(".gle-dot").count()
    for at in range(1, count + 1):
        expect(page.locator(".gle-lesson")).to_have_attribute("data-place", str(at))
        page.evaluate("() => document.getElementById('main').focus()")
        met = []
        for _ in range(80):
            page.keyboard.press("Tab")
            found = page.evaluate(FOCUSED)
            met.append(found)
            assert found, f"beat {at}: the focus left the page before the button that goes on"
            assert found["ring"], f"beat {at}: {found['name']} does not show the focus"
            assert not found["hidden"], f"beat {at}: {found['name']} lies below the bar"
            if "gle-option" in found["name"]:
                page.keyboard.press("Enter")
            if "gle-next" in found["name"]:
                break
        assert "gle-next" in met[-1]["name"]
        if at < count:
            page.keyboard.press("Enter")


def test_at_400_per_cent_nothing_scrolls_sideways(site: str, page: Page) -> None:
    wide = "() => Math.max(...[document.documentElement, ...document.querySelectorAll('dialog[open]')].map((one) => one.scrollWidth))"
    page.set_viewport_size({"width": 320, "height": 256})  # of 1280 by 1024
    page.goto(f"{site}/learn")
    expect(page.locator(".gle-card").first).to_be_visible()
    assert page.evaluate(wide) <= 320
    for lesson in ("01-gradient", "08-only-the-naive", "09-solve"):
        go(page, f"{site}/learn#{lesson}/1")
        for at in range(1, page.locator(".gle-dot").count() + 1):
            expect(page.locator(".gle-lesson")).to_have_attribute("data-place", str(at))
            assert page.evaluate(wide) <= 320, f"{lesson}, {at}"
            page.keyboard.press("1")  # where there is a question
            page.keyboard.press("ArrowRight")
    go(page, f"{site}/learn#01-gradient/1")
    page.keyboard.press("?")
    expect(page.locator(".gle-panel")).to_be_visible()
    assert page.evaluate(wide) <= 320


def test_letters_twice_as_large_make_every_word_larger_and_nothing_scrolls_sideways(site: str, page: Page) -> None:
    stayed = """
    () => {
      const written = [...document.querySelectorAll('.gle-reader *')]
        .filter((one) => one.checkVisibility() && !one.closest('svg'))
        .filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
      const sizes = () => written.map((one) => parseFloat(getComputedStyle(one).fontSize));
      const usual = sizes();
      document.documentElement.style.fontSize = '200%';
      return sizes().flatMap((size, place) => size === 2 * usual[place] ? [] : [`${written[place].tagName} ${written[place].className}`]);
    }
    """
    for address in ("", "#01-gradient/1", "#08-only-the-naive/1"):
        page.goto("about:blank")
        page.goto(f"{site}/learn{address}")
        expect(page.locator(".gle-card, .gle-words").first).to_be_visible()
        for at in range(max(1, page.locator(".gle-dot").count())):
            assert page.evaluate(stayed) == [], f"{address}, {at}"
            assert page.evaluate("() => document.documentElement.scrollWidth") <= 1280, f"{address}, {at}"
            page.evaluate("() => { document.documentElement.style.fontSize = '' }")
            page.keyboard.press("1")  # where there is a question
            page.keyboard.press("ArrowRight")
