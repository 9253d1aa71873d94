"""Take the pictures in docs/ again from a running dashboard; some runs are computed first, in some minutes.

LEAKAGE_BROWSER=$(bash scripts/browser.sh) .venv/bin/python scripts/screenshots.py http://127.0.0.1:8501 [NAME ...]
A NAME is the beginning of a picture's name, such as `ask`; without a NAME all pictures are taken.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode, urljoin

from own_picture_film import choose_own_picture
from PIL import Image
from playwright.sync_api import Browser, Page, TimeoutError, sync_playwright

DOCS = Path(__file__).resolve().parent.parent / "docs"
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
MINUTES = 20 * 60_000  # milliseconds, for what is computed
NAIVE = "v=1&voices=naive&attack=inverting_gradients&inverting_gradients.steps=1500"
LAB = {"batch-8": "batch=8&attack=inverting_gradients", "recursion": "model=cnn6&attack=r_gap"}
EVERY_WORD = ("none", "pruning:fraction=0.5", "pruning:fraction=0.9", "dp_sgd")
Ready = Callable[[Page], Page | None]  # what is done on a page before it is taken, or another page that is taken in its place
QUESTION = "phones=4&protection=gaussian_noise&minutes=5"  # faces
CHEATING = "phones=4&attacker=changes&minutes=1"
SERVER = "v=1&expert=1&batch=16&phones=4&server=loki&attack=bins&checks=new_layers,same_for_all,transmit_snr"
SERVERS = "v=1&differs=checks&batch=8&phones=4&servers=imprint,loki,label_flip&attack=inverting_gradients&inverting_gradients.steps=100"
RESNET18 = "conv 3@16 p1 - block 16 - block 16 - block 32 /2{} - block 32 - block 64 /2 - block 64 - block 128 /2 - block 128 - mean"
COLORS = 256  # of a picture in docs/, so that it stays small


@dataclass(frozen=True)
class Shot:
    """A picture of a page: its address, what to do on the page first, and the size of the window."""

    name: str
    address: str
    ready: Ready
    width: int
    height: int
    scheme: Literal["light", "dark"] = "light"
    part: str = ""  # a CSS selector: only this part of the page


def in_both_schemes(name: str, address: str, ready: Ready, sizes: dict[int, int], part: str = "") -> Iterator[Shot]:
    """Yield light and dark pictures at every width."""
    for width, height in sizes.items():
        for scheme in SCHEMES:
            yield Shot(f"{name}-{width}-{scheme}", address, ready, width, height, scheme, part)


def wait_until_finished(page: Page) -> None:
    """Wait until all runs have ended and their pictures and curves are still."""
    page.wait_for_function("() => Number(document.querySelector('.gle-stage')?.dataset.frames) > 0", timeout=60_000)
    page.wait_for_function(
        "() => [...document.querySelectorAll('.gle-run')].every((one) => one.dataset.status === 'done')", timeout=MINUTES
    )
    rest(page)


def rest(page: Page) -> None:
    """Wait until the page is still, and scroll to its top."""
    page.wait_for_timeout(3000)
    page.evaluate("() => document.querySelector('[data-testid=stMain]')?.scrollTo(0, 0)")
    page.wait_for_timeout(500)


def wait_for_bars(page: Page) -> None:
    """Wait until the page Architecture has drawn the bars of all layers."""
    page.locator(".st-key-bars .bars").first.wait_for(timeout=60_000)
    rest(page)


def wait_until_refused(page: Page) -> None:
    """Wait until the page says that a phone refused the model."""
    page.locator("[data-refused]").first.wait_for(timeout=60_000)
    rest(page)


def wait_for_layers(page: Page) -> None:
    """Wait for the drawing of the layers that a server hands out."""
    page.locator(".gle-handed").first.wait_for(timeout=60_000)
    wait_until_finished(page)


def press_keys(*keys: str) -> Ready:
    """Return a function that presses keys on a page of the lessons."""

    def press(page: Page) -> None:
        page.locator(".gle-words, .gle-card").first.wait_for(timeout=20_000)
        for key in keys:
            page.keyboard.press(key)
        page.wait_for_timeout(1500)

    return press


def wait_for_question(page: Page) -> None:
    """Wait until the front page asks its question."""
    page.locator('.gle-opening[data-phase="asked"]').wait_for(timeout=60_000)
    page.wait_for_timeout(500)


def open_door(page: Page) -> None:
    """Answer the question of the front page."""
    wait_for_question(page)
    page.locator(".gle-door .gle-option").nth(1).click()
    page.locator('.gle-opening[data-phase="open"]').wait_for(timeout=60_000)
    page.wait_for_timeout(2500)


def attack_own_picture(page: Page) -> None:
    """Attack a picture of the gallery as a visitor attacks their own, without and with noise."""
    choose_own_picture(page)
    page.add_style_tag(content="header { display: none !important; }")  # it would lie over the picture
    for protection in ("none", "noise"):
        page.locator(".gle-own-picture select").first.select_option(protection)
        page.locator(".gle-own-start").click()
        page.locator(".gle-own-run").first.and_(page.locator("[data-word]")).wait_for(timeout=60_000)


def project(page: Page) -> None:
    """Open the projector view of finished runs."""
    wait_until_finished(page)
    page.keyboard.press("f")
    page.wait_for_timeout(1500)


def show_questions(page: Page) -> None:
    """Wait for the page Ask."""
    page.locator(".gle-row, .st-key-run-bar").first.wait_for(timeout=60_000)
    rest(page)


def wait_until_underway(page: Page) -> None:
    """Wait until runs are under way."""
    page.wait_for_function("() => Number(document.querySelector('.gle-stage')?.dataset.frames) > 2", timeout=MINUTES)
    page.wait_for_timeout(1000)


def open_speaker_window(page: Page) -> Page:
    """Open the speaker's window."""
    press_keys()(page)
    with page.context.expect_page() as opening:
        page.keyboard.press("s")
    opening.value.wait_for_timeout(1500)
    return opening.value


