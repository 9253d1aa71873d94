"""The presets of the Lab: two in the row, the others in a menu that closes after a choice."""

from urllib.parse import parse_qs, urlsplit

from browser_waiting import choose_preset, wait_for
from playwright.sync_api import Browser, expect

from leakage.spec.prepared import prepared
from leakage.ui.lab.presets import IN_LINE

RUNS = "(before) => { const run = new URL(location).searchParams.get('run'); return run && run !== before; }"


def test_the_menu_of_presets_closes_when_one_is_chosen(site: str, chromium: Browser) -> None:
    page = chromium.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce").new_page()
    page.goto(f"{site}/?")
    menu = page.get_by_role("button", name="More", exact=True)
    expect(menu).to_be_visible(timeout=120_000)
    before = ""
    for preset in prepared().presets[IN_LINE : IN_LINE + 2]:  # the first while the page is still being drawn
        choice = page.get_by_role("button", name=preset.title, exact=False)
        expect(choice).to_have_count(0)
        choose_preset(page, preset.title, lambda timeout, before=before: wait_for(page, RUNS, arg=before, timeout=timeout))
        before = parse_qs(urlsplit(page.url).query)["run"][0]
        expect(choice).to_have_count(0)
        expect(menu).to_have_attribute("aria-expanded", "false")
        assert len(before.split(",")) == len(preset.pair) == 2
