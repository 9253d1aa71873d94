"""The pictures in docs/: the lab at 1440 and 400 pixels, light and dark, and any run that is named. Needs a running dashboard.

LEAKAGE_BROWSER=$(bash scripts/browser.sh) .venv/bin/python scripts/screenshots.py http://127.0.0.1:8501 [NAME=RUN ...]
"""

import os
import sys
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, sync_playwright

DOCS = Path(__file__).resolve().parent.parent / "docs"
SIZES = {1440: 1180, 400: 2400}  # width: height, in pixels


def shoot(chromium: Browser, address: str, name: str, width: int, scheme: Literal["light", "dark"]) -> None:
    """One page as soon as its pictures and curves stand still."""
    context = chromium.new_context(viewport={"width": width, "height": SIZES[width]}, color_scheme=scheme, reduced_motion="reduce")
    page = context.new_page()
    page.goto(address)
    page.wait_for_function("() => Number(document.querySelector('.gle-stage')?.dataset.frames) > 0")
    page.locator(".gle-drawn").wait_for()
    page.wait_for_timeout(3000)
    page.screenshot(path=DOCS / f"{name}.png")
    context.close()


with sync_playwright() as playwright:
    chromium = playwright.chromium.launch(executable_path=os.environ["LEAKAGE_BROWSER"], args=["--no-sandbox", "--disable-gpu"])
    address, *named = sys.argv[1:]
    for width in SIZES:
        for scheme in ("light", "dark"):
            shoot(chromium, address, f"lab-{width}-{scheme}", width, scheme)
    for name, _, run in (pair.partition("=") for pair in named):
        shoot(chromium, f"{address}/?run={run}", name, 1440, "light")
    chromium.close()
