"""The pages to print as PDF files, made by Chromium."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

BROWSERS = ("google-chrome", "google-chrome-stable", "chromium", "chromium-browser")
NEEDED = (
    "The site is written, without PDFs: they need Chrome or Chromium, and Playwright from requirements-dev.txt ({0}). "
    "Any browser prints the worksheets as they are."
)


def print_all(files: Sequence[Path]) -> list[Path]:
    """Put a PDF beside each of these HTML files; where they are. Raises RuntimeError where there is no Chromium, or no Playwright."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        raise RuntimeError(NEEDED.format(error)) from None
    path = os.environ.get("LEAKAGE_BROWSER") or next((found for name in BROWSERS if (found := shutil.which(name))), None)
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, channel=None if path else "chrome", args=["--no-sandbox"])
        except Error as error:
            raise RuntimeError(NEEDED.format(str(error).splitlines()[0])) from None
        page = browser.new_page()
        for file in files:
            page.goto(file.resolve().as_uri())
            page.pdf(path=file.with_suffix(".pdf"), prefer_css_page_size=True, print_background=True)
        browser.close()
    return [file.with_suffix(".pdf") for file in files]
