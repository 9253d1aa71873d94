"""Film a picture of the gallery coming back at the front door as docs/own-picture.gif, from a running dashboard.

LEAKAGE_BROWSER=$(bash scripts/browser.sh) .venv/bin/python scripts/own_picture_film.py http://127.0.0.1:8501
"""

import os
import sys
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright
from skimage import data

FILE = Path(__file__).resolve().parent.parent / "docs" / "own-picture.gif"
WIDTH = 640  # pixels of the film
BETWEEN, LAST = 120, 3000  # milliseconds of a frame, and of the last one


def choose_own_picture(page: Page) -> None:
    """Open the place for the visitor's own picture, and choose a picture of the gallery there."""
    page.get_by_role("button", name="Try your own picture").click(timeout=60_000)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "picture.png"
        Image.fromarray(data.rocket()).save(file)  # an object: no person has to be asked
        page.locator(".gle-own-picture input[type=file]").set_input_files(file)
        page.locator(".gle-own-preview canvas").wait_for()


def film(base: str) -> None:
    """Attack the picture, and write what the page shows meanwhile."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=os.environ["LEAKAGE_BROWSER"], args=["--no-sandbox", "--disable-gpu"])
        page = chromium.new_page(viewport={"width": 860, "height": 900}, reduced_motion="no-preference", color_scheme="light")
        page.goto(base)
        choose_own_picture(page)
        page.locator(".gle-own-start").click()
        run, frames = page.locator(".gle-own-run"), list[Image.Image]()
        run.wait_for()
        while True:
            over = run.get_attribute("data-over") is not None
            with Image.open(BytesIO(run.screenshot())) as taken:
                frames.append(taken.convert("RGB").resize((WIDTH, round(taken.height * WIDTH / taken.width))))
            if over:
                break
        chromium.close()
    tallest = max(frame.height for frame in frames)
    first, *others = [page_of(frame, tallest).quantize(64) for frame in frames]
    times = [BETWEEN] * len(others) + [LAST]
    first.save(FILE, save_all=True, append_images=others, duration=times, loop=0, optimize=True)


def page_of(frame: Image.Image, height: int) -> Image.Image:
    """Return a frame on white paper of this height."""
    paper = Image.new("RGB", (frame.width, height), "white")
    paper.paste(frame)
    return paper


if __name__ == "__main__":
    film(sys.argv[1])
