"""The components' scripts in a real browser: below a base path, after failures, and when a visitor leaves the page."""

import re
from urllib.parse import urlsplit

from browser_waiting import press, press_run, wait_for
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Route, expect

SOURCES = """
window.sources = [];
window.EventSource = class extends EventSource {
  constructor(address) { super(address); window.sources.push(this); }
};
"""  # the browser's own class, that also keeps what was opened
OPEN = 1  # EventSource.readyState
CLOSED = 2
SCRIPTS = re.compile("/api/scripts/")
SENTENCE = "could not be loaded. It tries again by itself"
ENDLESS = "?attack=inverting_gradients&inverting_gradients.steps=24000&inverting_gradients.starts=16&seed=3"


def opened(chromium: Browser, url: str, scripts: str = "") -> tuple[Page, list[str]]:
    """A page, and what its console tells of errors."""
    page = chromium.new_context(viewport={"width": 1440, "height": 900}).new_page()
    if scripts:
        page.add_init_script(scripts)
    wrong: list[str] = []

    def tell(message: ConsoleMessage) -> None:
        if message.type == "error":
            wrong.append(f"{message.text} {message.location['url']}")

    page.on("console", tell)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(url)
    return page, wrong


def plays(page: Page) -> None:
    wait_for(page, "() => Number(document.querySelector('.gle-stage')?.dataset.frames) >= 1", timeout=120_000)


def states(page: Page) -> list[int]:
    found: list[int] = page.evaluate("() => window.sources.map((source) => source.readyState)")
    return found


def test_everything_works_below_a_base_path(below: str, chromium: Browser) -> None:
    page, wrong = opened(chromium, f"{below}/?expert=1")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    plays(page)
    expect(page.locator(".gle-drawn")).to_have_count(1, timeout=120_000)  # Plotly has come
    expect(page.locator(".gle-pick").first).to_be_visible()
    expect(page.locator(".gle-sent svg")).to_be_visible()
    downloads = [link.get_attribute("href") or "" for link in page.locator('a[href*="/api/"]').all()]
    assert len(downloads) >= 3
    for link in downloads:
        answer = page.context.request.get(f"{origin(below)}{link}")
        assert answer.status == 200
        assert not answer.headers["content-type"].startswith("text/html"), f"{link} is answered by a page, not by our route"
    for name in ("Compare", "Training", "Architecture", "Your runs", "Lab"):
        page.get_by_role("link", name=name, exact=True).click()
        page.wait_for_url(re.compile(rf"^{re.escape(below)}/"))
        page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for(timeout=120_000)
        page.wait_for_timeout(500)
    assert [url for url in asked if not url.startswith((f"{below}/", "blob:", "data:"))] == []
    assert wrong == []


def test_links_between_pages_keep_the_base_path(below: str, chromium: Browser) -> None:
    page, wrong = opened(chromium, f"{below}/")
    plays(page)  # the plug-ins are known by then
    page.goto(f"{below}/training")
    attack = page.get_by_role("link", name="Attack it", exact=True).first
    expect(attack).to_be_visible(timeout=180_000)
    assert (attack.get_attribute("href") or "").startswith("/gle/?model=")
    assert wrong == []


def test_a_stream_is_closed_when_its_page_is_left_and_opened_when_one_comes_back(below: str, chromium: Browser) -> None:
    page, wrong = opened(chromium, f"{below}/{ENDLESS}", SOURCES)
    plays(page)
    press_run(page)
    wait_for(page, "() => document.querySelector('.gle-stage').dataset.status === 'running'", timeout=120_000)
    assert states(page).count(OPEN) == 1
    page.get_by_role("link", name="Your runs", exact=True).click()
    expect(page.get_by_role("button", name="Delete all mine")).to_be_visible(timeout=120_000)
    expect(page.locator(".gle-stage")).to_have_count(0)
    assert set(states(page)) == {CLOSED}
    with page.context.expect_page() as tab:  # Streamlit's links open one
        page.locator('a[href^="/gle/?run="]').first.click()
    again = tab.value
    plays(again)
    again.goto(f"{below}/runs")
    sure = again.get_by_role("button", name="Delete them")
    press(again.get_by_role("button", name="Delete all mine"), sure)
    sure.click()
    expect(again.get_by_text("No runs yet")).to_be_visible()
    assert wrong == []


def test_scripts_that_do_not_come_are_said_and_asked_for_again(below: str, chromium: Browser) -> None:
    context: BrowserContext = chromium.new_context(viewport={"width": 1440, "height": 900})
    broken = {"now": True}
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        if broken["now"]:
            route.abort()
        else:
            route.continue_()

    context.route(SCRIPTS, answer)
    page = context.new_page()
    page.goto(f"{below}/?expert=1")
    said = page.get_by_text(SENTENCE)
    expect(said.first).to_be_visible(timeout=120_000)
    expect(page.locator(".gle-door, .gle-stage, .gle-picker, .gle-sent")).to_have_count(4)
    for _ in range(240):
        if any("~2/" in url for url in asked):  # several attempts
            break
        page.wait_for_timeout(250)
    expect(said).to_have_count(4)  # each says it once
    broken["now"] = False
    plays(page)
    expect(page.locator(".gle-pick").first).to_be_visible(timeout=120_000)
    expect(page.locator(".gle-sent svg")).to_be_visible(timeout=120_000)
    expect(said).to_have_count(0)
    versions = {found.group(1) for url in asked if (found := re.search(r"/api/scripts/([^/]+)/", url))}
    assert len({version.split("~")[0] for version in versions}) == 1
    assert len(versions) >= 3  # every attempt in a folder of its own


def test_one_module_that_does_not_come_is_enough_to_try_again(below: str, chromium: Browser) -> None:
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    failed: list[str] = []

    def once(route: Route) -> None:
        if failed:
            route.continue_()
        else:
            failed.append(route.request.url)
            route.abort()

    context.route(re.compile(r"/live/words\.js"), once)
    page = context.new_page()
    page.goto(f"{below}/")
    plays(page)
    assert len(failed) == 1
    expect(page.get_by_text(SENTENCE)).to_have_count(0)


def origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
