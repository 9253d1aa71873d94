"""The folder of `make site`, opened from a disk with the network blocked; and its printed pages."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_waiting import wait_for
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect
from small_problems import CATALOG

from leakage.learn.lessons import lessons
from leakage.web.site import write_site
from leakage.web.worksheets import handout_names

GROWN = """
(names) => {
  const size = (one) => parseFloat(getComputedStyle(one).fontSize);
  const before = [...document.querySelectorAll(names)].map((one) => [one, size(one)]);
  document.documentElement.style.fontSize = '200%';
  const grown = [...new Set(before.map(([one, usual]) => size(one) / usual))];
  document.documentElement.style.fontSize = '';
  return grown;
}
"""  # by how much letters grow where a browser's are twice as large


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("made") / "site"
    write_site(made, CATALOG)
    return made


class Visit:
    """A page from a disk: what it asked for beyond it, and what its console told of errors."""

    def __init__(self, context: BrowserContext) -> None:
        self.elsewhere: list[str] = []
        self.wrong: list[str] = []
        context.route("**/*", self._route)
        self.page: Page = context.new_page()
        self.page.on("console", lambda message: self.wrong.append(message.text) if message.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))

    def _route(self, route: Route) -> None:
        if route.request.url.startswith(("file:", "data:")):
            route.continue_()
        else:
            self.elsewhere.append(route.request.url)
            route.abort()


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Visit]:
    made = Visit(chromium.new_context(reduced_motion="reduce"))
    yield made
    assert made.elsewhere == []
    assert made.wrong == []


def test_a_lesson_opens_by_double_click_is_walked_to_its_end_and_presented(visit: Visit, folder: Path) -> None:
    page = visit.page
    page.goto((folder / "index.html").as_uri())
    expect(page.locator(".gle-card")).to_have_count(len(lessons()))
    page.get_by_role("link", name="Noise and what it costs").click()
    expect(page.locator(".gle-lesson")).to_have_attribute("data-place", "1")
    beats = page.locator(".gle-dot").count()
    for at in range(1, beats + 1):
        expect(page.locator(".gle-lesson")).to_have_attribute("data-place", str(at))
        if page.locator(".gle-option").count():
            page.keyboard.press("2")
        elif page.locator(".gle-screen").count():
            expect(page.locator(".gle-screen").first).to_have_attribute("data-frames", re.compile("[1-9]"))
        if page.locator(".gle-whatif").count():
            expect(page.locator(".gle-whatif .gle-foot a").first).to_have_text("Open in the Lab (needs the program: two commands)")
        if at < beats:
            page.keyboard.press("ArrowRight")
    expect(page.locator(".gle-lesson")).to_have_attribute("data-kind", "takeaway")
    page.keyboard.press("f")
    with page.context.expect_page() as opening:
        page.keyboard.press("s")
    speaker = opening.value
    expect(speaker.locator("h1")).to_have_text(f"Noise and what it costs, {beats} of {beats}")
    speaker.keyboard.press("PageUp")  # its keys are heard by the page
    expect(page.locator(".gle-lesson")).to_have_attribute("data-place", str(beats - 1))
    page.reload()
    expect(page.locator("html.gle-presenting")).to_have_count(1)
    with page.context.expect_page() as opening:  # the earlier window belongs to a page that is gone
        page.keyboard.press("s")
    expect(opening.value.locator("h1")).to_have_text(f"Noise and what it costs, {beats - 1} of {beats}")
    assert len(page.context.pages) == 2
    page.goto((folder / "program.html").as_uri() + "?v=1&seed=3")
    expect(page.locator("a.lab")).to_have_attribute("href", "http://127.0.0.1:8501/?v=1&seed=3")


def test_it_begins_with_the_front_door_which_asks_plays_on_and_leads_into_a_lesson(chromium: Browser, folder: Path) -> None:
    visit = Visit(chromium.new_context(viewport={"width": 400, "height": 720}))
    page = visit.page
    page.goto((folder / "index.html").as_uri())
    expect(page.get_by_role("heading", name="What will it become?")).to_be_visible()
    page.get_by_role("button", name="The picture on the phone").click()
    expect(page.get_by_role("heading", name="It never left the phone.")).to_be_visible()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 400
    expect(page.locator("h1")).to_have_count(1)
    assert page.evaluate(GROWN, ".gle-door h1, .gle-door .gle-option, .gle-door-foot, .gle-door-teach, .gle-story strong") == [2]
    page.locator(".gle-story").last.scroll_into_view_if_needed()
    pair = "(one) => one.naturalHeight && one.naturalWidth === 2 * one.naturalHeight"
    wait_for(page, f"() => 12 === [...document.querySelectorAll('.gle-story img')].filter({pair}).length", timeout=60_000)
    expect(page.get_by_role("button", name="Try your own picture")).to_be_visible()
    lab = page.get_by_role("link", name="Open in the Lab: Protecting one part of the gradient (needs the program: two commands)")
    lab.click()
    leads = page.get_by_role("link", name="Open the Lab with the settings")
    expect(leads).to_have_attribute("href", re.compile(r"8501/\?v=1.*soteria"))
    page.go_back()
    page.get_by_role("link", name=re.compile("^Protecting one part of the gradient")).click()
    expect(page.locator(".gle-lesson[data-lesson='08-only-the-naive']")).to_have_attribute("data-place", "2")
    page.get_by_role("link", name="Learn", exact=True).click()
    expect(page.locator(".gle-card")).to_have_count(len(lessons()))
    expect(page.locator(".gle-opening")).to_have_count(0)  # a reader who has begun a lesson sees one line instead
    expect(page.locator(".gle-door-line")).to_be_visible()
    assert (visit.elsewhere, visit.wrong) == ([], [])


def test_every_page_to_print_is_one_sheet_and_leads_back_to_its_lesson(visit: Visit, folder: Path) -> None:
    page = visit.page
    sheets = {}
    for name in handout_names():
        page.goto((folder / "worksheets" / f"{name}.html").as_uri())
        sheets[name] = len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True, print_background=True)))
    assert sheets == dict.fromkeys(handout_names(), 1)
    page.set_viewport_size({"width": 400, "height": 720})
    for name in ("07-noise", "07-noise-solution", "index"):
        page.goto((folder / "worksheets" / f"{name}.html").as_uri())
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 400
    page.get_by_role("link", name="Noise and what it costs").click()
    expect(page.locator(".gle-lesson[data-lesson='07-noise']")).to_have_count(1)
