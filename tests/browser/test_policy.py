"""The content security policy in a real browser blocks foreign content and none of ours; and the login page."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from browser_waiting import wait_for
from home_fixtures import furnished
from home_processes import Place, Server, place
from playwright.sync_api import Browser, Page, expect

NOTED = """
window.refused = [];
document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sourceFile }) =>
  window.refused.push(`${violatedDirective} ${blockedURI} ${sourceFile}`));
"""
ADDED = """
() => {
  const own = document.createElement('script');
  own.textContent = 'window.ran = true';
  document.head.append(own);
  const foreign = new Image();
  foreign.src = 'https://evil.example.org/x.png';
}
"""
TITLE = ":is(h1, h2, h3, h4):visible"
PAGES = {  # with what each draws last
    "/?expert=1": ".gle-stage canvas",
    "/compare?v=1": ".gle-stage canvas",
    "/training": TITLE,
    "/audit": TITLE,
    "/architecture": ".js-plotly-plot .main-svg",
    "/ask": TITLE,
    "/runs": TITLE,
    "/learn": "main h1",
    "/learn#02-search/2": "main h1",
    "/learn/worksheets/index.html": "h1",
    "/learn/worksheets/01-gradient.html": "h1",
}
AXE = "async () => (await axe.run(document, { resultTypes: ['violations'] })).violations.map(({ id }) => id)"
PASSWORD = "seven blue cups"


@pytest.fixture
def watched(chromium: Browser) -> Iterator[Page]:
    """A page that notes what its policy refuses."""
    page = chromium.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.add_init_script(NOTED)
    yield page
    page.context.close()


def refused(page: Page) -> list[str]:
    found: list[str] = page.evaluate("() => window.refused")
    return found


# ---------------------------------------------------------------- the policy


def test_no_page_asks_for_what_its_policy_refuses_or_for_what_is_not_there(site: str, watched: Page) -> None:
    found, missing = {}, list[str]()
    watched.on("response", lambda answer: missing.append(answer.url) if answer.status >= 400 else None)
    for path, last in PAGES.items():
        watched.goto("about:blank")  # an address that differs after its # alone opens no page anew
        watched.goto(site + path)
        expect(watched.locator(last).first).to_be_visible()
        watched.wait_for_timeout(1000)
        found[path] = refused(watched)
    assert found == {path: [] for path in PAGES}
    assert missing == []  # before: two of Streamlit's questions for each page below the root


def test_the_chart_of_a_page_without_a_live_stream_is_drawn_too(site: str, watched: Page) -> None:
    watched.route("**/api/runs/stream*", lambda route: route.abort())
    watched.goto(site)
    expect(watched.locator("[data-testid=stVegaLiteChart] :is(canvas, svg)").first).to_be_visible()
    assert refused(watched) == []


def test_a_script_that_somebody_put_into_a_page_is_not_run_and_sends_nothing_away(site: str, watched: Page) -> None:
    watched.goto(f"{site}/runs")
    expect(watched.locator(TITLE).first).to_be_visible()
    watched.evaluate(ADDED)
    wait_for(watched, "() => window.refused.length >= 2")
    assert {words.split()[0] for words in refused(watched)} == {"script-src-elem", "img-src"}
    assert watched.evaluate("() => window.ran") is None


def test_a_page_from_another_port_can_neither_frame_this_one_nor_open_its_websocket(site: str, chromium: Browser, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(f"<iframe src='{site}/runs'></iframe>")
    with HTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(tmp_path))) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        context = chromium.new_context()
        context.request.get(site)  # the visitor has been here: their cookie goes with what follows
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{other.server_port}/")
        for _ in range(240):
            if "chrome-error:" in page.frames[1].url:
                break
            page.wait_for_timeout(250)
        assert "chrome-error:" in page.frames[1].url
        opens = (
            "(address) => new Promise((end) => { const one = new WebSocket(address); one.onopen = one.onerror = ({ type }) => end(type); })"
        )
        address = site.replace("http", "ws") + "/_stcore/stream"
        assert page.evaluate(opens, address) == "error"
        page.goto(f"{site}/_stcore/health")
        assert page.evaluate(opens, address) == "open"
        other.shutdown()


# ---------------------------------------------------------------- the password


@pytest.fixture(scope="module")
def school(tmp_path_factory: pytest.TempPathFactory, written: Path) -> Iterator[Server]:
    """A dashboard with a class password."""
    made: Place
    with place(furnished(tmp_path_factory.mktemp("school"), written), LEAKAGE_PASSWORD=PASSWORD) as made:
        yield made.serve(alone=True)


def test_a_pupil_types_the_password_and_lands_where_the_link_led(school: Server, watched: Page) -> None:
    watched.goto(f"{school.address}/architecture?size=28")
    field = watched.get_by_label("Password")
    expect(field).to_be_focused()
    field.fill("wrong")
    field.press("Enter")
    expect(watched.get_by_role("alert")).to_have_text("That is not the password. Ask the person who gave you this address.")
    watched.get_by_label("Password").fill(PASSWORD)
    watched.get_by_role("button", name="Log in").click()
    expect(watched.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    assert watched.url.startswith(f"{school.address}/architecture?size=28")
    assert refused(watched) == []


@pytest.mark.parametrize("width", [1440, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_that_asks_can_be_read_by_all_at_any_width(width: int, scheme: str, school: Server, chromium: Browser) -> None:
    context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    for shown in ("/login", "/login?wrong"):
        page.goto(f"{school.address}{shown}")
        if "wrong" in shown:
            page.get_by_label("Password").fill("wrong")
            page.get_by_role("button").click()
            expect(page.get_by_role("alert")).to_be_visible()
        assert page.evaluate("() => document.documentElement.scrollWidth") == width
        page.evaluate(AXE_SCRIPT)
        assert page.evaluate(AXE) == []
    context.close()
