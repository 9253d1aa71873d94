"""Presets and stories with published numbers: what the Lab and Compare show beside the recorded runs."""

import pytest
from page_visits import Open, fine, opener, words
from streamlit.testing.v1 import AppTest

from leakage.learn.restored import restore_all
from leakage.runs.service import Service
from leakage.spec.prepared import Preset, prepared

EACH = pytest.mark.parametrize("preset", [preset for preset in prepared().presets if preset.numbers], ids=lambda preset: preset.name)


@pytest.fixture
def lab(door: Service, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Open the Lab by an address."""
    restore_all(door.store)
    return opener("pages/lab.py", monkeypatch)


@pytest.fixture
def compare(door: Service, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Open Compare by an address."""
    restore_all(door.store)
    return opener("pages/compare.py", monkeypatch)


def drawn(at: AppTest) -> str:
    """Return what the page draws as HTML."""
    return "\n".join(str(element.proto.body) for element in at.get("html"))


@EACH
def test_the_lab_plays_a_claim_of_a_paper_with_the_settings_of_its_second_run(door: Service, lab: Open, preset: Preset) -> None:
    at = lab(preset=preset.name)
    fine(at)
    assert at.query_params["run"] == ",".join(preset.recorded)
    assert door.store.queue() == []
    assert "belongs to other settings" not in words(at)
    assert preset.story.split(". ")[1] in words(at)
    assert [f"#{id}" in drawn(at) for id in preset.rows] == [True] * len(preset.rows)
    assert "dB" in drawn(at)


def test_compare_plays_dlg_idlg_and_admm_with_their_strip(compare: Open) -> None:
    (story,) = prepared().compare.stories
    at = compare(runs=",".join(story.recorded))
    fine(at)
    assert "are not here" not in words(at)
    assert story.story.split(". ")[1] in words(at)
    assert f"/api/compare/strip.png?ids={','.join(story.recorded)}" in drawn(at)
    assert '#admm-repaired">DLG on FedADMM, both mistakes repaired</a>' in drawn(at)
    assert "<td>overturned</td>" in drawn(at)
    two = compare(runs=",".join(story.recorded[:2]))
    assert "strip.png" not in drawn(two)


def test_the_menu_of_presets_links_to_the_story_on_compare(lab: Open) -> None:
    (story,) = prepared().compare.stories
    links = [element.proto for element in lab().get("link_button")]
    assert [link.url for link in links if link.label == story.title] == [f"/compare?runs={','.join(story.recorded)}"]
