"""Waiting for content of a page. Playwright looks four times a second instead of at every frame, which the browser would draw."""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from playwright.sync_api import Locator, Page, TimeoutError, expect

PAUSE = 250  # milliseconds
RUN_ADDRESS = re.compile(r"[?&]run=")


def wait_for(page: Page, true: str, *, arg: Any = None, timeout: float = 60_000) -> None:
    """Wait until a JavaScript function, given `arg`, is true on the page; fail after `timeout` milliseconds."""
    page.wait_for_function(true, arg=arg, timeout=timeout, polling=PAUSE)


def uncover(page: Page) -> None:
    """Let the front page show its answer without a guess: until then it covers the recorded run below."""
    page.get_by_role("button", name="Show it without a guess").click(timeout=120_000)
    expect(page.locator(".gle-opening")).to_have_attribute("data-phase", "open")


def press(what: Locator, seen: Locator) -> None:
    """Press until something is seen."""
    press_until(what, lambda timeout: expect(seen.first).to_be_visible(timeout=timeout))


def press_run(page: Page) -> None:
    """Press Run until the run's link is in the address."""
    press_until(page.get_by_role("button", name="Run", exact=True), lambda timeout: page.wait_for_url(RUN_ADDRESS, timeout=timeout))


def choose_preset(page: Page, title: str, wait: Callable[[float], None]) -> None:
    """Choose a preset in the Lab's menu until `wait` succeeds within a number of milliseconds: a busy machine may lose a press."""
    choice = page.get_by_role("button", name=title, exact=False)
    for _ in range(3):
        press(page.get_by_role("button", name="More", exact=True), choice)
        choice.click()
        with suppress(AssertionError, TimeoutError):
            wait(60_000)
            return
    wait(60_000)


def press_until(what: Locator, wait: Callable[[float], None]) -> None:
    """Press until `wait` succeeds within a number of milliseconds.

    While a page is still being drawn, a busy machine may lose a press, and a visitor presses again.
    """
    for _ in range(4):
        what.click(timeout=120_000)
        with suppress(AssertionError, TimeoutError):
            wait(15_000)
            return
    wait(60_000)
