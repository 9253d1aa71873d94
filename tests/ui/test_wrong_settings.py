"""Wrong links, files and settings: each is named before Run is pressed, with what is used instead."""

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from visiting import Open, asked, fine, press_run, words

from leakage.runs.service import Service

LINKS = {  # an address of the lab -> what the page says of it
    "an attack": ({"attack": "nope"}, "attack=nope is not known here; iDLG is used instead."),
}


def told(at: AppTest) -> str:
    """What the page says of its link; empty where it took all of it."""
    fine(at)
    return "\n".join(one.value for one in at.warning if "link" in one.value)


@pytest.mark.parametrize(("address", "sentence"), LINKS.values(), ids=list(LINKS))
def test_a_wrong_link_to_the_lab_is_named_before_run(door: Service, visit: Open, address: dict[str, str], sentence: str) -> None:
    at = visit(**address)
    print(told(at))
    assert sentence in told(at)
