"""A visitor attacks a picture of their own inside the page: from a folder without a network, and from the server under its own policy."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, expect
from small_problems import CATALOG

from leakage.data.images import read
from leakage.web.site import write_site

LONG = 180_000  # milliseconds: for an attack on a busy machine
INSIDE = ("file:", "blob:", "data:")  # what a page asks for without a network


@pytest.fixture(scope="module")
def photograph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A photograph as a phone saves it: 640 x 480 pixels, JPEG, turned by its EXIF orientation."""
    upright = Image.fromarray(read("gallery", "chelsea", 256, 3)).resize((480, 480))
    wide = Image.new("RGB", (640, 480), "white")
    wide.paste(upright, (80, 0))
    file = tmp_path_factory.mktemp("own") / "photograph.jpg"
    exif = Image.Exif()
    exif[274] = 6  # the camera was turned: the file lies on its side
    wide.rotate(90, expand=True).save(file, quality=95, exif=exif)
    return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("made") / "site"
    write_site(made, CATALOG)
    return made


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    made = chromium.new_context(viewport={"width": 400, "height": 800}, reduced_motion="reduce")
    yield made
    made.close()


def watched(context: BrowserContext) -> tuple[Page, list[str], list[str]]:
    """Return a page, what its console told of errors, and the addresses that it asked for."""
    page, wrong, asked = context.new_page(), list[str](), list[str]()
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: asked.append(request.url if request.method == "GET" else f"{request.method} {request.url}"))
    return page, wrong, asked


def attack(page: Page, file: Path) -> float:
    """Choose a file, attack it, wait for the end, and return the closeness in dB."""
    page.locator(".gle-own-picture input[type=file]").set_input_files(file)
    expect(page.locator(".gle-own-preview")).to_contain_text("It never left this device")
    page.get_by_role("button", name="Attack it").click()
    run = page.locator(".gle-own-run").first
    expect(run).to_have_attribute("data-over", "true", timeout=LONG)
    expect(run.locator(".gle-own-word")).not_to_be_empty()
    return float(run.locator(".gle-own-big").inner_text().removesuffix(" dB"))


def walk(page: Page, address: str, beat: int) -> None:
    """Open a lesson and go to a beat, with a guess at each question on the way."""
    page.goto(address)
    for place in range(1, beat + 1):
        expect(page.locator(".gle-lesson")).to_have_attribute("data-place", str(place), timeout=LONG)
        if page.locator(".gle-option").count():
            page.keyboard.press("2")
        if place < beat:
            page.keyboard.press("ArrowRight")


def preview(page: Page) -> np.ndarray:
    """Return the picture that the phone trains on, (32, 32, 3) in [0, 1]."""
    pixels = page.locator(".gle-own-preview canvas").evaluate("(one) => [...one.getContext('2d').getImageData(0, 0, 32, 32).data]")
    return np.array(pixels, dtype=float).reshape(32, 32, 4)[..., :3] / 255


def test_at_the_door_of_a_folder_without_a_network_the_picture_comes_back_and_nothing_is_asked_for(
    context: BrowserContext, folder: Path, photograph: Path
) -> None:
    context.set_offline(True)
    page, wrong, asked = watched(context)
    page.goto((folder / "index.html").as_uri())
    assert not page.locator(".gle-own-picture").count()
    before = len(asked)
    page.get_by_role("button", name="Try your own picture").click()
    closeness = attack(page, photograph)
    assert closeness > 40
    upright = read("gallery", "chelsea", 32, 3) / 255
    assert np.abs(preview(page) - upright).mean() < 0.03  # upright, its middle; another way of reducing it
    run = page.locator(".gle-own-run")
    expect(run).to_contain_text("recognizable")
    expect(run).to_contain_text("A plain grey picture has")
    expect(run).to_contain_text("15,826 numbers")
    expect(run).to_contain_text("Yours got class number 3; the attacker read number 3: right.")
    assert [address for address in asked if not address.startswith(INSIDE)] == []
    assert any(address.endswith(".js") for address in asked[before:])  # the script is loaded when it is asked for
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 400
    assert page.evaluate("() => localStorage.length + sessionStorage.length") <= 1  # the door's note that it was answered
    assert wrong == []


