"""Take the pictures of a class in docs/ again, from a dashboard that was started by `make class HEADLESS=1`.

LEAKAGE_BROWSER=$(bash scripts/browser.sh) .venv/bin/python scripts/room_pictures.py http://127.0.0.1:8501

A browser is the hall, a second one a phone; forty more phones are requests of this script.
"""

import json
import os
import re
import sys
import urllib.request
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page, sync_playwright

DOCS = Path(__file__).resolve().parent.parent / "docs"
COLORS = 256  # of a picture in docs/, so that it stays small
PHONES = 40
QUESTION, TRY = 3, 5  # beats of the lesson
LESSON = "/learn#02-search/1"
WAIT = 1500  # milliseconds until a change has reached all pages


def take(page: Page, name: str) -> None:
    """Take the picture of a page."""
    page.wait_for_timeout(WAIT)
    picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(COLORS).save(DOCS / f"{name}.png", optimize=True)


def say(room: str, number: int, **more: Any) -> None:
    """Send what the student `number` says to a room."""
    body = json.dumps({"slot": f"{number:024x}", **more}).encode()
    origin = room.split("/api/")[0]
    urllib.request.urlopen(urllib.request.Request(f"{room}/me", body, {"Origin": origin}, method="PUT"), timeout=20).close()


def main(base: str) -> None:
    """Open a room, let it vote twice and try, and take the pictures."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["LEAKAGE_BROWSER"], args=["--no-sandbox"])
        hall = browser.new_page(viewport={"width": 1280, "height": 720})
        hall.goto(base + LESSON)
        hall.get_by_role("button", name="Open a room").click()
        take(hall, "room-dialog-1280")
        found = re.search(r"Room (\w{5})", hall.locator("dialog").inner_text())
        assert found
        room = f"{base}/api/class/{found[1]}"
        student = browser.new_context(viewport={"width": 400, "height": 800}, color_scheme="dark").new_page()
        student.goto(f"{base}/j/{found[1]}")
        for number in range(PHONES):
            say(room, number)
        hall.keyboard.press("Escape")
        hall.keyboard.press("f")
        for _ in range(QUESTION - 1):
            hall.keyboard.press("ArrowRight")
            hall.wait_for_timeout(WAIT)
        for number in range(PHONES):
            say(room, number, beat=QUESTION, option=(0, 1, 1, 2)[number % 4])
        student.locator(".gle-option").nth(1).click()
        take(hall, "room-guess-1280")
        take(student, "room-phone-guess-400")
        hall.keyboard.press("r")
        take(hall, "room-answer-1280")
        for _ in range(TRY - QUESTION):
            hall.keyboard.press("ArrowRight")
            hall.wait_for_timeout(WAIT)
        for number in range(PHONES):
            say(room, number, beat=TRY, cell=7 * number % 15)
        take(hall, "room-plot-1280")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
