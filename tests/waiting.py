"""Waiting for what a page shows. The browser looks four times a second: by itself it would look at every frame, and draw that many."""

from typing import Any

from playwright.sync_api import Page

PAUSE = 250  # milliseconds


def wait_for(page: Page, true: str, *, arg: Any = None, timeout: float = 30_000) -> None:
    """Until a JavaScript function, given `arg`, is true on the page; fails after `timeout` milliseconds."""
    page.wait_for_function(true, arg=arg, timeout=timeout, polling=PAUSE)
