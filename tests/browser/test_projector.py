"""The projector view of Lab and Compare: one, two, four and eight runs, readable from the last row."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

HEIGHT, WIDTH = 720, 1280
SMALLEST = """
() => Math.min(...[...document.querySelectorAll('.gle-stage *')]
  .filter((one) => one.checkVisibility() && [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()))
  .map((one) => parseFloat(getComputedStyle(one).fontSize)))
"""
BESIDE = """
() => [document.documentElement, ...document.querySelectorAll('.stMain, .gle-stage, .gle-stage *')]
  .filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > innerWidth + 1)
  .map((one) => `${one.tagName} ${one.className}`)
"""
COVERED = """
() => {
  const bar = document.querySelector('.gle-beside .gle-told')?.getBoundingClientRect().bottom ?? 0;
  const shown = [...document.querySelectorAll('.gle-beside canvas')].filter((one) => one.checkVisibility());
  const widths = shown.map((one) => Math.round(one.getBoundingClientRect().width));
  const tops = [...document.querySelectorAll('.gle-beside :is(.gle-title, .gle-own h4)')].map((one) => one.getBoundingClientRect().top);
  return tops.filter((top) => top < bar).length + new Set(widths).size - (widths.length ? 1 : 0);
}
"""  # titles below the play head, and pictures of other sizes than the private one
LOWEST_WORD = "() => Math.max(...[...document.querySelectorAll('.gle-badge')].map((one) => one.getBoundingClientRect().bottom))"
ARMS = "none,gaussian_noise,laplacian_noise,low_precision,pruning,clipping,ada_defense,minmax_sampling"
EIGHT = f"/compare?v=1&voices=naive&attack=inverting_gradients&inverting_gradients.steps=20&arms={ARMS}"


def looked_at(page: Page, runs: int) -> None:
    """The view on and off again, by key and by button."""
    settings = page.get_by_role("button", name=re.compile("^Run( all)?$"))
    expect(page.locator(".gle-run")).to_have_count(runs, timeout=120_000)
    expect(settings).to_be_visible(timeout=120_000)
    page.keyboard.press("f")
    expect(page.locator("html.gle-projecting")).to_have_count(1)
    expect(settings).to_be_hidden()
    expect(page.get_by_role("link", name="Learn")).to_be_hidden()
    assert page.evaluate(SMALLEST) >= 22
    assert page.evaluate(BESIDE) == []
    assert page.evaluate(LOWEST_WORD) <= HEIGHT
    assert page.evaluate(COVERED) == 0
    page.keyboard.press("Escape")
    expect(settings).to_be_visible()
    page.locator(".gle-project:visible").first.click()
    expect(settings).to_be_hidden()
    page.locator(".gle-project:visible").first.click()
    expect(settings).to_be_visible()
    expect(page.locator("html.gle-projecting")).to_have_count(0)


@pytest.mark.parametrize(("address", "runs"), [("/?run=r02", 1), ("/?run=r19,r20", 2), ("/compare", 4)])
def test_a_hall_reads_pictures_verdict_and_numbers(site: str, chromium: Browser, address: str, runs: int) -> None:
    page = chromium.new_context(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce").new_page()
    page.goto(f"{site}{address}")
    expect(page.locator('.gle-run[data-status="done"]:not([data-psnr=""])')).to_have_count(runs, timeout=120_000)
    assert page.evaluate(LOWEST_WORD) <= HEIGHT
    looked_at(page, runs)


def test_eight_arms_fit_too(site: str, chromium: Browser) -> None:
    page = chromium.new_context(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce").new_page()
    page.goto(f"{site}{EIGHT}")
    page.get_by_role("button", name="Run all").click(timeout=120_000)
    page.wait_for_url(re.compile(r"[?&]runs="), timeout=120_000)
    looked_at(page, 8)
