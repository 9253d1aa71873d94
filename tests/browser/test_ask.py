"""The question of somebody who decides: four phones, a little noise, faces of employees. Ask and Compare both answer that it leaks."""

from playwright.sync_api import Browser, expect

LIMIT = 300_000  # milliseconds: the effort of five minutes
FACES = ",".join(f"gallery:face-{number}" for number in range(4))
LEAKS = '[data-word="recognizable"], [data-word="singled out"]'


def test_four_phones_and_a_little_noise_leak_in_ask_and_in_compare(site: str, chromium: Browser) -> None:
    page = chromium.new_context(viewport={"width": 1440, "height": 1000}, reduced_motion="reduce").new_page()
    page.goto(f"{site}/ask?phones=4&protection=gaussian_noise:scale=0.01")
    page.get_by_role("button", name="Ask", exact=True).click(timeout=60_000)
    expect(page.locator(".gle-asked-word")).to_have_text("leaks", timeout=LIMIT)
    expect(page.locator(".gle-asked")).to_contain_text("of 12 pictures", ignore_case=True)
    page.get_by_role("button", name="Stop all").click()
    expect(page.get_by_text("What was not tried")).to_be_visible(timeout=60_000)
    expect(page.locator(".gle-asked-word")).to_have_text("leaks")
    page.goto(f"{site}/compare?v=1&pictures={FACES}&batch=4&phones=4&channels=1&arms=none,gaussian_noise&max_seconds=300")
    page.get_by_role("button", name="Run all").click(timeout=60_000)
    noise = page.locator(".gle-compared tbody tr", has_text="Gaussian noise 0.01")
    expect(noise.locator(LEAKS).first).to_be_visible(timeout=LIMIT)
