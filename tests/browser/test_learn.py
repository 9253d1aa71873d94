"""The lessons in a real browser: first picture, a lesson by keyboard, nothing before a guess, phones, and a lecture hall."""

import json
import re
from collections.abc import Callable

import pytest
from browser_waiting import wait_for
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from leakage.learn.lessons import lessons
from leakage.settings import ROOT

Opened = Callable[..., tuple[Page, list[str]]]
HALLS = ((1280, 720, 22), (1920, 1080, 33))  # width, height and the smallest letters, in pixels
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"  # a chart is drawn anew at its new size
SMALL_TARGETS = """
() => [...document.querySelectorAll('a, button, summary, label')]
  .filter((one) => one.checkVisibility() && !one.closest('p, .gle-unseen, .gle-skip'))
  .map((one) => [one.className || one.tagName, one.getBoundingClientRect()])
  .filter(([, box]) => box.height && (box.height < 44 || box.width < 44))
  .map(([name, box]) => `${name} ${box.width} x ${box.height}`)
"""
OVERFLOWING = """
() => [...document.querySelectorAll('.gle-lesson *')]
  .filter((one) => one.checkVisibility() && (one.tagName === 'svg' || !one.closest('svg')))
  .map((one) => [one, one.getBoundingClientRect()])
  .filter(([, box]) => box.width && (box.bottom > innerHeight + 1 || box.right > innerWidth + 1))
  .map(([one]) => `${one.tagName} ${one.className}`)
"""
SMALLEST = """
() => Math.min(...[...document.querySelectorAll('.gle-lesson *')]
  .filter((one) => one.checkVisibility() && [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()))
  .map((one) => parseFloat(getComputedStyle(one).fontSize)))
"""


