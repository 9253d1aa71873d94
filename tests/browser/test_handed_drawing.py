"""The drawing of the layers that a server hands out, in a real browser beside a run: one layer below the other, inside its card."""

from itertools import pairwise

import pytest
from playwright.sync_api import Browser, expect

LAYERS = ".gle-handed li"
BOXES = """(list) => list.map((one) => {
    const { top, bottom, left, right } = one.getBoundingClientRect();
    return [top, bottom, left, right];
})"""


@pytest.mark.parametrize("width", [1440, 400])
def test_layers_stand_below_one_another_inside_the_card(site: str, chromium: Browser, width: int) -> None:
    page = chromium.new_context(viewport={"width": width, "height": 3000}).new_page()
    page.goto(f"{site}?expert=1&batch=4&phones=4&server=loki&attack=bins")
    expect(page.locator(".gle-handed")).to_be_visible(timeout=120_000)
    expect(page.locator(".gle-run")).to_be_visible(timeout=120_000)  # its styles are on the page too
    expect(page.locator(LAYERS)).to_have_count(6)  # pictures, a convolution, two layers, the agreed network, the answer
    expect(page.locator(LAYERS).nth(1)).to_contain_text("added Convolution 3 → 16 maps")
    expect(page.locator(".gle-handed svg[aria-label$='phone 4']")).to_be_visible()
    (card,) = page.locator(".st-key-step-2").evaluate_all(BOXES)
    boxes = page.locator(LAYERS).evaluate_all(BOXES)
    assert all(above[1] < below[0] for above, below in pairwise(boxes))
    for _, _, left, right in [*boxes, *page.locator(".gle-handed svg").evaluate_all(BOXES)]:
        assert card[2] < left < right < card[3]
    page.context.close()
