"""The pictures in docs/: the lab at 1440 and 400 pixels, light and dark. Needs a running dashboard.

LEAKAGE_BROWSER=$(bash scripts/browser.sh) .venv/bin/python scripts/screenshots.py http://127.0.0.1:8501
"""

import os
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

DOCS = Path(__file__).resolve().parent.parent / "docs"
SIZES = {1440: 1180, 400: 2300}  # width: height, in pixels

with sync_playwright() as playwright:
    chromium = playwright.chromium.launch(executable_path=os.environ["LEAKAGE_BROWSER"], args=["--no-sandbox", "--disable-gpu"])
    for width, height in SIZES.items():
        for scheme in ("light", "dark"):
            context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce")
            page = context.new_page()
            page.goto(sys.argv[1])
            page.wait_for_function("() => Number(document.querySelector('.gle-stage')?.dataset.frames) > 0")
            page.locator(".gle-drawn").wait_for()
            page.wait_for_timeout(1500)
            page.screenshot(path=DOCS / f"lab-{width}-{scheme}.png")
    chromium.close()
