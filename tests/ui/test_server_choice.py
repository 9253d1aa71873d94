"""The server that changes the model, as the Lab offers it: its attack, links, files, and what is refused before the run."""

from urllib.parse import parse_qsl

import pytest
from page_visits import Open, asked, fine, press_run, words
from small_problems import CATALOG
from streamlit.testing.v1 import AppTest

from leakage.learn.lab_link import lab_query
from leakage.runs.service import Service
from leakage.spec.catalog import ServerEntry
from leakage.spec.experiment import Experiment, Part, parse

CHECKS = {"checks": "new_layers,equal_rows", "refuse": "False", "new_layers.threshold": "5.0"}
CHEATING = {"batch": "8", "phones": "4", "server": "imprint", "imprint.bins": "64", "attack": "bins", **CHECKS}
PATIENT = [entry for entry in CATALOG.servers if entry.rounds > 1]


def choose(at: AppTest, server: str) -> AppTest:
    at.selectbox(key="server").select(server).run()
    fine(at)
    return at


def test_choosing_a_server_offers_its_attack_and_an_honest_server_takes_it_back(door: Service, visit: Open) -> None:
    at = visit(batch="4")
    assert at.selectbox(key="server").value == "none"
    assert choose(at, "imprint").selectbox(key="attack").value == "bins"
    found = asked(door, press_run(at))
    assert (found.server.id, found.attack.id) == ("imprint", "bins")
    assert choose(at, "none").selectbox(key="attack").value == Experiment().attack.id
    assert choose(at, "first_layer").selectbox(key="attack").value == "linear_layer"
    assert choose(at, "none").selectbox(key="attack").value == "linear_layer"  # it reads the updates for an honest server too
    assert asked(door, press_run(at)).server is None


@pytest.mark.long
def test_a_link_a_file_and_the_menus_give_the_same_experiment(door: Service, visit: Open) -> None:
    at = visit(**CHEATING)
    first = asked(door, press_run(at))
    assert first.server == Part(id="imprint", fields={**CATALOG.servers.get("imprint").resolve({}), "bins": 64})
    address = {name: str(value) for name, value in at.query_params.items() if name != "run"}
    assert {"server": "imprint", "attack": "bins", **CHECKS}.items() <= address.items()
    assert ([part.id for part in first.checks], first.checks[0].fields, first.refuse) == (
        ["new_layers", "equal_rows"],
        {"threshold": 5},
        False,
    )
    of_file = parse(first.model_dump_json())
    for page in (
        visit(**address),
        visit(run=at.query_params["run"]),
        visit(**dict(parse_qsl(lab_query(of_file, CATALOG) or ""))),
        choose(visit(batch="8", phones="4", **{"imprint.bins": "64"}, **CHECKS), "imprint"),
    ):
        fine(page)
        assert asked(door, press_run(page)).resolve(CATALOG).digest() == first.digest()
    assert of_file == first


def test_a_check_that_is_asked_twice_has_no_link_that_would_drop_it() -> None:
    check = Part(id="new_layers")
    assert lab_query(Experiment(checks=(check, check.model_copy(update={"fields": {"threshold": 4}}))), CATALOG) is None
    assert "checks=new_layers" in (lab_query(Experiment(checks=(check,)), CATALOG) or "")


@pytest.mark.parametrize("entry", PATIENT, ids=lambda entry: entry.id)
def test_a_server_that_needs_more_rounds_is_refused_before_the_run(door: Service, visit: Open, entry: ServerEntry) -> None:
    at = choose(visit(batch="4", rounds=str(entry.rounds - 1)), entry.id)
    assert at.button(key="run-button").disabled
    assert f"{entry.short} needs at least {entry.rounds} watched rounds, given was {entry.rounds - 1}." in words(at)
    assert not at.slider(key="rounds").set_value(entry.rounds).run().button(key="run-button").disabled


def test_reset_takes_the_server_back(door: Service, visit: Open) -> None:
    at = visit(**CHEATING)
    fine(next(button for button in at.button if "Reset" in button.label).click().run())
    assert at.selectbox(key="server").value == "none"
    assert asked(door, press_run(at)) == asked(door, press_run(visit()))
