"""Simple and Expert in the Lab: two views of the same settings; and which visitors see how much of the front page."""

import json
from typing import Any
from urllib.parse import parse_qsl

import pytest
from page_visits import Open, asked, fine, press_run, words
from small_problems import CATALOG
from streamlit.testing.v1 import AppTest

from leakage.learn.lab_link import lab_query
from leakage.learn.planned import planned_run
from leakage.learn.restored import restore_all
from leakage.runs.service import Service
from leakage.spec.experiment import Experiment
from leakage.spec.lab_settings import without_default_strategy
from leakage.spec.prepared import prepared

SIMPLE = {"simple-local", "simple-count", "simple-network", "simple-protection", "simple-adaptive"}


def keys(at: AppTest) -> set[str]:
    return {str(element.key) for element in (*at.selectbox, *at.button_group, *at.slider, *at.number_input, *at.toggle) if element.key}


def is_simple(at: AppTest) -> bool:
    fine(at)
    assert (keys(at) >= SIMPLE) != ("attack" in keys(at))
    return keys(at) >= SIMPLE


def press(at: AppTest, name: str, value: Any) -> AppTest:
    """Choose in the simple form."""
    element = at.selectbox(key=f"simple-{name}") if name == "protection" else at.button_group(key=f"simple-{name}")
    element.set_value(value)
    at.run()
    fine(at)
    return at


def switch(at: AppTest, *, expert: bool) -> AppTest:
    at.button_group(key="depth").set_value(expert).run()
    assert is_simple(at) != expert
    return at


def door_of(at: AppTest) -> dict[str, Any]:
    """What the front door was told."""
    return next(data for node in at.get("bidi_component") if "stories" in (data := json.loads(node.proto.json or "[{}]")[0]))  # type: ignore[union-attr]


# ---------------------------------------------------------------- seven choices


def test_the_lab_opens_with_seven_choices_and_asks_what_it_always_asked(door: Service, visit: Open) -> None:
    at = visit(itself=True)
    assert is_simple(at)
    assert keys(at) == SIMPLE | {"depth", "source"}
    assert "Attack: Guess and compare (iDLG)" in words(at)
    assert asked(door, press_run(at)) == Experiment().resolve(CATALOG)


def test_a_choice_writes_all_settings_that_follow_from_it_and_they_are_in_the_address(door: Service, visit: Open) -> None:
    at = press(press(press(press(visit(itself=True), "network", "wide"), "count", 4), "protection", "soteria"), "strength", "strong")
    press(at, "adaptive", False)
    assert is_simple(at)
    told = {name: str(value) for name, value in at.query_params.items()}
    assert "expert" not in told
    experiment = asked(door, press_run(at))
    network, protection = prepared().simple.networks["wide"], prepared().simple.protections["soteria"]
    assert (experiment.model.id, experiment.attack.id) == (network.model.id, network.protected.id)
    assert experiment.attack.fields.items() >= network.protected.fields.items()
    assert experiment.defenses[0].fields == protection.strong.defense.fields
    assert (len({picture.id for picture in experiment.pictures}), experiment.assume.adaptive, experiment.assume.strategy) == (4, False, "")
    again = visit(who="you", itself=True, **told)
    assert is_simple(again)
    assert again.button_group(key="simple-strength").value == "strong"
    assert asked(door, press_run(again)) == experiment
    assert asked(door, press_run(press(again, "adaptive", True))).assume.strategy == protection.strong.strategy


def test_fewer_pictures_keep_those_that_were_picked_first(door: Service, visit: Open) -> None:
    address = {"model": "mlp", "attack": "inverting_gradients", "inverting_gradients.steps": "500", "batch": "4"}
    at = visit(itself=True, **address, pictures="gallery:chelsea,gallery:coffee")
    assert is_simple(at)
    assert [picture.id for picture in asked(door, press_run(at)).pictures][:2] == ["chelsea", "coffee"]
    assert [picture.id for picture in asked(door, press_run(press(at, "count", 1))).pictures] == ["chelsea"]


# ---------------------------------------------------------------- the switch


def test_the_switch_changes_no_value_and_is_in_the_address(door: Service, visit: Open) -> None:
    at = press(press(visit(itself=True), "network", "deep"), "protection", "pruning")
    before = {name: value for name, value in at.query_params.items() if name != "expert"}
    run = press_run(at).query_params["run"]
    for expert in (True, False, True):
        switch(at, expert=expert)
        assert at.query_params.get("expert") == ("1" if expert else None)
        assert {name: value for name, value in at.query_params.items() if name not in ("expert", "run")} == before
        assert press_run(at).query_params["run"] == run
    assert at.selectbox(key="defense").value == "pruning"


def test_settings_that_simple_has_no_widgets_for_come_back_with_expert(door: Service, visit: Open) -> None:
    at = visit()
    at.selectbox(key="attack").select("dlg").run()
    at.number_input(key="dlg.steps").set_value(123).run()
    at.selectbox(key="attack").select("idlg").run()
    switch(switch(at, expert=False), expert=True)
    at.selectbox(key="attack").select("dlg").run()
    assert at.number_input(key="dlg.steps").value == 123


