"""The page Ask in a real browser: for four phones and a little noise, Ask and Compare both say that it leaks."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

LIMIT = 300_000  # milliseconds: the effort of five minutes
FACES = ",".join(f"gallery:face-{number}" for number in range(4))
LEAKS = '[data-word="recognizable"], [data-word="singled out"]'


def asked(chromium: Browser, address: str, pictures: str) -> Page:
    """Ask, wait until the answer is that it leaks, stop the other attacks: the answer stays, and what was not tried is told."""
    page = chromium.new_context(viewport={"width": 1440, "height": 1000}, reduced_motion="reduce").new_page()
    page.goto(address)
    page.get_by_role("button", name="Ask", exact=True).click(timeout=120_000)
    expect(page.locator(".gle-asked-word")).to_have_text("leaks", timeout=LIMIT)
    expect(page.locator(".gle-asked")).to_contain_text(re.compile(f"of {pictures}", re.IGNORECASE))
    page.get_by_role("button", name="Stop all").click()
    expect(page.get_by_text("What was not tried")).to_be_visible(timeout=120_000)
    expect(page.locator(".gle-asked-word")).to_have_text("leaks")
    return page


def test_one_phone_without_protection_leaks_and_the_other_attacks_are_stopped(site: str, chromium: Browser) -> None:
    asked(chromium, f"{site}/ask?minutes=5", r"\d+ picture")


@pytest.mark.slow
def test_four_phones_and_a_little_noise_leak_in_ask_and_in_compare(site: str, chromium: Browser) -> None:
    page = asked(chromium, f"{site}/ask?phones=4&protection=gaussian_noise:scale=0.01", "12 pictures")
    page.goto(f"{site}/compare?v=1&pictures={FACES}&batch=4&phones=4&channels=1&arms=none,gaussian_noise&max_seconds=300")
    page.get_by_role("button", name="Run all").click(timeout=120_000)
    noise = page.locator(".gle-compared tbody tr", has_text="Gaussian noise 0.01")
    expect(noise.locator(LEAKS).first).to_be_visible(timeout=LIMIT)


def test_a_sum_over_four_phones_leaks_to_a_server_that_changes_the_model(site: str, chromium: Browser) -> None:
    page = asked(chromium, f"{site}/ask?phones=4&attacker=changes&minutes=5", r"\d+ pictures")
    expect(page.get_by_text(re.compile("by a server that changes the model"))).to_be_visible()
    expect(page.get_by_text("A server that changes the model in another way than those tried")).to_be_visible()
