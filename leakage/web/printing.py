"""HTML pages printed to PDF files by Chromium."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

BROWSERS = ("google-chrome", "google-chrome-stable", "chromium", "chromium-browser")
NEEDED = (
    "The site is written, but without PDF files: these need Chrome or Chromium, and Playwright from requirements-dev.txt ({0}). "
    "Any browser can print the worksheets as they are."
)


def print_all(files: Sequence[Path]) -> list[Path]:
    """Write a PDF beside each HTML file, and return the paths of the PDFs. Raises RuntimeError without Chromium or Playwright."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        raise RuntimeError(NEEDED.format(error)) from None
    path = os.environ.get("LEAKAGE_BROWSER") or next((executable for name in BROWSERS if (executable := shutil.which(name))), None)
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
