"""How soon the first picture moves on Learn and above the Lab, warm; and the sizes of lessons, recordings and the site."""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from live import Site, browser, usable
from playwright.sync_api import Browser

from leakage.learn.data_address import data_folder
from leakage.learn.lessons import FOLDER, lessons
from leakage.runs.notes import SPEEDS
from leakage.web.site import write_site
from leakage.workers import plugin_catalog

TRIES = 5
FRESH = 15  # seconds in which a fresh worker takes the place of the one that measured
# The second distinct frame on a canvas, in seconds after the navigation began: looked for at every frame that the browser draws.
WATCH = """
addEventListener('DOMContentLoaded', () => {
  const seen = new Set();
  const copy = Object.assign(document.createElement('canvas'), { width: 32, height: 32 }).getContext('2d', { willReadFrequently: true });
  const look = () => {
    const canvas = document.querySelector('CANVAS');
    if (canvas?.width) {
      copy.drawImage(canvas, 0, 0);
      const pixels = copy.getImageData(0, 0, 32, 32).data;
      if (pixels.some((one) => one)) seen.add(pixels.join());
    }
    if (seen.size < 2) requestAnimationFrame(look);
    else window.moved = performance.now();
  };
  look();
});
"""
PAGES = {"learn": ("/learn#02-search/2", ".gle-attacker canvas"), "lab": ("/", ".gle-door-server canvas")}


def seconds_to_move(chromium: Browser, address: str, canvas: str) -> list[float]:
    """Of each try but one before them, which warms caches."""
    page = chromium.new_context(viewport={"width": 1280, "height": 720}).new_page()
    page.add_init_script(WATCH.replace("CANVAS", canvas))
    taken = []
    for _ in range(TRIES + 1):
        page.goto("about:blank")
        page.goto(address)
        page.wait_for_function("() => window.moved", polling=20, timeout=60_000)
        taken.append(page.evaluate("() => window.moved") / 1000)
    page.context.close()
    return taken[1:]


def weight_of_lessons(url: str) -> dict[str, int]:
    """Return the bytes that a browser fetches for each lesson: words and columns, compressed, and its films."""
    weights = {}
    with httpx.Client(headers={"Accept-Encoding": "gzip"}, timeout=60) as client:
        for lesson in lessons():
            with client.stream("GET", f"{url}{data_folder('')}/lessons/{lesson.id}.json") as answer:
                words = sum(len(part) for part in answer.iter_raw())
            films = [("runs", name) for name in lesson.runs] + [("grids", name) for name in lesson.grids]
            weights[lesson.id] = words + sum((FOLDER / kind / f"{name}.webp").stat().st_size for kind, name in films)
    return weights


def size_of(folder: Path) -> int:
    """Return the bytes of all files of a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def measured(site: Site) -> dict[str, Any]:
    """All of it; the slowest of five tries is their 95th percentile."""
    with browser() as chromium:
        page = chromium.new_page()
        usable(page, site.url)
        page.close()
        while not site.service().store.note(SPEEDS):  # the workers settle in: once in a machine's life they measure it for a minute
            time.sleep(1)
        time.sleep(FRESH)
        moved = {name: seconds_to_move(chromium, site.url + address, canvas) for name, (address, canvas) in PAGES.items()}
    weights = weight_of_lessons(site.url)
    with tempfile.TemporaryDirectory() as folder:
        whole = write_site(Path(folder) / "site", plugin_catalog.describe())
    return {
        **{f"{name}_s": taken for name, taken in moved.items()},
        **{f"{name}_p95_s": max(taken) for name, taken in moved.items()},
        **{f"{name}_median_s": statistics.median(taken) for name, taken in moved.items()},
        "lessons": weights,
        "largest_lesson": max(weights.values()),
        "recordings": size_of(FOLDER / "runs") + size_of(FOLDER / "grids"),
        "site": whole,
    }