def test_simple_cannot_be_chosen_while_it_cannot_show_the_settings(door: Service, visit: Open) -> None:
    at = visit(itself=True, seed="7")
    assert not is_simple(at)
    assert at.query_params["expert"] == "1"
    assert at.button_group(key="depth").proto.disabled
    assert "The simple form does not offer these settings" in words(at)
    next(button for button in at.button if button.label == "Reset to defaults").click().run()
    assert not at.button_group(key="depth").proto.disabled
    switch(at, expert=False)


@pytest.mark.parametrize("run", ["r01", "r04", "r05", "r10", "r12", "r14", "r16", "r21", "r22"])
@pytest.mark.long
def test_a_link_opens_simple_where_that_shows_it_and_expert_where_not(door: Service, visit: Open, run: str) -> None:
    experiment = planned_run(run).experiment
    at = visit(itself=True, **dict(parse_qsl(lab_query(experiment, CATALOG) or "")))
    assert is_simple(at) == (run in ("r01", "r04", "r12", "r14", "r16", "r21"))
    assert [warning.value for warning in at.warning] == []
    assert asked(door, press_run(at)) == without_default_strategy(experiment, CATALOG).resolve(CATALOG)


def test_a_what_if_that_simple_cannot_show_opens_expert(door: Service, visit: Open) -> None:
    at = press_run(visit(itself=True))
    at.button(key="what-if a trained model").click().run()
    assert not is_simple(at)
    assert asked(door, at).checkpoint
    assert "The simple form does not offer these settings: " in words(at)
    assert "instead of untrained" in words(at)


def test_local_steps_are_a_choice_of_simple_and_their_what_if_stays_there(door: Service, visit: Open) -> None:
    at = press_run(visit(itself=True))
    assert at.button_group(key="simple-adaptive").proto.disabled
    at.button(key="what-if five local steps").click().run()
    assert is_simple(at)
    assert at.button_group(key="simple-local").value is True
    assert not at.button_group(key="simple-adaptive").proto.disabled  # how the phone trains can be known, or not
    experiment = asked(door, at)
    assert (experiment.protocol.id, experiment.protocol.fields["epochs"]) == ("fedavg", 5)
    assert not asked(door, press_run(press(at, "adaptive", False))).assume.adaptive


def test_a_number_of_pictures_that_simple_does_not_have_is_the_reason(door: Service, visit: Open) -> None:
    at = visit(batch="3")
    assert "The simple form does not offer these settings: it offers 1, 4 or 8 pictures in one update." in words(at)


def test_a_preset_shows_its_settings_in_simple_where_that_can(door: Service, visit: Open) -> None:
    restore_all(door.store)
    shown = {}
    for preset in prepared().presets:
        at = visit(itself=True, preset=preset.name)
        shown[preset.name] = is_simple(at)
        assert at.query_params["run"] == ",".join(preset.recorded)
    advanced = ("overturned", "glaus", "minmax", "crowd", "learned", "undone", "ring", "one-in-forty", "fishing", "phone-checks")
    advanced += ("width-noise", "twin", "place")
    assert shown == {"stand-in": True} | dict.fromkeys(advanced, False)


def test_what_was_set_in_simple_does_not_follow_to_another_page(door: Service, visit: Open) -> None:
    at = press(press(visit(itself=True), "network", "wide"), "protection", "dp-sgd")
    at.query_params.clear()  # as a browser does
    away = at.switch_page("pages/compare.py").run()
    fine(away)
    assert away.selectbox(key="model").value == Experiment().model.id
    away.query_params.clear()
    back = away.switch_page("pages/lab.py").run()
    assert is_simple(back)
    assert back.button_group(key="simple-network").value == "small"


# ---------------------------------------------------------------- the front door


def test_a_newcomer_sees_the_whole_door_and_whoever_has_run_something_a_line(door: Service, visit: Open) -> None:
    restore_all(door.store)
    at = visit(itself=True)
    told = door_of(at)
    assert not told["small"]
    assert len(told["stories"]) == 12
    assert all(story["lab"].startswith("/?v=1") for story in told["stories"])
    address = {name: str(value) for name, value in at.query_params.items()}
    assert not door_of(visit(itself=True, **address))["small"]  # a newcomer's reload
    press(at, "network", "wide")
    assert not door_of(at)["small"]
    press_run(at)
    assert door_of(at)["small"]
    assert door_of(visit(itself=True))["small"]
    assert not door_of(visit(itself=True, who="you"))["small"]


def test_a_newcomer_who_presses_a_preset_sees_a_line_at_once_and_its_runs_are_not_covered(door: Service, visit: Open) -> None:
    restore_all(door.store)
    at = visit(itself=True)
    assert not door_of(at)["small"]
    at.button(key="overturned").click().run()
    fine(at)
    assert door_of(at)["small"]


@pytest.mark.parametrize(
    "address", [{"run": "r02"}, {"preset": "stand-in"}, {"seed": "7"}, {"expert": "1"}, {"pictures": "gallery:coffee"}]
)
@pytest.mark.long
def test_whoever_comes_by_a_link_sees_a_line(door: Service, visit: Open, address: dict[str, str]) -> None:
    restore_all(door.store)
    at = visit(itself=True, **address)
    fine(at)
    assert door_of(at)["small"]
