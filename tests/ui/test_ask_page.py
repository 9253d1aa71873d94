"""The page Ask: a question in plain words, stored in the address, and its answer."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from page_visits import Open, fine, words
from streamlit.testing.v1 import AppTest

from leakage.runs.service import Service
from leakage.settings import ROOT
from leakage.spec.experiment import Experiment
from leakage.ui.ask.answer_view import deadline

PAGE = "pages/ask.py"


def experiments(door: Service, ids: str) -> list[Experiment]:
    return [run.experiment_as(Experiment) for id in ids.split(",") if (run := door.look(id))]


def test_a_newcomer_is_asked_five_things_and_nothing_runs_before_the_button(door: Service, visit: Open) -> None:
    at = visit(PAGE)
    fine(at)
    said = words(at)
    for step in (
        "1 · Whose pictures?",
        "2 · How are the updates sent?",
        "3 · Which protection, and how strong?",
        "4 · Who attacks?",
        "5 · How much",
    ):
        assert step in said
    menu = at.selectbox(key="ask-protection").options
    assert menu[:5] == [
        "No protection",
        "Random numbers (noise) that keep a chosen limit on what can be learned (privacy budget)",
        "Noise, weak: Gaussian noise 0.001",
        "Noise, middle: Gaussian noise 0.01",
        "Noise, strong: Gaussian noise 0.1",
    ]
    assert len(menu) == len({name.partition(": ")[2] or name for name in menu})
    assert door.store.queue() == []


def test_what_is_asked_is_run_and_stands_in_the_address(door: Service, visit: Open) -> None:
    at = visit(PAGE)
    at.segmented_control(key="ask-phones").set_value(4).run()
    at.selectbox(key="ask-protection").select("gaussian_noise").run()
    at.segmented_control(key="ask-minutes").set_value(1).run()
    at.button(key="run-button").click().run()
    fine(at)
    asked = experiments(door, at.query_params["runs"])
    assert {len(one.pictures) for one in asked} == {4}
    assert {part.id for one in asked for part in one.defenses} == {"gaussian_noise"}
    assert {name: at.query_params[name] for name in ("phones", "protection", "minutes")} == {
        "phones": "4", "protection": "gaussian_noise", "minutes": "1",
    }  # fmt: skip
    again = visit(PAGE, **{name: str(value) for name, value in at.query_params.items()})
    fine(again)
    assert again.segmented_control(key="ask-phones").value == 4
    again.button(key="run-button").click().run()
    assert again.query_params["runs"] == at.query_params["runs"]  # equal runs are shared


@pytest.mark.long
def test_the_answer_says_what_was_found_and_what_not_tried(door: Service, visit: Open, work: Callable[[], None]) -> None:
    at = visit(PAGE, who="me", minutes="1", protection="pruning:fraction=0.99")
    at.button(key="run-button").click().run()
    ids = at.query_params["runs"].split(",")
    for id in ids[1:]:
        door.cancel(id, door.look(id).owner)
    work()
    at.run()
    fine(at)
    page = "\n".join(str(element.proto.body) for element in at.get("html"))
    assert "gle-asked-word" in page
    assert "What was not tried" in words(at)
    assert "attackers that learned from other pictures of the same people" in words(at)


def test_a_wrong_link_is_named(visit: Open, door: Service) -> None:
    said = words(visit(PAGE, phones="3", protection="amulet"))
    assert "phones=3 is not known here; 1 is used instead." in said
    assert "protection=amulet is not known here; no protection is used instead." in said
    for seed in ("99999999999", "-1", "x"):
        at = AppTest.from_file(ROOT / "app.py", default_timeout=240).switch_page(PAGE)  # the Lab, too, knows a seed
        at.query_params["seed"] = seed
        fine(at.run())
        assert f"seed={seed} is no whole number from 0 to 2147483647; 1 is used instead." in words(at)


def test_the_time_of_an_answer_begins_with_its_newest_open_run(visit: Open, door: Service) -> None:
    at = visit(PAGE, who="digits", minutes="1")
    at.button(key="run-button").click().run()
    runs = [run for id in at.query_params["runs"].split(",") if (run := door.look(id))]
    older = [replace(run, created=run.created - 1000) for run in runs[1:]]
    assert deadline([runs[0], *older]) == runs[0].created + 60
    assert deadline(older) == max(run.created for run in older) + 60


def test_what_is_too_much_is_refused_before_the_button(visit: Open, door: Service) -> None:
    at = visit(PAGE, phones="8", each="8")
    assert "At most 16 are tried here" in words(at)
    assert at.button(key="run-button").disabled


def test_a_protection_is_asked_for_by_epsilon_after_all_uploads(visit: Open, door: Service) -> None:
    at = visit(PAGE, epsilon="8", phones="4", called="clinics", who="scans", minutes="1")
    at.number_input(key="ask-rounds").set_value(100).run()
    fine(at)
    said = words(at)
    assert "Clinics send updates" in said
    assert "Strength: DP-SGD, max grad norm 1, noise multiplier 6.0" in said
    assert "epsilon 0.6 for one upload, 8.0 after 100 uploads" in said
    assert at.number_input(key="ask-epsilon").value == 8.0
    at.button(key="run-button").click().run()
    fine(at)
    asked = experiments(door, at.query_params["runs"])
    assert {bool(one.defenses) for one in asked} == {True, False}  # with its control
    assert (at.query_params["epsilon"], at.query_params["rounds"]) == ("8", "100")
    assert "protection" not in at.query_params


def test_the_menu_is_found_by_the_words_differential_privacy(visit: Open, door: Service) -> None:
    menu = visit(PAGE).selectbox(key="ask-protection").options
    found = [name for name in menu if "differential" in name]
    assert "DP-SGD, weak: noise multiplier 0.01 (differential privacy)" in found
    assert not any(name.startswith("Noise") for name in found)


def test_an_attacker_in_the_words_of_before_is_still_that_attacker(visit: Open, door: Service) -> None:
    """While phones became clinics the browser sent the old words of the menu, and the page ended in a traceback."""
    at = visit(PAGE, attacker="naive")
    at.session_state["ask-called"] = "clinics"
    at.session_state["ask-attacker"] = "The people running the server. They know how the phones protect themselves."
    at.run()
    fine(at)
    assert at.radio(key="ask-attacker").value == "knows"
    assert "They know how the clinics protect themselves." in " ".join(at.radio(key="ask-attacker").options)


def test_checks_are_offered_against_a_server_that_changes_the_model_alone(door: Service, visit: Open) -> None:
    at = visit(PAGE, phones="4", checked="True")
    assert not any(toggle.key == "ask-checked" for toggle in at.toggle)
    at = visit(PAGE, phones="4", attacker="changes", minutes="1")
    assert at.toggle(key="ask-checked").value is False
    at.toggle(key="ask-checked").set_value(True).run()
    assert "also on the same pictures without protection" in words(at)
    at.button(key="run-button").click().run()
    fine(at)
    assert at.query_params["checked"] == "True"
    asked = experiments(door, at.query_params["runs"])
    assert {one.server is None for one in asked} == {False}
    assert [bool(one.checks) for one in asked[:3]] == [True, False, True]
    again = visit(PAGE, **{name: str(value) for name, value in at.query_params.items()})
    assert again.toggle(key="ask-checked").value is True
    assert "The settings have changed since this answer" not in words(again)
    assert "The sites check the model first" in visit(PAGE, attacker="changes", called="sites").toggle(key="ask-checked").label


def test_what_a_strength_promises_follows_the_strength(visit: Open, door: Service) -> None:
    weak, strong = (words(visit(PAGE, protection=f"dp_sgd:noise_multiplier={sigma}")) for sigma in ("0.01", "1.0"))
    assert "epsilon above 200 for one upload" in weak
    assert "no useful promise" in weak
    seen = "1 of 3 recognizable, 1 of 3 singled out, by Inverting Gradients over 16 rounds"
    assert f"Measured beforehand at this strength (a photograph): {seen}." in weak
    assert "epsilon 4.4 for one upload" in strong
    assert "no useful promise" not in strong
    noise = words(visit(PAGE, protection="gaussian_noise"))
    assert "Differential privacy: no limit on what can be learned is promised" in noise


def test_equal_runs_that_are_stored_are_called_so(visit: Open, door: Service) -> None:
    at = visit(PAGE, who="digits", minutes="1")
    at.button(key="run-button").click().run()
    assert "were computed before" not in words(at)
    at.button(key="run-button").click().run()
    assert "runs were computed before, and are shown as they were stored" in words(at)
