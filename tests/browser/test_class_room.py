"""A class in one room, in real browsers: the hall's screen, and phones that join, guess, try and come back after a restart."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import segno
from axe_checks import HALL, check
from browser_waiting import wait_for
from class_phones import MODULES, lan_address, requests_to, say
from home_fixtures import furnished
from home_processes import Server, place
from playwright.sync_api import Browser, Locator, Page, expect

Visitor = Callable[..., Page]
QUESTION, TRY = "02-search/3", "01-gradient/5"  # beats count from 1; a live run of this lesson's what-ifs takes no time
RIGHT = 0  # the option, of the questions of both lessons
STUDENT = ((400, 720),)
BACK_WITHIN = 120.0  # seconds after the server's health answer
HEAR = """
() => {
  window.told = [];
  const note = ({ target }) => (target.nodeType === 3 ? target.parentElement : target).closest('[aria-live], [role=status], [role=alert]');
  const watch = (changes) => window.told.push(...changes.map(note).filter(Boolean).map((region) => region.textContent));
  new MutationObserver(watch).observe(document.body, { childList: true, characterData: true, subtree: true });
}
"""
RING = "() => getComputedStyle(document.activeElement.closest('.gle-value') ?? document.activeElement).outlineStyle !== 'none'"
COLOURS = "(bars) => bars.map((bar) => getComputedStyle(bar).backgroundColor)"
DRAWN = "(canvas) => new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data).size > 2"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, written: Path) -> Iterator[Server]:
    """A server as `make class` starts it: phones reach it, and of it only the rooms."""
    with place(furnished(tmp_path_factory.mktemp("class"), written), LEAKAGE_CLASS="1") as made:
        yield made.serve(host="0.0.0.0")


@pytest.fixture
def visitor(chromium: Browser) -> Visitor:
    """A page in a browser of its own."""

    def open_page(address: str, width: int = 400, height: int = 720) -> Page:
        page = chromium.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce").new_page()
        page.goto(address)
        return page

    return open_page


def open_room(visitor: Visitor, server: Server, beat: str) -> tuple[Page, str, str]:
    """The hall's screen with the dialog of a room, the room's code, and the address that the phones open."""
    hall = visitor(f"{server.address}/learn#{beat}?present", 1280, 720)
    expect(hall.locator("html.gle-presenting")).to_have_count(1)
    hall.keyboard.press("o")
    code = hall.locator(".gle-room-code").inner_text()
    address = f"{lan_address(server.port)}/j"
    expect(hall.locator(".gle-room-where")).to_have_text(address.removeprefix("http://"))
    return hall, code, address


def at_beat(*pages: Page, beat: int) -> None:
    for page in pages:
        expect(page.locator(".gle-lesson")).to_have_attribute("data-place", str(beat))


def answered(*pages: Page, words: str) -> None:
    for page in pages:
        expect(page.locator(".gle-raised")).to_have_text(words)


def option(page: Page, number: int) -> Locator:
    return page.locator(".gle-option").nth(number)


def test_a_class_joins_by_code_and_by_qr_and_sees_its_votes_after_the_reveal(server: Server, visitor: Visitor) -> None:
    hall, code, address = open_room(visitor, server, "02-search/2")
    picture = hall.locator(".gle-room-qr")
    expect(picture).to_have_js_property("complete", True)
    made = segno.make_qr(f"{address}/{code}")
    assert picture.evaluate(MODULES) == [[int(module in (1, True)) for module in row] for row in made.matrix_iter(border=4)]

    typed = visitor(address)
    typed.get_by_label("The code on the screen").fill(code.lower())
    typed.keyboard.press("Enter")
    at_beat(typed, beat=2)
    expect(hall.locator(".gle-room-joined")).to_have_text("1 phone has joined.")
    hall.keyboard.press("Escape")
    hall.keyboard.press("PageDown")
    scanned = visitor(f"{address}/{code}", 360, 640)  # late
    at_beat(hall, typed, scanned, beat=3)
    expect(hall.locator(".gle-room-line")).to_contain_text(f"{code} · 2 phones")
    phones = (typed, scanned)

    for student, choice in ((typed, 1), (scanned, 2), (scanned, RIGHT)):  # a guess may be changed
        assert option(student, choice).evaluate("(one) => one.offsetHeight") >= 64
        option(student, choice).click()
    answered(hall, *phones, words="2 of 2 have answered.")
    with requests_to(server.address) as client:
        for number, choice in ((1, 1), (2, 1), (3, 2)):
            say(client, code, number, beat=3, option=choice, round=0)
        answered(hall, *phones, words="5 of 5 have answered.")
        for page in (hall, *phones):
            expect(page.locator(".gle-vote, .gle-why")).to_have_count(0)
        hall.keyboard.press("r")
        for page in (hall, *phones):
            expect(page.locator(".gle-vote b")).to_have_text(["1 vote", "3 votes", "1 vote"])
            expect(page.locator("[data-mark=right] .gle-option em")).to_contain_text("✓ The answer")
        in_hall, *on_phones = [page.locator(".gle-vote i").evaluate_all(COLOURS) for page in (hall, *phones)]
        assert on_phones == [in_hall, in_hall]
        assert in_hall[0] not in in_hall[1:], "the right answer has a colour of its own"
        expect(typed.locator(".gle-outcome-head")).to_have_text("✗ You guessed B. The answer is A.")
        expect(scanned.locator(".gle-outcome-head")).to_have_text("✓ You guessed right.")

        hall.keyboard.press("v")
        for student in phones:
            expect(student.locator(".gle-vote, .gle-why")).to_have_count(0)
            option(student, RIGHT).click()
        answered(hall, words="Talk to your neighbour, then vote again. 2 of 5 have answered.")
        hall.keyboard.press("r")  # of two votes only the number is shown
        for page in (hall, *phones):
            expect(page.locator(".gle-vote b")).to_have_text(["1 vote", "3 votes", "1 vote"])
        hall.keyboard.press("r")
        expect(typed.locator(".gle-why")).to_have_count(0)
        for number in (1, 2, 3):
            say(client, code, number, beat=3, option=1, round=1)
        answered(hall, words="Talk to your neighbour, then vote again. 5 of 5 have answered.")
        hall.keyboard.press("r")
        for page in (hall, *phones):
            expect(page.locator(".gle-vote b")).to_have_text(["1", "2", "3", "3", "1", "0"])  # before and after, of each option
    for student in phones:
        assert student.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0


def test_all_are_back_after_the_server_was_killed_and_no_guess_is_lost(server: Server, visitor: Visitor) -> None:
    hall, code, address = open_room(visitor, server, QUESTION)
    phones = [visitor(f"{address}/{code}", width) for width in (400, 360)]
    at_beat(*phones, beat=3)
    hall.keyboard.press("Escape")
    for student in phones:
        option(student, 1).click()
    answered(hall, *phones, words="2 of 2 have answered.")
    phones[0].reload()
    expect(option(phones[0], 1)).to_have_attribute("aria-pressed", "true")
    answered(hall, phones[0], words="2 of 2 have answered.")

    os.killpg(server.process.pid, signal.SIGKILL)
    server.process.wait()
    option(phones[1], 2).click()  # while nobody hears it
    expect(option(phones[1], 2)).to_have_attribute("aria-pressed", "true")
    server.start()
    healthy = time.monotonic()
    again = "The server was started again: votes, dots and live runs of other parts are gone."
    expect(hall.locator(".gle-room-note[role=status]")).to_have_text(again, timeout=1000 * BACK_WITHIN)
    expect(hall.locator(".gle-raised")).to_have_text("2 of 2 have answered.", timeout=1000 * BACK_WITHIN)
    answered(*phones, words="2 of 2 have answered.")
    assert time.monotonic() - healthy < BACK_WITHIN
    with requests_to(server.address) as client:
        for number in (1, 2, 3):
            say(client, code, number, beat=3, option=RIGHT, round=0)
    answered(hall, words="5 of 5 have answered.")
    hall.keyboard.press("r")
    for page in (hall, *phones):
        expect(page.locator(".gle-vote b")).to_have_text(["3 votes", "1 vote", "1 vote"])


def check_both(hall: Page, student: Page, what: str) -> None:
    check(hall, what, HALL)
    check(student, what, STUDENT)


def test_every_view_of_a_room_passes_axe_on_the_phone_and_in_the_hall(server: Server, visitor: Visitor) -> None:
    hall, code, address = open_room(visitor, server, "01-gradient/3")
    check(hall, "dialog", HALL)
    student = visitor(address)
    check(student, "join", STUDENT)
    student.get_by_label("The code on the screen").fill("ZZZZZ")
    student.keyboard.press("Enter")
    expect(student.locator(".gle-join-error")).not_to_be_empty()
    check(student, "a wrong code", STUDENT)
    student.get_by_label("The code on the screen").fill(code)
    student.keyboard.press("Enter")
    hall.keyboard.press("Escape")
    at_beat(student, beat=3)
    option(student, RIGHT).click()
    answered(hall, student, words="1 of 1 have answered.")
    with requests_to(server.address) as client:
        for number in range(1, 5):
            say(client, code, number, beat=3, option=RIGHT, round=0)
    answered(hall, student, words="5 of 5 have answered.")
    check_both(hall, student, "guess")
    hall.keyboard.press("r")
    for page in (hall, student):
        expect(page.locator(".gle-vote")).to_have_count(3)
    check_both(hall, student, "reveal")
    for at in (4, 5):
        hall.keyboard.press("PageDown")
        at_beat(student, beat=at)
    student.get_by_label("Cat", exact=True).check()
    expect(hall.locator(".gle-class-dot")).to_have_count(1)
    check_both(hall, student, "plot")
    hall.keyboard.press("o")
    hall.get_by_role("button", name="End the room").click()
    hall.get_by_role("button", name="End it").click()
    expect(hall.get_by_role("dialog")).to_contain_text("The room has ended.")
    expect(student.locator(".gle-hint")).to_have_text("The room is closed. Thank you.")
    check_both(hall, student, "closed")


def test_choices_become_dots_in_the_hall_and_the_teacher_computes_one_live(server: Server, visitor: Visitor) -> None:
    hall, code, address = open_room(visitor, server, TRY)
    student = visitor(f"{address}/{code}")
    at_beat(student, beat=5)
    hall.keyboard.press("Escape")
    dots = hall.locator(".gle-class-dot")
    expect(dots).to_have_count(0)
    student.get_by_label("Cat", exact=True).check()
    student.get_by_label("0.0001", exact=True).check()
    cell = "5"  # picture 1, noise 1, counted from 0; four values of noise
    expect(student.locator(".gle-whatif")).to_have_attribute("data-cell", cell)
    expect(dots).to_have_count(1)
    with requests_to(server.address) as client:
        say(client, code, 1, beat=5, cell=4)  # without noise, in the first column
    expect(dots).to_have_count(2)
    dots.nth(1).click()
    expect(hall.locator(".gle-whatif")).to_have_attribute("data-cell", cell)
    for page in (hall, student):
        expect(page.locator(".gle-result canvas").first).to_be_visible()
        wait_for(page, f"() => [...document.querySelectorAll('.gle-result canvas')].every({DRAWN})")
    assert hall.locator(".gle-result .gle-big").inner_text() == student.locator(".gle-result .gle-big").inner_text()

    expect(student.get_by_role("button", name="Compute it live")).to_be_hidden()  # the teacher's
    hall.get_by_role("button", name="Compute these settings live").click()
    student.get_by_role("button", name="Watch the live run").click()
    for page in (hall, student):
        expect(page.locator(".gle-live .gle-kind")).to_have_text("Attack finished", timeout=120_000)
        recorded = page.locator(".gle-result .gle-word").text_content() or ""
        expect(page.locator(".gle-live .gle-word")).to_have_text(recorded)


def tab_to(page: Page, wanted: Locator) -> None:
    """Go there by the key Tab, and see at every stop where the focus is."""
    for _ in range(40):
        page.keyboard.press("Tab")
        assert page.evaluate(RING), page.evaluate("() => document.activeElement.outerHTML.slice(0, 200)")
        if wanted.evaluate("(one) => one === document.activeElement"):
            return
    raise AssertionError(f"{wanted} is not reached by Tab")


def test_a_phone_is_used_by_keyboard_and_hears_a_reveal_once(server: Server, visitor: Visitor) -> None:
    hall, code, address = open_room(visitor, server, "01-gradient/3")
    tab_to(hall, hall.get_by_label("Students may compute live"))
    hall.keyboard.press("Space")
    hall.keyboard.press("Escape")
    student = visitor(address)
    student.keyboard.type(code)  # the field has the focus
    student.keyboard.press("Enter")
    at_beat(student, beat=3)
    tab_to(student, option(student, RIGHT))
    student.keyboard.press("Enter")
    answered(hall, student, words="1 of 1 have answered.")
    expect(option(student, RIGHT)).to_be_focused()

    student.evaluate(HEAR)
    hall.keyboard.press("r")
    expect(student.locator(".gle-outcome-head")).to_be_visible()
    with requests_to(server.address) as client:
        say(client, code, 1)  # a state more
    answered(student, words="1 of 2 have answered.")
    assert student.evaluate("() => window.told") == ["The answer is shown. ✓ You guessed right."]

    for at in (4, 5):
        hall.keyboard.press("PageDown")
        at_beat(student, beat=at)
    tab_to(student, student.get_by_label("Astronaut", exact=True))
    student.keyboard.press("ArrowDown")
    expect(student.get_by_label("Cat", exact=True)).to_be_focused()
    expect(hall.locator(".gle-class-dot")).to_have_count(1)
    tab_to(student, student.get_by_role("button", name="Compute it live"))
    student.keyboard.press("Enter")
    expect(student.locator(".gle-live")).to_be_focused()
    expect(student.locator(".gle-live .gle-kind")).to_have_text("Attack finished", timeout=120_000)
    tab_to(student, student.get_by_role("button", name="Back", exact=True))
    student.keyboard.press("Enter")
    at_beat(student, beat=4)
    tab_to(student, student.get_by_role("button", name="To the class"))
    student.keyboard.press("Enter")
    at_beat(student, beat=5)
