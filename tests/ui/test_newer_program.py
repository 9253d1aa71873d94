"""While a newer program uses the home folder, the pages of the older program say only that."""

import pytest
from page_visits import Open, fine, words

from leakage.runs.programs import NEWER
from leakage.runs.service import Service
from leakage.web.server import dispatcher_watch


@pytest.mark.usefixtures("door")
def test_an_older_program_says_that_a_newer_one_is_at_work(visit: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """On whatever page: app.py runs before each."""
    sentence = NEWER.format("9.0.0", "/opt/newer", "/home/runs")
    monkeypatch.setattr(dispatcher_watch(), "superseded", sentence)
    at = visit()
    fine(at)
    assert words(at) == sentence
    assert not at.button
    assert not at.selectbox


def test_its_pages_are_as_ever_when_that_has_left(visit: Open, door: Service) -> None:
    assert not dispatcher_watch().superseded
    at = visit()
    assert "newer version" not in words(at)
    assert at.button(key="run-button")