def print_answer(page: Page) -> None:
    """Save the printable page of an answer as PDF, and return to the answer."""
    show_questions(page)
    page.get_by_text("To print", exact=True).click()
    link = page.get_by_role("link", name="Open the page to print").get_attribute("href")
    paper = page.context.new_page()
    paper.goto(urljoin(page.url, str(link)))
    paper.pdf(path=DOCS / "ask-answer.pdf", prefer_css_page_size=True, print_background=True)
    paper.close()
    page.get_by_text("To print", exact=True).click()
    rest(page)


def compute(chromium: Browser, address: str, button: str, *, wait: bool = True) -> str:
    """Start runs by a button and return their ids, with `wait` after all have ended."""
    page = chromium.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce").new_page()
    page.goto(address)
    page.get_by_role("button", name=re.compile(f"^{button}$")).click(timeout=60_000)
    page.wait_for_url(re.compile(r"[?&]runs?="), timeout=60_000)
    if wait:
        stop = page.get_by_role("button", name=re.compile("^Stop")).first
        with suppress(TimeoutError):  # a short run is over before the button is seen
            stop.wait_for(timeout=15_000)
        stop.wait_for(state="detached", timeout=MINUTES)
    runs = re.search(r"[?&]runs?=([^&]*)", page.url)
    page.context.close()
    assert runs
    return runs[1]


def recorded_shots() -> Iterator[Shot]:
    """Yield the pictures that need no computation."""
    yield from in_both_schemes("lab", "/?run=r02", wait_until_finished, {1440: 1180, 400: 2400})
    for width in (1280, 400):
        yield Shot(f"door-{width}-light", "/", wait_for_question, width, 720)
        yield Shot(f"door-{width}-dark", "/", open_door, width, 720, "dark")
    yield from in_both_schemes("own-picture", "/", attack_own_picture, {1440: 1600, 400: 3000}, part=".gle-own-picture")
    yield from in_both_schemes("compare", "/compare", wait_until_finished, {1440: 1180, 400: 2400})
    yield from in_both_schemes("ask", "/ask", show_questions, {1280: 1400, 400: 2400})
    for name, cut in (("architecture-resnet18", ""), ("architecture-resnet18-skip-cut", " cut")):
        yield Shot(name, f"/architecture?{urlencode({'net': RESNET18.format(cut)})}", wait_for_bars, 1440, 1800)
    yield from in_both_schemes("papers", "/papers#overturned", rest, {1280: 1500, 400: 1700})
    yield Shot("learn-1280-light", "/learn", press_keys(), 1280, 1000)
    yield Shot("learn-400-dark", "/learn#02-search/2", press_keys(), 400, 900, "dark")
    yield Shot("learn-guess-1280-light", "/learn#02-search/3", press_keys(), 1280, 720)
    yield Shot("learn-answer-1280-dark", "/learn#02-search/3", press_keys("1", "ArrowRight"), 1280, 720, "dark")
    for width, height in ((1280, 720), (1920, 1080)):
        yield Shot(f"learn-presenter-{width}", "/learn#02-search/4?present", press_keys(), width, height)
        votes = press_keys(*("Shift+Digit1",) * 3, *("Shift+Digit2",) * 9, "v", *("Shift+Digit1",) * 8, *("Shift+Digit2",) * 4, "r")
        yield Shot(f"learn-votes-{width}", "/learn#02-search/3?present", votes, width, height)
    yield Shot("learn-speaker-1280", "/learn#02-search/3?present", open_speaker_window, 1280, 720)
    yield Shot("learn-worksheet", "/learn/worksheets/02-search.html", rest, 800, 1130)
    yield Shot("projector-lab-1280", "/?run=r02", project, 1280, 720)
    yield Shot("projector-compare-1280", "/compare", project, 1280, 720)


