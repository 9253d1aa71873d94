"""Precomputed results, computed again on the page: clipping, noise and sums agree. Minutes; needs CIFAR-10."""

import json
import os
import re

import pytest
from playwright.sync_api import Browser, expect

from leakage.settings import ROOT
from leakage.spec.words import LEAKS

pytestmark = [pytest.mark.slow, pytest.mark.skipif("LEAKAGE_DATA" not in os.environ, reason="needs CIFAR-10: set LEAKAGE_DATA")]
BOOK = ROOT / "benchmarks" / "results" / "matrix.json"
LIMIT = 900_000  # milliseconds
CLOSE = 1.0  # dB: another number of threads adds up in another order, and 1,500 steps of signs make more of it
ALONE = {  # an arm of Compare -> the defense in the book
    "none": None,
    "clipping": ("clipping", {"bound": 1.0}),
    "clipping:scope=each layer": ("clipping", {"bound": 1.0, "scope": "each layer"}),
    "gaussian_noise:scale=0.001": ("gaussian_noise", {"scale": 0.001}),
    "gaussian_noise": ("gaussian_noise", {"scale": 0.01}),
    "gaussian_noise:scale=0.1": ("gaussian_noise", {"scale": 0.1}),
    "laplacian_noise:scale=0.01": ("laplacian_noise", {"scale": 0.01}),
    "low_precision:number=fp16": ("low_precision", {"number": "fp16"}),
}
HEADS = "(line) => [...line.querySelectorAll('th')].flatMap((cell) => Array(cell.colSpan).fill(cell.innerText.trim()))"
CELLS = "(line) => [...line.querySelectorAll('td')].flatMap((cell) => Array(cell.colSpan).fill(cell.innerText))"
SUMMED = {name: ALONE[name] for name in ("none", "gaussian_noise")}


def in_book(part: tuple[str, dict[str, object]] | None, who: str, phones: int) -> tuple[str, float] | None:
    """Word and PSNR of the first picture (of each phone) with the first seed."""
    for run in json.loads(BOOK.read_text())["runs"]:
        asked = [(one["id"], one["fields"]) for one in run["defenses"]]
        about = (run["attack"], run["who"], run.get("phones", 1), run["picture"], run["seed"])
        if asked == ([part] if part else []) and about == ("inverting_gradients", who, phones, 0, 1):
            return run["result"]["word"], run["result"]["psnr"]
    return None


@pytest.mark.parametrize(("arms", "phones"), [(ALONE, 1), (SUMMED, 4)], ids=["one phone", "four phones added up"])
def test_the_table_beforehand_and_the_comparison_read_the_same(
    site: str, chromium: Browser, arms: dict[str, tuple[str, dict[str, object]] | None], phones: int
) -> None:
    page = chromium.new_context(viewport={"width": 1440, "height": 1000}, reduced_motion="reduce").new_page()
    pictures = ",".join(f"cifar10:{number}" for number in range(phones))
    how = "voices=both&attack=inverting_gradients&inverting_gradients.steps=1500"
    page.goto(f"{site}/compare?v=1&{how}&source=cifar10&pictures={pictures}&batch={phones}&phones={phones}&arms={','.join(arms)}")
    page.get_by_role("button", name="Run all").click(timeout=120_000)
    lines = page.locator(".gle-compared tbody tr:not(.gle-baseline)")
    expect(lines).to_have_count(len(arms), timeout=120_000)
    expect(page.get_by_role("button", name="Stop all")).to_have_count(0, timeout=LIMIT)
    heads = page.locator(".gle-compared thead tr").first.evaluate(HEADS)[1:]  # the first names the line
    pairs = []
    for line, part in zip(lines.all(), arms.values(), strict=True):
        cells = line.evaluate(CELLS)
        for place, who in enumerate(("naive", "imitate")):
            word, psnr = cells[heads.index("Verdict") + place], re.match(r"[\d.]+", cells[heads.index("PSNR") + place])
            if psnr and (known := in_book(part, who, phones)):
                pairs.append((part, who, (word.splitlines()[0].strip().lower(), float(psnr[0])), known))
    print(*pairs, sep="\n")
    assert len(pairs) >= (10 if phones == 1 else 2)
    for part, who, live, before in pairs:
        assert (live[0] in LEAKS) == (before[0] in LEAKS), (part, who)  # at a border one word may be the other, and a leak stays a leak
        assert abs(live[1] - before[1]) < CLOSE, (part, who)