def test_a_second_run_stands_beside_the_first_with_a_protection_and_a_run_can_be_stopped(
    context: BrowserContext, folder: Path, photograph: Path
) -> None:
    page, wrong, _ = watched(context)
    page.goto((folder / "index.html").as_uri())
    page.get_by_role("button", name="Try your own picture").click()
    page.locator(".gle-own-picture input[type=file]").set_input_files(photograph)
    page.get_by_role("button", name="Attack it").click()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".gle-own-run").first).to_contain_text("Stopped at step")
    page.get_by_label("Protection", exact=True).select_option("noise")
    expect(page.locator(".gle-own-means")).to_have_text("The phone adds random numbers to what it sends.")
    expect(page.locator(".gle-own-run")).to_contain_text("Made with the settings before")
    page.get_by_label("Strength").fill("1000")
    page.get_by_role("button", name="Attack it again").click()
    latest = page.locator(".gle-own-run").first
    expect(latest).to_have_attribute("data-over", "true", timeout=LONG)
    expect(latest).to_contain_text("Noise: 1")
    expect(latest).to_contain_text("not shown by this attack")
    expect(page.locator(".gle-own-run")).to_have_count(2)
    lab = page.get_by_role("link", name=re.compile(r"^Open these settings in the Lab.*\(needs the program: two commands\)$"))
    assert "gaussian_noise.scale=1" in (lab.get_attribute("href") or "")
    assert wrong == []


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_below_the_settings_moves_when_a_protection_is_chosen(
    context: BrowserContext, folder: Path, photograph: Path, width: int
) -> None:
    page, _, _ = watched(context)
    page.set_viewport_size({"width": width, "height": 800})
    page.goto((folder / "index.html").as_uri())
    page.get_by_role("button", name="Try your own picture").click()
    page.locator(".gle-own-picture input[type=file]").set_input_files(photograph)
    box = page.get_by_label("Protection", exact=True)
    expect(box).to_be_visible()
    places = set()
    for protection in box.locator("option").all():
        box.select_option(protection.get_attribute("value"))
        places.add(page.locator(".gle-own-limits").evaluate("(one) => one.getBoundingClientRect().top + scrollY"))
    assert len(places) == 1


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("notes.jpg", b"no picture", "cannot read the file as a picture"),
        ("photo.heic", b"\0\0\0\x18ftypheic", "cannot read HEIC"),
        ("dot.png", None, "The picture has 1 x 1 pixels"),
    ],
)
def test_a_file_that_is_no_picture_gets_a_sentence(
    context: BrowserContext, folder: Path, tmp_path: Path, name: str, data: bytes | None, words: str
) -> None:
    page, _, _ = watched(context)
    page.goto((folder / "index.html").as_uri())
    page.get_by_role("button", name="Try your own picture").click()
    file = tmp_path / name
    if data is None:
        Image.new("RGB", (1, 1)).save(file)
    else:
        file.write_bytes(data)
    page.locator(".gle-own-picture input[type=file]").set_input_files(file)
    expect(page.get_by_role("alert")).to_contain_text(words)
    expect(page.get_by_role("button", name="Attack it")).to_be_hidden()


@pytest.mark.parametrize("kind", ["transparent", "grey 16 bit", "CMYK", "animated", "portrait"])
def test_unusual_pictures_are_read_as_a_person_would_expect(context: BrowserContext, folder: Path, tmp_path: Path, kind: str) -> None:
    """Each file shows a white left half and a dark right half in its middle square."""
    page, wrong, _ = watched(context)
    half = Image.new("RGB", (64, 64), "white")
    half.paste((40, 40, 40), (32, 0, 64, 64))
    file = tmp_path / f"picture.{ {'CMYK': 'jpg', 'animated': 'gif'}.get(kind, 'png') }"
    if kind == "transparent":  # where there is nothing, white is seen
        clear = Image.new("RGBA", (64, 64), (0, 0, 0, 0))
        clear.paste((40, 40, 40, 255), (32, 0, 64, 64))
        clear.save(file)
    elif kind == "grey 16 bit":
        Image.fromarray(np.asarray(half.convert("L")).astype(np.uint16) * 257).save(file)
    elif kind == "CMYK":
        half.convert("CMYK").save(file, quality=95)
    elif kind == "animated":
        half.save(file, save_all=True, append_images=[Image.new("RGB", (64, 64), "red")], duration=50)
    else:
        tall = Image.new("RGB", (64, 200), "blue")
        tall.paste(half, (0, 68))
        tall.save(file)
    page.goto((folder / "index.html").as_uri())
    page.get_by_role("button", name="Try your own picture").click()
    page.locator(".gle-own-picture input[type=file]").set_input_files(file)
    expect(page.locator(".gle-own-preview canvas")).to_be_visible()
    seen = preview(page)
    assert np.abs(seen[:, :14] - 1).max() < 0.1
    assert np.abs(seen[:, 18:] - 40 / 255).max() < 0.15
    assert wrong == []


@pytest.mark.parametrize("place", ["the door of the Lab", "a lesson"])
def test_the_running_server_lets_the_page_compute_under_its_own_policy(
    context: BrowserContext, site: str, photograph: Path, place: str
) -> None:
    page, wrong, asked = watched(context)
    if place == "a lesson":
        walk(page, f"{site}/learn#02-search", 5)
        page.get_by_role("button", name="Compute it here, with your own picture").click()
    else:
        page.goto(site)
        page.get_by_role("button", name="Try your own picture").click(timeout=LONG)
    expect(page.locator(".gle-own-picture")).to_be_visible()
    asked.clear()
    assert attack(page, photograph) > 40
    theirs = [address for address in asked if not address.startswith(INSIDE)]  # the Lab goes on to load its own parts
    assert [address for address in theirs if place == "a lesson" or not address.startswith(site) or len(address) > 500] == []
    query = page.locator(".gle-own-limits a").get_attribute("href") or ""
    assert query.startswith(("/?v=1", f"{site}/?v=1"))
    assert wrong == []


def test_a_beat_hands_its_choice_over_and_says_where_a_page_cannot_compute_it(context: BrowserContext, site: str) -> None:
    page, _, _ = watched(context)
    walk(page, f"{site}/learn#07-noise", 5)
    grid = page.locator(".gle-whatif")
    grid.locator(".gle-value", has_text=re.compile("^0.03$")).click()
    page.get_by_role("button", name="Compute it here, with your own picture").click()
    expect(page.locator(".gle-own-picture")).to_be_visible()
    expect(page.locator(".gle-own-field output")).to_have_text("0.03")
    grid.locator(".gle-value", has_text="16 rounds, averaged").click()
    page.get_by_role("button", name="Compute it here, with your own picture").click()
    expect(page.get_by_label("Protection", exact=True)).to_have_value("averaged")
    walk(page, f"{site}/learn#05-local-steps", 5)
    expect(grid).to_contain_text("A page cannot compute these settings with your own picture; the Lab can.")
