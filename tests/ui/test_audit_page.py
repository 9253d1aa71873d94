"""The page Audit: files are checked, the card fills the form, Run queues the audit, and what it finds is shown and listed."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from page_visits import Open, fine, press_run, words
from recorded_updates import KNOWN, send_update, write_update
from streamlit.testing.v1 import AppTest

from leakage.results.audit_words import NO_PROOF
from leakage.runs.owners import owner_of
from leakage.runs.service import Service
from leakage.runs.store import Run
from leakage.spec.audit_task import AuditTask
from leakage.ui.audit.recorded_files import SET
from leakage.workers.worker import perform

PAGE = "pages/audit.py"
ME = owner_of("me")
CARD = KNOWN | {"epochs": {"guess": 2}, "optimizer": "SGD", "labels": [3, 7]}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_update(tmp_path_factory.mktemp("recorded"), CARD)


@pytest.fixture
def sent(door: Service, visit: Open) -> Callable[..., AppTest]:
    """The page after these files of a folder have arrived."""

    def arrived(folder: Path, *names: str) -> AppTest:
        at = visit(PAGE)
        fine(at)
        at.session_state[SET] = send_update(door, ME, names, source=folder)
        at.run()
        fine(at)
        return at

    return arrived


def queued(door: Service, at: AppTest) -> Run:
    run = door.look(at.query_params["run"] if isinstance(at.query_params["run"], str) else at.query_params["run"][0])
    assert run is not None
    return run


def test_a_visitor_sees_what_to_do_and_cannot_run_before_there_are_files(door: Service, visit: Open) -> None:
    at = visit(PAGE)
    fine(at)
    assert at.button(key="run-button").disabled
    assert "1. **Choose files.**" in words(at)
    assert "The files stay on the machine that runs this page" in words(at)
    assert "numpy.savez" in at.code[0].value


@pytest.mark.parametrize(
    ("names", "lacking"),
    [
        (("card.json",), "The card needs an update beside it"),
        (("before.npz",), "Still missing: the weights after the training."),
        (("after.npz", "card.json"), "Still missing: the weights before the training, with which attacks compute."),
    ],
)
def test_an_update_that_is_not_complete_says_what_is_missing(
    sent: Callable[..., AppTest], recorded: Path, names: tuple[str, ...], lacking: str
) -> None:
    at = sent(recorded, *names)
    assert lacking in words(at)
    assert at.button(key="run-button").disabled


def test_files_that_are_no_update_are_refused_with_the_readers_sentence(sent: Callable[..., AppTest], tmp_path: Path) -> None:
    write_update(tmp_path)
    (tmp_path / "gradient.npz").write_bytes(b"PK no archive")
    at = sent(tmp_path, "before.npz", "gradient.npz")
    assert "gradient.npz" in at.error[0].value
    assert at.button(key="run-button").disabled


def test_a_card_with_a_wrong_field_is_refused(sent: Callable[..., AppTest], tmp_path: Path) -> None:
    write_update(tmp_path, {"learning": 3})
    at = sent(tmp_path, "before.npz", "gradient.npz", "card.json")
    assert "no such field" in at.error[0].value


def test_the_card_fills_the_form_and_the_form_makes_the_task(door: Service, sent: Callable[..., AppTest], recorded: Path) -> None:
    at = sent(recorded, "before.npz", "after.npz", "card.json")
    assert at.number_input(key="audit.rate.value").value == 0.1
    assert at.button_group(key="audit.epochs.state").value == "guessed"
    at.button_group(key="audit.pictures.state").set_value("unknown").run()
    at.button_group(key="audit.momentum.state").set_value("guessed").run()
    at.number_input(key="audit.momentum.value").set_value(0.5)
    fine(press_run(at))
    run = queued(door, at)
    card = run.experiment_as(AuditTask).card
    states = {name: entry.state for name, entry in card.entries() if entry.state != "unknown"}
    assert states == {
        **dict.fromkeys(("network", "input", "classes", "rate", "steps", "optimizer", "labels"), "known"),
        **dict.fromkeys(("epochs", "momentum"), "guessed"),
    }
    assert (card.rate.value, card.epochs.value, card.momentum.value, card.labels.value) == (0.1, 2, 0.5, (3, 7))
    assert run.kind == "audit"
    assert not run.shareable
    assert [mine.id for mine in door.mine(ME)] == [run.id]


def test_the_network_may_be_written_as_a_text(door: Service, sent: Callable[..., AppTest], recorded: Path) -> None:
    at = sent(recorded, "before.npz", "gradient.npz")
    at.selectbox(key="model").select("custom").run()
    at.text_area(key="custom.network").set_value("conv 3@4 /2\nconv 900@4").run()
    fine(at)
    assert "size must lie between 1 and 11" in at.error[0].value
    assert at.button(key="run-button").disabled
    at.text_area(key="custom.network").set_value("conv 3@4 /2").run()
    at.selectbox(key="defense").select("pruning").run()
    fine(press_run(at))
    task = queued(door, at).experiment_as(AuditTask)
    assert (task.model.id, task.model.fields["network"]) == ("custom", "conv 3@4 /2")
    assert [part.id for part in task.card.protections] == ["pruning"]


def test_the_card_of_an_archive_is_read(sent: Callable[..., AppTest], recorded: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "update.zip", "w") as archive:
        for name in ("before.npz", "after.npz", "card.json"):
            archive.write(recorded / name, name)
    at = sent(tmp_path, "update.zip")
    assert at.number_input(key="audit.rate.value").value == 0.1
    assert not at.button(key="run-button").disabled


@pytest.mark.parametrize(
    ("row", "text", "problem"),
    [("labels", "cat", "Classes of the pictures: Numbers"), ("normalization", "0.5, 0.5; 1", "as many means as deviations")],
)
def test_what_is_no_number_is_explained(sent: Callable[..., AppTest], recorded: Path, row: str, text: str, problem: str) -> None:
    at = sent(recorded, "before.npz", "gradient.npz")
    at.button_group(key=f"audit.{row}.state").set_value("known").run()
    at.text_input(key=f"audit.{row}.value").set_value(text).run()
    fine(at)
    assert problem in at.error[0].value
    assert at.button(key="run-button").disabled


def test_all_protections_of_a_card_are_imitated_though_the_form_has_room_for_one(
    door: Service, sent: Callable[..., AppTest], tmp_path: Path
) -> None:
    two = [{"id": "clipping", "fields": {"bound": 2.0}}, {"id": "gaussian_noise", "fields": {"scale": 0.001}}]
    at = sent(write_update(tmp_path, CARD | {"protections": two}), "before.npz", "after.npz", "card.json")
    assert "card.json names 2 protections" in words(at)
    run = queued(door, press_run(at))
    assert [part.id for part in run.experiment_as(AuditTask).card.protections] == ["clipping", "gaussian_noise"]


def test_what_a_worker_finds_is_shown_and_listed_and_deleted(
    door: Service, sent: Callable[..., AppTest], visit: Open, recorded: Path
) -> None:
    at = sent(recorded, "before.npz", "after.npz", "card.json")
    at.button_group(key="audit.labels.state").set_value("unknown").run()
    at.button_group(key="audit.minutes").set_value(1).run()
    fine(press_run(at))
    assert "Waiting: 1 in the queue" in words(at)
    assert at.button(key="other-files")
    run = door.store.claim("0:1")
    assert run is not None
    perform(door.store, run, torch.device("cpu"))
    at.run()
    fine(at)
    assert NO_PROOF in words(at)
    assert "What the update says before any attack, and what is assumed of the client" in words(at)
    assert " gave pictures that explain the update, or part of it." in words(at)
    pictures = [html.proto.body for html in at.get("html") if "gle-findings" in html.proto.body]
    assert f"/api/runs/{run.id}/frames/" in pictures[0]
    mine = visit("pages/runs.py")
    fine(mine)
    assert f"/audit?run={run.id}" in words(mine)
    assert "gave pictures" in words(mine)
    mine.button(key=f"delete-{run.id}").click().run()
    assert list(door.store.updates.folder.glob("*")) == []
    fine(gone := visit(PAGE, run=run.id))
    assert "This audit is not here" in gone.warning[0].value


def test_who_comes_back_to_an_audit_finds_its_files_and_its_card_in_the_form(
    door: Service, sent: Callable[..., AppTest], visit: Open, recorded: Path
) -> None:
    at = sent(recorded, "before.npz", "after.npz", "card.json")
    at.button_group(key="audit.pictures.state").set_value("guessed").run()
    run = queued(door, press_run(at))
    back = visit(PAGE, run=run.id)
    fine(back)
    assert back.session_state[SET] == run.experiment_as(AuditTask).files
    assert back.button_group(key="audit.pictures.state").value == "guessed"
    assert "belongs to other settings" not in words(back)
    back.button_group(key="audit.pictures.state").set_value("unknown").run()
    assert "belongs to other settings" in words(back)
    assert press_run(back).query_params["run"] != [run.id]
    assert len(door.mine(ME)) == 2
    assert visit(PAGE, who="you", run=run.id).button(key="run-button").disabled


def test_an_audit_can_be_stopped_by_its_owner_alone(door: Service, sent: Callable[..., AppTest], visit: Open, recorded: Path) -> None:
    at = press_run(sent(recorded, "before.npz", "gradient.npz"))
    run = queued(door, at)
    stranger = visit(PAGE, who="you", run=run.id)
    assert "Stop" not in [button.label for button in stranger.button]
    next(button for button in at.button if button.label == "Stop").click().run()
    fine(at)
    assert queued(door, at).status == "cancelled"


def test_other_files_begin_anew_and_deleting_all_forgets_them(door: Service, sent: Callable[..., AppTest], recorded: Path) -> None:
    at = press_run(sent(recorded, "before.npz", "gradient.npz"))
    first = at.session_state[SET]
    at.button(key="other-files").click().run()
    fine(at)
    assert at.session_state[SET] != first
    assert door.store.updates.files(first)
    next(button for button in at.button if button.label == "Delete them").click().run()
    fine(at)
    assert list(door.store.updates.folder.glob("*")) == []
    assert at.button(key="run-button").disabled
