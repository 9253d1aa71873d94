"""A visit to the Lab in a real browser, with a real server, dispatcher and worker."""

import re

import pytest
from browser_waiting import press, press_run, uncover, wait_for
from playwright.sync_api import Browser, Page, expect

STAGE = ".gle-stage"
LONG = 300_000  # milliseconds: a run on a slow, busy machine
GUESS = "() => document.querySelector('.gle-guess canvas').toDataURL()"
REMEMBER = """() => {
    window.drawn = new Set();
    const look = () => {
        const canvas = document.querySelector('.gle-guess canvas');
        if (canvas && document.querySelector('.gle-stage').dataset.status === 'running') window.drawn.add(canvas.toDataURL());
    };
    setInterval(look, 50);
}"""  # the pictures that are drawn while the run is going on

BESIDE = """() => {
    const before = document.querySelector('.gle-run').dataset.run;
    const picture = document.querySelector('.gle-guess canvas').toDataURL();
    window.beside = [];
    setInterval(() => {
        const other = [...document.querySelectorAll('.gle-run')].find((run) => run.dataset.run !== before);
        const canvas = other?.querySelector('.gle-guess canvas');
        if (!canvas) return;
        window.beside.push([canvas.toDataURL() === picture, canvas.closest('figure').innerText.trim() === 'waiting']);
    }, 20);
}"""  # of another run: whether the picture of the one before is still there, and whether it says that it waits