def computed_shots(chromium: Browser, base: str, wanted: Callable[[str], bool]) -> Iterator[Shot]:
    """Compute runs for the wanted pictures, and yield these pictures."""
    for name, settings in LAB.items():
        if wanted(name):
            yield Shot(name, f"/?run={compute(chromium, f'{base}/?v=1&expert=1&{settings}', 'Run')}", wait_until_finished, 1440, 1180)
    if wanted("lab-server") or wanted("lab-layers") or wanted("assumptions"):
        run = f"/?expert=1&run={compute(chromium, f'{base}/?{SERVER}&refuse=False', 'Run')}"
        yield from in_both_schemes("lab-server", run, wait_until_finished, {1440: 1700, 400: 2400})
        yield from in_both_schemes("lab-layers", run, wait_for_layers, {1440: 3600, 400: 3600}, part=".gle-handed")
        yield from in_both_schemes("assumptions", run, wait_until_finished, {1440: 3600, 400: 9500}, part=".gle-table")
    if wanted("lab-refused"):
        run = f"/?expert=1&run={compute(chromium, f'{base}/?{SERVER}', 'Run')}"
        yield from in_both_schemes("lab-refused", run, wait_until_refused, {1440: 1700, 400: 2400})
    if wanted("compare-servers"):
        runs = compute(chromium, f"{base}/compare?{SERVERS}", "Run all")
        yield from in_both_schemes("compare-servers", f"/compare?runs={runs}", wait_until_finished, {1440: 2400, 400: 3600})
    if wanted("ask-server"):
        answer = f"/ask?{CHEATING}&runs={compute(chromium, f'{base}/ask?{CHEATING}', 'Ask')}"
        yield from in_both_schemes("ask-server", answer, show_questions, {1440: 2400, 400: 3600})
    if wanted("compare-running"):
        for seed, shot in enumerate(in_both_schemes("compare-running", "", wait_until_underway, {1440: 1180, 400: 2400}), 2):
            runs = compute(chromium, f"{base}/compare?v=1&seed={seed}", "Run all", wait=False)
            yield replace(shot, address=f"/compare?runs={runs}")
    if wanted("verdicts"):
        runs = compute(chromium, f"{base}/compare?{NAIVE}&arms={','.join(EVERY_WORD)}", "Run all")
        cut = compute(chromium, f"{base}/compare?{NAIVE}&max_seconds=1&arms={','.join(EVERY_WORD[2:])}", "Run all").split(",")[-1]
        yield from in_both_schemes(
            "verdicts", f"/compare?runs={runs},{cut}", wait_until_finished, {1280: 2400, 400: 3200}, part=".gle-stage"
        )
    if wanted("ask-answer"):
        answer = f"/ask?{QUESTION}&runs={compute(chromium, f'{base}/ask?{QUESTION}', 'Ask')}"
        yield from in_both_schemes("ask-answer", answer, print_answer, {1280: 4000, 400: 7000})


def main(base: str, names: list[str]) -> None:
    """Take all pictures, or the named ones."""

    def wanted(name: str) -> bool:
        return not names or any(name.startswith(one) or one.startswith(name) for one in names)

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=os.environ["LEAKAGE_BROWSER"], args=["--no-sandbox", "--disable-gpu"])
        for shots in (recorded_shots(), computed_shots(chromium, base, wanted)):
            for shot in shots:
                if wanted(shot.name):
                    take(chromium, base, shot)
        chromium.close()


def take(chromium: Browser, base: str, shot: Shot) -> None:
    """Take one picture."""
    page = chromium.new_context(
        viewport={"width": shot.width, "height": shot.height}, color_scheme=shot.scheme, reduced_motion="reduce"
    ).new_page()
    page.goto(base + shot.address)
    shown = shot.ready(page) or page
    taken = (shown.locator(shot.part).first if shot.part else shown).screenshot()
    with Image.open(BytesIO(taken)) as picture:
        # Unlike the default method, this one keeps the color of a small sign.
        few = picture.convert("RGB").quantize(COLORS, method=Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE)
        few.save(DOCS / f"{shot.name}.png", optimize=True)
    page.context.close()
    print(shot.name)


main(sys.argv[1], sys.argv[2:])
