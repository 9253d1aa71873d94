"""Four protections side by side: live pictures, one scrubber for all, a table, and a report that opens without a network."""

import re
from pathlib import Path

from browser_waiting import wait_for
from playwright.sync_api import Browser, Page, expect

from leakage.spec.words import NOT_SHOWN, PARTLY, RECOGNIZABLE, SINGLED_OUT

LONG = 300_000  # milliseconds: seven short runs on a slow, busy machine
ARMS = ["No protection", "Gaussian noise 0.01", "Pruning 0.9", "AdaDefense"]
SHORT = "v=1&voices=both&attack=inverting_gradients&inverting_gradients.steps=300"
PICTURES = "() => [...document.querySelectorAll('.gle-run .gle-guess canvas')].map((one) => one.toDataURL())"


def pictures(page: Page) -> list[str]:
    found: list[str] = page.evaluate(PICTURES)
    return found


def test_a_teacher_compares_four_protections_and_takes_the_report_home(site: str, chromium: Browser, tmp_path: Path) -> None:
    context = chromium.new_context(viewport={"width": 1440, "height": 1000}, accept_downloads=True, reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"{site}/compare?{SHORT}")
    page.get_by_role("button", name="Run all").click(timeout=120_000)
    page.wait_for_url(re.compile(r"[?&]runs="), timeout=120_000)
    expect(page.locator(".gle-run")).to_have_count(4, timeout=120_000)
    expect(page.locator(".gle-run .gle-title")).to_have_text(ARMS)
    wait_for(page, "() => [...document.querySelectorAll('.gle-run')].some((one) => one.dataset.status === 'running')", timeout=LONG)
    early = dict(enumerate(pictures(page)))
    for run in page.locator(".gle-run").all():
        expect(run).to_have_attribute("data-status", "done", timeout=LONG)
    wait_for(page, f"(before) => ({PICTURES})().every((one, place) => one !== before[place])", arg=list(early.values()), timeout=120_000)
    expect(page.locator(".gle-compared tbody .gle-said")).to_have_count(7, timeout=LONG)  # no protection needs one run for both attackers
    assert page.locator(".gle-compared tbody tr").count() == 1 + len(ARMS)

    answers = pictures(page)
    verdicts = page.locator(".gle-run .gle-verdict")
    found = [one.get_attribute("data-word") for one in verdicts.all()]
    assert found[0] in (RECOGNIZABLE, SINGLED_OUT, PARTLY)
    page.locator(".gle-together .gle-slider").focus()
    page.keyboard.press("Home")
    wait_for(page, f"(before) => ({PICTURES})().every((one, place) => one !== before[place])", arg=answers, timeout=60_000)
    for one in verdicts.all():
        expect(one).to_have_attribute("data-word", NOT_SHOWN)  # at the first step: that of what is seen, not that of the end
    page.keyboard.press("End")
    wait_for(page, f"(before) => ({PICTURES})().every((one, place) => one === before[place])", arg=answers, timeout=60_000)
    assert [one.get_attribute("data-word") for one in verdicts.all()] == found

    with page.expect_download(timeout=120_000) as download:
        page.get_by_role("link", name="Report (HTML)").click()
    report = tmp_path / "report.html"
    download.value.save_as(report)
    offline = chromium.new_context(offline=True)
    asked: list[str] = []
    alone = offline.new_page()
    alone.on("request", lambda request: asked.append(request.url))
    alone.goto(report.as_uri())
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    broken = "() => [...document.images].filter((one) => !one.complete || !one.naturalWidth).length"
    assert alone.locator("img").count() >= 1 + len(ARMS)
    assert alone.evaluate(broken) == 0
    expect(alone.locator("svg").first).to_be_visible()
    for arm in ARMS:
        expect(alone.get_by_text(arm, exact=False).first).to_be_visible()
    expect(alone.get_by_role("heading", name="What this does not prove")).to_be_visible()