@pytest.fixture
def opened(chromium: Browser, site: str) -> Opened:
    """A page of the reader, and what its console tells of errors."""

    def open_page(
        address: str = "", *, width: int = 1280, height: int = 720, calm: bool = False, scheme: str = "light"
    ) -> tuple[Page, list[str]]:
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            reduced_motion="reduce" if calm else "no-preference",
        )
        page = context.new_page()
        wrong: list[str] = []

        def tell(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning"):
                wrong.append(message.text)

        page.on("console", tell)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(f"{site}/learn{address}")
        return page, wrong

    return open_page


def place(page: Page) -> int:
    return int(page.locator(".gle-lesson").get_attribute("data-place") or 0)


def test_the_index_leads_to_a_lesson_and_the_lab_leads_to_the_index(opened: Opened, site: str) -> None:
    page, wrong = opened()
    expect(page.locator(".gle-card")).to_have_count(len(lessons()))
    page.get_by_role("link", name="A picture from a gradient").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("A picture from a gradient")
    page.go_back()
    expect(page.locator(".gle-card")).to_have_count(len(lessons()))
    assert wrong == []
    lab = page.context.new_page()
    lab.goto(f"{site}/")
    learn = lab.get_by_role("link", name="Learn")
    expect(learn).to_have_attribute("href", f"{site}/learn", timeout=120_000)


@pytest.mark.parametrize(("id", "right"), [(lesson.id, number % 2 == 0) for number, lesson in enumerate(lessons())])
def test_a_lesson_is_walked_by_keyboard_to_its_takeaway(opened: Opened, id: str, right: bool) -> None:
    page, wrong = opened(f"#{id}", calm=True)
    beats = page.locator(".gle-dot")
    expect(beats.first).to_be_visible()
    count = beats.count()
    met = 0
    for at in range(1, count + 1):
        expect(page.locator(".gle-lesson")).to_have_attribute("data-place", str(at))
        expect(page.locator(".gle-unseen")).to_contain_text(f"{at} of {count}")
        options = page.locator(".gle-option")
        if options.count():
            met += 1
            page.keyboard.press("ArrowRight")
            assert place(page) == at  # nothing moves on before a guess
            expect(page.locator(".gle-hint")).to_have_text("Guess first: then you see what happens.")
            told = json.loads(page.evaluate("() => document.getElementById('about').textContent"))
            marks = page.evaluate(f"async () => (await (await fetch('{told['data']}/lessons/{id}.json')).json()).beats[{at - 1}].options")
            page.keyboard.press(str(1 + next(number for number, option in enumerate(marks) if option["right"] == right)))
            page.keyboard.press("ArrowRight")
            expect(page.locator(".gle-outcome")).to_have_attribute("data-mark", "right" if right else "wrong")
        elif at < count:
            page.keyboard.press("PageDown")
    assert met >= 1
    expect(page.locator(".gle-lesson")).to_have_attribute("data-kind", "takeaway")
    expect(page.locator(".gle-after")).to_contain_text("What this does not show")
    assert [one for one in page.locator("canvas[role=img]").all() if not one.get_attribute("aria-label")] == []
    assert wrong == []


def test_a_link_behind_a_question_leads_to_the_question(opened: Opened) -> None:
    page, wrong = opened("#02-search/6")
    expect(page.locator(".gle-lesson")).to_have_attribute("data-place", "3")
    expect(page.locator(".gle-hint")).to_have_text("A question comes before that part of the lesson.")
    assert page.locator(".gle-dot[href]").count() == 3
    assert wrong == []


def test_place_and_guess_are_there_after_a_reload_and_gone_when_forgotten(opened: Opened) -> None:
    page, wrong = opened("#02-search/3")
    page.get_by_role("button", name="The search ends in a grey smudge without any shape.").click()
    page.get_by_role("button", name="See what happens").click()
    expect(page).to_have_url(re.compile(r"#02-search/4$"))
    page.goto(page.url.split("#")[0] + "#")
    expect(page.get_by_role("link", name="A picture from a gradient")).to_contain_text("Go on: 4 of 7")
    page.reload()
    page.get_by_role("link", name="A picture from a gradient").click()
    expect(page.locator(".gle-lesson")).to_have_attribute("data-place", "4")
    expect(page.locator(".gle-outcome")).to_contain_text("You guessed B. The answer is A.")
    page.goto(page.url.split("#")[0] + "#")
    page.get_by_role("button", name="Forget them").click()
    expect(page.locator(".gle-card-foot b")).to_have_count(0)
    assert wrong == []


def test_on_a_phone_nothing_scrolls_sideways_and_every_target_can_be_hit(opened: Opened) -> None:
    page, wrong = opened("", width=400, height=720, calm=True)
    expect(page.locator(".gle-card").first).to_be_visible()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 400
    for lesson in lessons():
        page.goto(page.url.split("#")[0] + f"#{lesson.id}/1")
        expect(page.locator(f".gle-lesson[data-lesson='{lesson.id}'] .gle-words")).to_be_visible()
        for at in range(1, page.locator(".gle-dot").count() + 1):
            expect(page.locator(".gle-lesson")).to_have_attribute("data-place", str(at))
            assert page.evaluate("() => scrollY") == 0, f"{lesson.id}, {at}"  # each begins with its first word
            for width, height in ((400, 720), (360, 640)):
                page.set_viewport_size({"width": width, "height": height})
                assert page.evaluate("() => document.documentElement.scrollWidth") <= width, f"{lesson.id}, {at}, {width} px"
                assert page.evaluate(SMALL_TARGETS) == [], f"{lesson.id}, {at}, {width} px"
            page.keyboard.press("1")  # where there is a question
            page.evaluate("() => scrollTo(0, document.body.scrollHeight)")
            page.keyboard.press("ArrowRight")
    assert wrong == []


def test_who_asked_for_less_motion_sees_the_end_at_once(opened: Opened) -> None:
    page, wrong = opened("#02-search/2", calm=True)
    recorded = json.loads((ROOT / "assets" / "lessons" / "runs" / "r02.json").read_text())
    kept = [recorded["columns"]["step"][place] for place in recorded["film"]["places"]]
    last = max(step for step in kept if step <= 20)  # where this beat halts
    expect(page.locator(".gle-screen")).to_have_attribute("data-step", f"{last:g}")
    assert page.locator(".gle-screen").get_attribute("data-frames") == "1"
    assert wrong == []


def test_in_front_of_a_hall_every_beat_fits_and_can_be_read(opened: Opened) -> None:
    page, wrong = opened("", calm=True)

    def fits(inside: str, what: str) -> None:
        for width, height, smallest in HALLS:
            page.set_viewport_size({"width": width, "height": height})
            page.evaluate(DRAWN)
            assert page.evaluate(OVERFLOWING.replace(".gle-lesson", inside)) == [], f"{what}, {width} px"
            assert page.evaluate(SMALLEST.replace(".gle-lesson", inside)) >= smallest, f"{what}, {width} px"

    for lesson in lessons():
        page.goto(page.url.split("#")[0] + f"#{lesson.id}/1?present")
        expect(page.locator(f".gle-lesson[data-lesson='{lesson.id}'] .gle-words")).to_be_visible()
        for at in range(1, page.locator(".gle-dot").count() + 1):
            expect(page.locator(".gle-lesson")).to_have_attribute("data-place", str(at))
            if page.locator(".gle-option").count():
                for key in ("Shift+Digit1", "v", "Shift+Digit2", "r"):  # two votes and the answer: as much as a question ever shows
                    page.keyboard.press(key)
                expect(page.locator(".gle-vote")).to_have_count(2 * page.locator(".gle-option").count())
            fits(".gle-lesson", f"{lesson.id}, {at}")
            page.keyboard.press("PageDown")  # no guess is needed
    page.goto(page.url.split("#")[0] + f"#{lessons()[-1].id}/1?present")
    expect(page.locator(".gle-words")).to_be_visible()
    for key in ("?", "g", "q"):
        page.keyboard.press(key)
        expect(page.locator(".gle-panel")).to_be_visible()
        fits(".gle-panel", key)
        page.keyboard.press("Escape")
        expect(page.locator(".gle-panel")).to_be_hidden()
    assert wrong == []


def test_a_clicker_walks_blackens_and_reveals_and_the_speaker_follows(opened: Opened) -> None:
    page, wrong = opened("#02-search/2?present")
    expect(page.locator("html.gle-presenting")).to_have_count(1)
    page.keyboard.press("b")
    expect(page.locator(".gle-black")).to_be_visible()
    page.keyboard.press(".")
    expect(page.locator(".gle-black")).to_be_hidden()
    with page.context.expect_page() as opening:
        page.keyboard.press("s")
    speaker = opening.value
    expect(speaker.locator("h1")).to_have_text("A picture from a gradient, 2 of 7")
    page.bring_to_front()
    page.keyboard.press("PageDown")
    assert speaker.locator("h1").inner_text() == "A picture from a gradient, 3 of 7"  # drawn with it, not later
    expect(speaker.locator("body")).to_contain_text("A: The search ends in a picture that looks the same as the private one.")
    speaker.set_viewport_size({"width": 900, "height": 760})  # the window's own size
    expect(speaker.get_by_text("One minute alone, on paper.")).to_be_in_viewport(ratio=1)
    expect(page.locator(".gle-why")).to_have_count(0)
    page.keyboard.press("r")
    expect(page.locator(".gle-why")).to_have_count(3)
    speaker.keyboard.press("PageDown")  # its keys are heard by the page
    expect(page.locator(".gle-lesson")).to_have_attribute("data-place", "4")
    page.reload()
    expect(page.locator("html.gle-presenting")).to_have_count(1)
    page.keyboard.press("s")
    expect(speaker.locator("h1")).to_have_text("A picture from a gradient, 4 of 7")
    page.keyboard.press("Escape")
    expect(page.locator("html.gle-presenting")).to_have_count(0)
    assert place(page) == 4  # a question that was passed while presenting does not stop the reader
    assert wrong == []


def test_a_lecturer_by_a_link_fills_the_screen_and_turns_the_beats_after_a_press_on_a_knob(opened: Opened) -> None:
    page, wrong = opened("#02-search/1?present")
    presenting, filled = page.locator("html.gle-presenting"), "() => document.fullscreenElement !== null"
    expect(presenting).to_have_count(1)
    page.keyboard.press("f")
    wait_for(page, filled)
    expect(presenting).to_have_count(1)
    last = page.locator(".gle-dot").count()
    page.goto(page.url.split("#")[0] + f"#02-search/{last - 1}?present")
    knob = page.locator(".gle-value").nth(1)
    expect(knob).to_be_visible()
    knob.click()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".gle-lesson")).to_have_attribute("data-place", str(last))
    for key in ("ArrowRight", "PageDown", "Space"):
        page.keyboard.press(key)
    assert page.url.endswith(f"#02-search/{last}?present")
    with page.context.expect_page():
        page.keyboard.press("s")
    page.bring_to_front()
    if not page.evaluate(filled):  # a browser may leave the full screen for a new window
        page.keyboard.press("f")
        wait_for(page, filled)
    page.keyboard.press("f")
    expect(presenting).to_have_count(0)
    assert wrong == []


def test_the_stage_beside_an_answer_shows_what_the_answer_speaks_of(opened: Opened) -> None:
    page, wrong = opened("#09-solve/2?present")
    screen, words = page.locator(".gle-screen"), page.locator(".gle-verdict .gle-word")
    expect(words).to_have_text("result")  # while it goes through the layers
    page.wait_for_timeout(1_000)
    frames, passed = page.evaluate("() => [Number(document.querySelector('.gle-screen').dataset.frames), performance.now()]")
    assert frames <= 1 + passed / 1500  # a view card is read for 1.5 s
    page.keyboard.press("ArrowRight")
    expect(screen).to_have_attribute("data-run", "r17")
    page.keyboard.press("r")
    expect(screen).to_have_attribute("data-run", "r18")
    expect(screen).to_have_attribute("data-psnr", "9.92")
    decides = page.locator(".gle-decisive")
    expect(decides).to_be_in_viewport()
    expect(decides).to_contain_text("3,188 of 3,468 unknowns")
    page.keyboard.press("r")
    expect(screen).to_have_attribute("data-run", "r17")
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    page.keyboard.press("ArrowRight")
    expect(decides).to_be_in_viewport(ratio=0.9)
    assert wrong == []
