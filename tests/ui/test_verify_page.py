"""Prediction and result together on the architecture page: R-GAP and a search on the network on the page."""

from collections.abc import Callable

import pytest
from page_visits import Open, fine, words, write
from streamlit.testing.v1 import AppTest

from leakage.runs.service import Service
from leakage.spec.experiment import Experiment, Part
from leakage.ui.common.markdown import escape

SMALL = {"size": "28", "channels": "1", "outputs": "1"}


def press(at: AppTest) -> AppTest:
    at = next(button for button in at.button if button.label == "Check these counts: attack the network").click().run()
    fine(at)
    return at


def asked(at: AppTest, door: Service) -> list[Experiment]:
    runs = [door.look(id) for id in at.query_params["run"].split(",")]
    return [run.experiment_as(Experiment) for run in runs if run]


@pytest.mark.long
def test_a_press_attacks_the_written_network_both_ways_and_says_what_came_of_the_prediction(
    look: Open, door: Service, work: Callable[[], None]
) -> None:
    at = press(look(net="conv 4@8", **SMALL))
    solved, searched = asked(at, door)
    assert solved.attack.id == "r_gap"
    assert searched.attack.id == "idlg"  # one layer: smooth, and DLG finds its way
    for experiment in (solved, searched):
        assert experiment.model == Part(
            id="custom", fields={"network": "conv 4@8", "activation": "sigmoid", "bias": False, "normalise": "none"}
        )
        assert (experiment.size, experiment.channels, experiment.task, len(experiment.pictures)) == (28, 1, "flipped", 1)
    assert searched.assume.labels
    assert not solved.assume.labels
    work()
    work()
    said = words(at.run())
    fine(at)
    assert "**Predicted:** Layer by layer, the equations suffice. Would the attack R-GAP alone find the picture? Answer: yes." in said
    assert "R-GAP 100.0 dB, recognizable, DLG " in said
    assert "a grey picture " in said


@pytest.mark.long
def test_the_runs_of_another_network_are_not_shown_beside_this_one(look: Open, door: Service, work: Callable[[], None]) -> None:
    at = press(look(net="conv 4@8", **SMALL))
    work()
    work()
    at = write(at.run(), "conv 4@9")
    assert "**Measured:**" not in words(at)
    assert "run" not in at.query_params
    assert "**Measured:**" in words(press(write(at, "conv 4@8")))  # the same runs, shared


@pytest.mark.long
def test_where_r_gap_does_not_apply_only_the_search_runs(look: Open, door: Service, work: Callable[[], None]) -> None:
    at = press(look(net="conv 3@4 - max 2", **SMALL))
    assert [experiment.attack.id for experiment in asked(at, door)] == ["idlg"]
    work()
    assert "**Measured:** The attack R-GAP does not apply, DLG " in words(at.run())


def test_blocks_and_means_are_solved_together(look: Open, door: Service) -> None:
    solved, searched = asked(press(look(net="conv 3@12 p1 norm - block 12 - mean 2", **SMALL)), door)
    assert (solved.attack.id, solved.attack.fields["system"], searched.attack.id) == ("r_gap", "together", "idlg")


def test_a_deep_network_is_searched_by_inverting_gradients(look: Open, door: Service) -> None:
    at = press(look())
    _, searched = asked(at, door)
    assert (searched.attack.id, searched.model.fields["activation"], searched.task) == ("inverting_gradients", "leaky_relu", "classes")


def test_what_cannot_be_attacked_here_is_said(look: Open) -> None:
    for query in ({"batch": "2"}, {"outputs": "7"}):
        at = look(**query)
        assert (
            "To see attacks on this network, choose 1 picture in one gradient, and give the network 10 answers or 1 answer (outputs)."
            in words(at)
        )
        assert "Check these counts: attack the network" not in [button.label for button in at.button]


def test_a_line_that_was_wrong_for_a_while_takes_no_setting_with_it(look: Open, door: Service) -> None:
    at = look(net="conv 4@8", **SMALL)
    at = press(write(write(at, "conv 4@8\ncnv"), "conv 4@8"))
    assert [experiment.attack.id for experiment in asked(at, door)] == ["r_gap", "idlg"]


@pytest.mark.long
def test_runs_of_the_lab_on_the_same_network_are_not_taken_for_a_verification(look: Open, door: Service, work: Callable[[], None]) -> None:
    at = press(look(net="conv 4@8", **SMALL))
    solved, searched = asked(at, door)
    other = searched.model_copy(update={"defenses": (Part(id="gaussian_noise"),)})
    dlg = searched.model_copy(update={"attack": Part(id="dlg")})
    for runs in ((solved, other), (solved, dlg), (searched, solved), (searched,)):
        at.query_params["run"] = ",".join(door.submit(experiment, "somebody") for experiment in runs)
        while door.store.queue():
            work()
        assert all((run := door.look(id)) and run.status == "done" for id in at.query_params["run"].split(","))
        at = at.run()
        fine(at)
        assert "**Measured:**" not in words(at)


def test_a_network_from_a_link_brings_no_link_onto_the_page(look: Open) -> None:
    at = look(net="[here](https://example.org)")
    assert escape("[here](https://example.org)") in at.error[0].value
