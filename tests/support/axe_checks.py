"""Accessibility rules of axe (WCAG 2.2 AA) on a page, at several sizes, in light and dark."""

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

SIZES = ((1280, 720), (400, 720))
HALL = ((1280, 720),)
COLOURS = ["color-contrast", "link-in-text-block"]  # all that a theme can break
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
VIOLATIONS = """
async ([rules, ours]) => {
  const roots = [...document.body.querySelectorAll('[class*="gle-"]')]
    .filter((one) => !one.parentElement.closest('body [class*="gle-"]') && one.checkVisibility());
  const found = await axe.run(ours ? { include: roots } : document, { runOnly: rules, resultTypes: ['violations'] });
  return found.violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(' ')}`));
}
"""


def violations(page: Page, rules: list[str], *, ours: bool = False) -> list[str]:
    """Return what breaks these rules on the page, or, with `ours`, in the parts of it that are not Streamlit's."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found: list[str] = page.evaluate(VIOLATIONS, [rules, ours])
    return found


def check(page: Page, what: str, sizes: tuple[tuple[int, int], ...] = SIZES) -> None:
    """Check all rules in light, those about colours in dark, at every size."""
    for width, height in sizes:
        page.set_viewport_size({"width": width, "height": height})
        for scheme, rules in (("light", LEVELS), ("dark", COLOURS)):
            page.emulate_media(color_scheme=scheme)
            assert violations(page, rules) == [], f"{what}, {width} px, {scheme}"