def opened(browser: Browser, url: str, *, first: bool = False, **options: object) -> Page:
    """A page that shows a run. `first`: a first-time visitor has it uncovered."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}, **options).new_page()
    page.goto(url)
    if first:
        uncover(page)
    expect(page.locator(".gle-run")).to_be_visible(timeout=120_000)
    return page


def state(page: Page, name: str) -> str:
    return page.locator(STAGE).get_attribute(f"data-{name}") or ""


def test_the_recorded_run_plays_by_itself_within_two_seconds_of_the_stage(site: str, chromium: Browser) -> None:
    page = opened(chromium, site, first=True)
    wait_for(page, "() => Number(document.querySelector('.gle-stage').dataset.frames) >= 3", timeout=60_000)
    assert state(page, "status") == "done"
    expect(page.get_by_text("A recorded run, played again.")).to_be_visible()


def test_nothing_plays_by_itself_for_those_who_prefer_less_motion(site: str, chromium: Browser) -> None:
    page = opened(chromium, site, first=True, reduced_motion="reduce")
    expect(page.locator(STAGE)).to_have_attribute("data-mode", "still")  # the answer
    wait_for(page, "() => (({ psnr, seq }) => Number(psnr) > 40 && seq)(document.querySelector('.gle-stage').dataset)")
    shown = state(page, "frames")
    page.wait_for_timeout(1500)
    assert state(page, "frames") == shown
    assert int(shown) < 10  # of hundreds: the newest that had come while the others were on their way
    assert state(page, "mode") == "still"


def test_a_new_run_begins_with_its_own_picture_and_nothing_of_the_one_before(site: str, chromium: Browser) -> None:
    page = opened(chromium, site, first=True, reduced_motion="reduce")
    expect(page.locator(STAGE)).to_have_attribute("data-mode", "still")
    wait_for(page, "() => (({ psnr, seq }) => Number(psnr) > 40 && seq)(document.querySelector('.gle-stage').dataset)")  # it is drawn
    page.evaluate(BESIDE)
    page.get_by_role("button", name="… prune 90 %?").click()
    page.wait_for_url(re.compile(r"[?&]run="), timeout=60_000)
    wait_for(page, "() => [...document.querySelectorAll('.gle-run')].at(-1).dataset.status === 'running'", timeout=120_000)
    seen = page.evaluate("() => window.beside")
    assert any(waiting for _, waiting in seen)
    assert not any(same for same, _ in seen)  # the guess of the run before


@pytest.mark.parametrize("picture", [pytest.param("astronaut", marks=pytest.mark.slow), "face-0"])
def test_a_visitor_watches_idlg_find_a_picture_and_shares_the_link(site: str, chromium: Browser, picture: str) -> None:
    page = opened(chromium, f"{site}/?attack=idlg&model=lenet&size=28&channels=1")
    if picture != "astronaut":
        page.locator('.gle-pick[data-id="gallery:face-0"]').click()
        expect(page.get_by_text("Face 0 (class: face)")).to_be_visible()
    page.evaluate(REMEMBER)
    press_run(page)
    wait_for(page, "() => document.querySelector('.gle-stage').dataset.status === 'done'", timeout=LONG)
    wait_for(page, "() => document.querySelector('.gle-stage').dataset.mode === 'still'")

    elsewhere = opened(chromium, page.url, reduced_motion="reduce")  # another browser: no cookie, no session, straight to the answer
    expect(elsewhere.locator(STAGE)).to_have_attribute("data-seq", re.compile("."))  # set once the frame is on the canvas
    expect(page.locator(STAGE)).to_have_attribute("data-seq", state(elsewhere, "seq"))
    shown = float(page.locator(".gle-gauge-psnr .gle-value").inner_text().split()[0])
    assert shown >= 25  # dB, read off the page
    assert abs(float(state(elsewhere, "psnr")) - shown) < 0.06
    assert page.evaluate("() => window.drawn.size") >= 3  # it was watched, not waited for: a quick machine draws few
    final = page.evaluate(GUESS)
    assert elsewhere.evaluate(GUESS) == final

    page.locator(".gle-slider").focus()
    page.keyboard.press("Home")
    wait_for(page, "(best) => Number(document.querySelector('.gle-stage').dataset.psnr) < best - 5", arg=shown)
    assert page.evaluate(GUESS) != final


def test_a_what_if_runs_a_batch_of_eight_and_stopping_keeps_the_best(site: str, chromium: Browser) -> None:
    page = opened(chromium, site, first=True)
    page.get_by_role("button", name="… a batch of 8?").click()
    page.wait_for_url(re.compile(r"[?&]run="), timeout=60_000)
    wait_for(
        page, "() => [...document.querySelectorAll('.gle-run')].at(-1).querySelectorAll('.gle-guess canvas').length === 8", timeout=60_000
    )
    wait_for(page, "() => Number([...document.querySelectorAll('.gle-stage')].at(-1).dataset.frames) >= 3", timeout=60_000)
    page.get_by_role("button", name="Stop and keep the best so far").click()
    wait_for(page, "() => [...document.querySelectorAll('.gle-run')].at(-1).dataset.status === 'cancelled'", timeout=60_000)
    expect(page.locator(".gle-verdict").last).to_be_visible()
    page.get_by_role("link", name="Your runs").click()
    expect(page.get_by_text(re.compile("8 pictures: Inverting Gradients on LeNet")).first).to_be_visible()
    sure = page.get_by_role("button", name="Delete them")
    press(page.get_by_role("button", name="Delete all mine"), sure)
    sure.click()
    expect(page.get_by_text("No runs yet")).to_be_visible()


def test_where_the_stream_is_held_back_the_page_looks_for_itself(site: str, chromium: Browser) -> None:
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    context.route("**/api/runs/stream*", lambda route: route.abort())
    page = context.new_page()
    page.goto(site)
    expect(page.get_by_text("Something on the way to this browser holds back the live pictures")).to_be_visible()
    expect(page.get_by_alt_text(re.compile("What the attacker sees, step"))).to_be_visible()


def test_settings_live_in_the_address_and_reset_clears_them(site: str, chromium: Browser) -> None:
    page = opened(chromium, f"{site}/?attack=inverting_gradients&defense=pruning&pruning.fraction=0.5&seed=7")
    expect(page.get_by_text("Searches for a picture whose gradient points the same way")).to_be_visible()
    expect(page.get_by_text("The phone sends only some entries")).to_be_visible()
    page.get_by_role("button", name="Reset to defaults").click()
    expect(page.get_by_text("First reads the label straight from the gradient")).to_be_visible()
    expect(page).not_to_have_url(re.compile("attack="))  # the address follows what is drawn


def test_the_camera_is_asked_for_when_it_is_wanted_and_its_picture_becomes_the_batch(site: str, chromium: Browser) -> None:
    page = chromium.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce").new_page()
    page.add_init_script(
        "window.asked = 0; const media = navigator.mediaDevices, ask = media.getUserMedia.bind(media);"
        "media.getUserMedia = (wanted) => { window.asked += 1; return ask(wanted); };"
    )
    page.goto(f"{site}/?source=upload&expert=1")
    button = page.get_by_role("button", name="Take a picture")
    expect(button).to_be_visible(timeout=120_000)
    assert page.evaluate("window.asked") == 0
    button.click()
    wait_for(page, "() => document.querySelector('video')?.readyState === 4", timeout=60_000)  # there is something to be taken
    press(page.get_by_role("button", name="Take Photo"), page.get_by_text("Camera (class:"))
    expect(page.get_by_role("spinbutton", name="Batch size")).to_have_value("1")
    assert page.evaluate("window.asked") > 0


@pytest.mark.parametrize("width", [400, 1440])
def test_nothing_is_wider_than_the_screen(site: str, chromium: Browser, width: int) -> None:
    page = opened(chromium, site, first=True)
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_timeout(1000)
    widest = page.evaluate("() => Math.max(...[...document.querySelectorAll('.stMain *')].map((e) => e.getBoundingClientRect().right))")
    assert widest <= width + 1


def test_sliders_go_into_the_address_and_survive_a_reload(site: str, chromium: Browser) -> None:
    page = opened(chromium, f"{site}/?protocol=fedavg&batch=4&phones=2")
    epochs, rounds = page.get_by_role("slider", name="Local epochs"), page.get_by_role("slider", name="Rounds watched")
    epochs.press("ArrowRight")
    page.wait_for_url(re.compile(r"fedavg\.epochs=6"), timeout=60_000)
    rounds.press("ArrowRight")
    page.wait_for_url(re.compile(r"[?&]rounds=2"), timeout=60_000)
    page.get_by_role("slider", name="Round attacked").press("ArrowRight")
    page.wait_for_url(re.compile(r"attacked_round=2"), timeout=60_000)
    page.get_by_role("radio", name="Naive").or_(page.get_by_role("button", name="Naive", exact=True)).first.click()
    page.wait_for_url(re.compile(r"adaptive=false"), timeout=60_000)
    page.reload()
    picture = page.locator(".gle-sent svg")
    expect(picture).to_have_attribute("aria-label", re.compile("Each of 2 phones .* takes 6 local steps"))
    expect(page.get_by_role("slider", name="Round attacked")).to_have_value("2")
    expect(page.get_by_text("knows nothing of the 6 local steps")).to_be_visible()
    assert all(piece in page.url for piece in ("phones=2", "rounds=2", "attacked_round=2", "adaptive=false"))


def test_the_picture_of_what_is_sent_follows_the_protocol_and_rests_for_those_who_prefer_less_motion(site: str, chromium: Browser) -> None:
    page = opened(chromium, f"{site}/?protocol=fedadmm", reduced_motion="reduce")
    picture = page.locator(".gle-sent svg")
    expect(picture).to_contain_text("change of model and hidden correction")
    assert picture.bounding_box()["height"] <= 91
    moving = "() => [...document.querySelectorAll('.gle-sent *')].filter((e) => getComputedStyle(e).animationName !== 'none').length"
    assert page.evaluate(moving) == 0
    lively = opened(chromium, f"{site}/?protocol=fedprox")
    expect(lively.locator(".gle-spring")).to_have_count(1)
    assert lively.evaluate(moving) > 0


def test_a_published_result_is_overturned_before_ones_eyes(site: str, chromium: Browser) -> None:
    page = chromium.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce").new_page()
    page.goto(site)
    expect(page.get_by_role("button", name="Show it without a guess")).to_be_visible(timeout=120_000)
    expect(page.locator(".gle-run")).to_be_hidden()  # what was asked for is shown without a guess, unlike the recorded run
    page.get_by_role("button", name="A published result, overturned").click()
    page.wait_for_url(re.compile(r"[?&]run=[^&]+(,|%2C)"), timeout=60_000)
    naive, adaptive = page.locator(".gle-run").nth(0), page.locator(".gle-run").nth(1)
    expect(naive.get_by_role("heading", name="Naive: as reported")).to_be_visible()
    expect(adaptive.get_by_role("heading", name="Adaptive: same data, same seed")).to_be_visible()
    expect(page.get_by_text("Recorded runs, played again.")).to_be_visible()
    page.get_by_role("tab", name="Naive: as reported").click()
    for run in (naive, adaptive):
        expect(run).to_have_attribute("data-status", "done")
    wait_for(page, "() => Number(document.querySelectorAll('.gle-run')[1].dataset.psnr) > 30", timeout=60_000)
    assert float(naive.get_attribute("data-psnr") or 99) < 10
    left, right = naive.bounding_box(), adaptive.bounding_box()
    assert abs(left["y"] - right["y"]) < 1
    assert left["x"] + left["width"] < right["x"]
    expect(page.get_by_text("The attack reports: naive.")).to_be_visible()
    page.set_viewport_size({"width": 400, "height": 900})
    boxes = "[...document.querySelectorAll('.gle-run')].map((e) => e.getBoundingClientRect())"
    wait_for(page, f"() => {{ const [a, b] = {boxes}; return b.top >= a.bottom; }}")
    inside = "[...document.querySelectorAll('.gle-stage *')].map((e) => e.getBoundingClientRect().right)"
    wait_for(page, f"() => Math.max(...{inside}) <= 401", timeout=60_000)  # the curves follow a little later


@pytest.mark.parametrize(("width", "columns"), [(400, 4), (1440, 8)])
def test_a_batch_stands_in_pairs_each_private_picture_above_its_guess(site: str, chromium: Browser, width: int, columns: int) -> None:
    page = opened(chromium, f"{site}/?batch=8&attack=inverting_gradients&inverting_gradients.steps=20", reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 1200})
    press_run(page)
    wait_for(page, "() => document.querySelectorAll('.gle-guess .gle-tile:not(.gle-empty)').length === 8", timeout=120_000)
    boxes = """['truth', 'guess'].map((zone) => [...document.querySelectorAll(`.gle-${zone} canvas`)].map((e) => {
        const { x, y, width, bottom } = e.getBoundingClientRect();
        return [x, y, width, bottom];
    }))"""
    near = "guess.every(([, top], i) => top >= truth[i][3] && top < truth[i][3] + 12)"
    wait_for(page, f"() => {{ const [truth, guess] = {boxes}; return {near}; }}")  # the page is drawn to its end
    private, guessed = page.evaluate(boxes)
    assert len({round(x) for x, *_ in private}) == columns
    for (x, _, wide, _), (under, *_) in zip(private, guessed, strict=True):
        assert abs(x - under) < 1
        assert wide > 60
    expect(page.locator(".gle-network .gle-where")).to_have_text("over the network: the gradient")


def test_the_recursion_goes_layer_by_layer_and_each_can_be_looked_at_again(site: str, chromium: Browser) -> None:
    page = opened(chromium, f"{site}/?model=cnn6&attack=r_gap&task=flipped", reduced_motion="reduce")
    press_run(page)
    run = page.locator(".gle-run")
    cards = run.locator(".gle-view-card")
    expect(cards).to_have_count(8, timeout=LONG)
    expect(run).to_have_attribute("data-status", "done", timeout=LONG)
    names = ["linear", *(f"conv{number}" for number in range(6, 0, -1))]
    assert cards.locator("> b").all_inner_texts() == [*(f"what enters {name}" for name in names), "the answer"]
    third = cards.nth(2)
    expect(third).to_contain_text("all 2,916 unknowns")  # 36 maps of 9 x 9
    expect(third).to_contain_text("from 22,336 equations")  # 64 filters: 3 x 3 x 36 gradients each, 5 x 5 outputs each
    third.click()
    expect(run).to_have_attribute("data-step", "3")
    expect(third).to_have_attribute("aria-current", "step")
    expect(cards.nth(3)).to_have_class(re.compile("gle-later"))
    cards.last.click()
    wait_for(page, "() => Number(document.querySelector('.gle-run').dataset.psnr) > 60")
    expect(run.locator(".gle-later")).to_have_count(0)
    page.set_viewport_size({"width": 400, "height": 900})
    wide = page.evaluate("() => Math.max(...[...document.querySelectorAll('.gle-view-card')].map((e) => e.offsetWidth))")
    assert wide <= 400
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 400
