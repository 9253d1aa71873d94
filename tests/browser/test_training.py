"""The training of an attacker on the page Training: start, progress and stop."""

import re

from browser_waiting import press
from playwright.sync_api import Browser, expect

LONG = 300_000  # milliseconds: 1,500 pictures through the phone on a slow, busy machine
NAME = "Attacker trained to turn updates of LeNet (no protection) into pictures, on MNIST"


def test_the_button_trains_an_attacker_which_is_watched_until_it_is_stopped(school: str, chromium: Browser) -> None:
    page = chromium.new_context(viewport={"width": 1440, "height": 1000}).new_page()
    page.goto(f"{school}/training")
    page.get_by_role("button", name="Train an attacker", exact=True).click(timeout=120_000)
    page.wait_for_url(re.compile(r"[?&]run="), timeout=120_000)
    main = page.get_by_test_id("stMain")
    expect(main.get_by_role("paragraph").filter(has_text=re.compile(f"^{re.escape(NAME)}$"))).to_be_visible(timeout=120_000)
    passed = main.get_by_text(re.compile(r"^Pass \d+ of 30 through the pictures$"))
    expect(passed).to_be_visible(timeout=LONG)  # drawn anew while nobody touches the page
    expect(main.get_by_text("An attacker is being trained")).to_be_visible()
    press(main.get_by_role("button", name="Stop", exact=True), main.get_by_text("Stopped: nothing of this attacker is kept"))
    expect(main.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
