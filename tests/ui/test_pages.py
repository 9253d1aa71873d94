"""Every page as a visitor uses it: opened, filled in, run, deleted. Other tests cover pictures and curves in the browser."""

import dataclasses
import io
import os
import shutil
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from digits_data_set import write_digits
from page_visits import Open, asked, fine, press_run, words
from PIL import Image
from streamlit.runtime.state.query_params import QueryParams
from streamlit.testing.v1 import AppTest

from leakage.data.checkpoints import find
from leakage.data.lpips_download import lpips_download
from leakage.learn.restored import restore_all
from leakage.runs.notes import SPEEDS
from leakage.runs.owners import owner_of
from leakage.runs.service import Service
from leakage.settings import ROOT, settings
from leakage.spec.experiment import Experiment
from leakage.spec.tasks import InverterTraining, Training

STEPS = ("1 · ", "2 · ", "3 · ", "4 · ")


# ---------------------------------------------------------------- opening


@pytest.mark.parametrize("page", ["", *(f"pages/{file.name}" for file in sorted((ROOT / "pages").glob("*.py")))])
def test_every_page_opens(door: Service, visit: Open, page: str) -> None:
    fine(visit(page))


WITH_PLUGINS = [f"pages/{file.name}" for file in sorted((ROOT / "pages").glob("*.py")) if file.name != "architecture.py"]


@pytest.mark.parametrize("page", ["", *WITH_PLUGINS])
def test_every_page_waits_with_words_for_the_catalog(bare: Service, visit: Open, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds, sleep=time.sleep: sleep(min(seconds, 0.01)))
    clock = iter(range(0, 10**6, 10))  # ten seconds pass at every look at the clock
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    at = visit(page)
    fine(at)
    assert "ready" in words(at)


def test_the_lab_shows_four_steps_and_a_run_button(door: Service, visit: Open) -> None:
    at = visit()
    titles = [str(markdown.value).strip("*") for markdown in at.markdown]
    assert [next(title for title in titles if title.startswith(step)) for step in STEPS]
    assert not at.button(key="run-button").disabled
    kinds = {kind: at.selectbox(key=kind).value for kind in ("model", "protocol", "defense", "attack")}
    default = Experiment()
    assert kinds == {"model": default.model.id, "protocol": default.protocol.id, "defense": "none", "attack": default.attack.id}


def test_a_newcomer_sees_the_recorded_run(door: Service, visit: Open) -> None:
    restore_all(door.store)
    at = visit()
    fine(at)
    assert "recorded" in words(at)
    assert "run" not in at.query_params
    assert door.store.queue() == []


def test_what_becomes_of_the_network_that_lpips_lacks_is_said_below_a_run(
    door: Service, visit: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    restore_all(door.store)  # played without LPIPS
    state = lpips_download()
    quiet = words(visit())
    monkeypatch.setattr(state, "state", "fetched")
    assert "LEAKAGE_LPIPS_FROM" not in quiet
    assert "was downloaded from download.pytorch.org; its SHA-256 is right" in words(visit())


def test_no_picture_stands_beside_settings_that_did_not_make_it(door: Service, visit: Open) -> None:
    restore_all(door.store)
    linked = visit(v="1", seed="7")
    fine(linked)
    assert "These settings have not been run yet." in words(linked)
    assert "recorded" not in words(linked)
    at = visit()
    at.number_input(key="seed").set_value(7).run()
    fine(at)
    assert "recorded" in words(at)
    assert "The result below belongs to other settings." in words(at)
    press_run(at)
    assert "belongs to other settings" not in words(at)
    at.number_input(key="seed").set_value(8).run()
    assert "The result below belongs to other settings." in words(at)


def test_the_run_that_was_shown_is_there_when_one_comes_back(door: Service, visit: Open) -> None:
    def away_and_back(at: AppTest) -> AppTest:
        away = at.switch_page("pages/runs.py").run()
        away.query_params.clear()
        fine(back := away.switch_page("pages/lab.py").run())
        return back

    restore_all(door.store)
    at = press_run(visit(seed="7"))
    run = at.query_params["run"]
    back = away_and_back(at)
    assert back.query_params["run"] == run
    assert back.number_input(key="seed").value == 7
    assert "recorded" not in words(back)
    next(button for button in back.button if button.label == "Reset to defaults").click().run()
    fine(back)
    assert "run" not in back.query_params
    assert "run" not in away_and_back(back).query_params


def test_a_link_to_a_run_that_is_not_here_gets_a_warning(door: Service, visit: Open) -> None:
    at = visit(run="nobody")
    fine(at)
    assert [warning.value for warning in at.warning]
    assert "deleted" in at.warning[0].value


# ---------------------------------------------------------------- running


def test_run_submits_the_chosen_fields_and_puts_the_run_into_the_address(door: Service, visit: Open) -> None:
    at = visit()
    at.selectbox(key="attack").select("inverting_gradients").run()
    at.number_input(key="inverting_gradients.steps").set_value(123)
    at.selectbox(key="model").select("mlp").run()
    at.selectbox(key="defense").select("pruning").run()
    at.slider(key="pruning.fraction").set_value(0.5)
    at.toggle(key="labels_known").set_value(True)
    at.number_input(key="seed").set_value(7)
    at.button_group(key="size").set_value(64)
    press_run(at)
    fine(at)
    experiment = asked(door, at)
    assert (experiment.attack.id, experiment.attack.fields["steps"]) == ("inverting_gradients", 123)
    assert experiment.model.id == "mlp"
    assert [(part.id, part.fields["fraction"]) for part in experiment.defenses] == [("pruning", 0.5)]
    assert (experiment.assume.labels, experiment.seed, experiment.size) == (True, 7, 64)
    assert [run.id for run in door.mine(owner_of("me"))] == [at.query_params["run"]]


def test_a_run_that_is_shown_can_be_stopped_by_its_owner_alone(door: Service, visit: Open) -> None:
    run = press_run(visit()).query_params["run"]
    stranger = visit(who="you", run=run)
    fine(stranger)
    assert "cancel" not in [button.key for button in stranger.button]
    mine = visit(run=run)
    mine.button(key="cancel").click().run()
    found = door.look(run)
    assert found is not None
    assert found.status == "cancelled"


@pytest.mark.long
def test_the_same_experiment_twice_is_one_run(door: Service, visit: Open) -> None:
    assert press_run(visit()).query_params["run"] == press_run(visit(who="you")).query_params["run"]
    assert len(door.mine(owner_of("me"))) == len(door.mine(owner_of("you"))) == 1


def test_a_batch_of_8_is_one_click_away(door: Service, visit: Open) -> None:
    at = press_run(visit())
    first, told = at.query_params["run"], "attack: Inverting Gradients instead of iDLG; 8 pictures instead of 1 picture."
    assert f"What changes: {told}" in at.button(key="what-if a batch of 8").help
    at.button(key="what-if a batch of 8").click().run()
    fine(at)
    shown = at.query_params["run"].split(",")
    assert shown[0] == first  # it stays in view
    assert len(shown) == 2
    assert f"**What if … a batch of 8?** {told}" in words(at)
    experiment = asked(door, at)
    assert len({picture.id for picture in experiment.pictures}) == len(experiment.pictures) == 8
    assert experiment.attack.id == "inverting_gradients"
    assert at.selectbox(key="attack").value == "inverting_gradients"  # the menus follow
    assert at.number_input(key="batch").value == 8
    at.button(key="only-second").click().run()
    assert at.query_params["run"] == shown[1]
    assert f"**What if … a batch of 8?** {told}" in words(at)
    assert "What if … a batch of 8" not in words(press_run(at.number_input(key="seed").set_value(2).run()))


@pytest.mark.parametrize("question", ["prune 90 %", "a wider model"])
def test_every_what_if_asks_another_question(door: Service, visit: Open, question: str) -> None:
    at = press_run(visit())
    before = asked(door, at)
    at.button(key=f"what-if {question}").click().run()
    fine(at)
    after = asked(door, at)
    assert after != before
    assert after.pictures == before.pictures


def test_an_experiment_that_is_refused_is_explained_on_the_page(door: Service, visit: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "config", dataclasses.replace(door.config, max_waiting=0))
    at = press_run(visit())
    fine(at)
    assert "waiting" in at.error[0].value
    assert "run" not in at.query_params


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ({"size": "224", "batch": "11"}, "at most 10, given were 11."),
        ({"size": "28", "model": "vgg16"}, "at least 32 pixels, given was 28."),
    ],
)
def test_settings_that_do_not_go_together_are_explained_and_cannot_be_run(
    door: Service, visit: Open, address: dict[str, str], sentence: str
) -> None:
    at = visit(**address)
    fine(at)
    assert sentence in words(at)
    assert at.button(key="run-button").disabled
    fine(at.button_group(key="size").set_value(32).run())
    assert not at.button(key="run-button").disabled


# ---------------------------------------------------------------- the address


@pytest.mark.parametrize(
    ("page", "key", "value", "told"), [("", "simple-count", 4, "pictures"), ("pages/compare.py", "channels", 1, "channels")]
)
def test_a_page_opened_without_settings_leaves_its_address_alone_until_one_is_changed(
    door: Service, visit: Open, page: str, key: str, value: int, told: str
) -> None:
    at = visit(page, itself=True)
    assert dict(at.query_params) == {}
    fine(at.segmented_control(key=key).set_value(value).run())
    assert {"v", told} <= {*at.query_params}


def test_what_a_run_shows_and_its_settings_are_one_step_of_the_history(door: Service, visit: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[dict[str, str]] = []
    write = QueryParams._send_query_param_msg
    monkeypatch.setattr(QueryParams, "_send_query_param_msg", lambda self: (written.append(self.to_dict()), write(self))[1])
    at = press_run(visit(itself=True))
    at.button(key="what-if prune 90 %").click().run()
    at.button(key="overturned").click().run()
    next(button for button in at.button if button.label == "Reset to defaults").click().run()
    fine(at)
    assert ["run" in one for one in written] == [True, True, True, False]
    assert [one.get("defense") for one in written] == [None, "pruning", None, None]


def test_settings_come_from_the_address(door: Service, visit: Open) -> None:
    address = {"attack": "inverting_gradients", "inverting_gradients.steps": "77", "model": "convnet", "convnet.width": "8"}
    at = visit(**address, defense="gaussian_noise", labels_known="true", seed="5", batch="3", size="64", channels="1")
    fine(at)
    experiment = asked(door, press_run(at))
    assert (experiment.attack.id, experiment.attack.fields["steps"]) == ("inverting_gradients", 77)
    assert (experiment.model.id, experiment.model.fields["width"]) == ("convnet", 8)
    assert [part.id for part in experiment.defenses] == ["gaussian_noise"]
    assert (experiment.assume.labels, experiment.seed, len(experiment.pictures)) == (True, 5, 3)
    assert (experiment.size, experiment.channels) == (64, 1)


def test_settings_go_into_the_address_and_back(door: Service, visit: Open) -> None:
    """Menus by their ids: a link must outlive a better title. What is as usual, or of another plug-in, is left out."""
    at = visit()
    at.selectbox(key="attack").select("dlg").run()
    at.selectbox(key="defense").select("pruning").run()
    at.slider(key="pruning.fraction").set_value(0.25)
    at.toggle(key="labels_known").set_value(True)
    at.number_input(key="seed").set_value(3).run()
    told = {name: str(value) for name, value in at.query_params.items() if name not in ("v", "pictures", "expert")}
    assert told == {"attack": "dlg", "defense": "pruning", "pruning.fraction": "0.25", "labels_known": "True", "seed": "3"}
    assert asked(door, press_run(visit(**told))) == asked(door, press_run(at))
    at.selectbox(key="attack").select("idlg").run()
    at.selectbox(key="defense").select("none").run()
    assert not {"attack", "defense", "pruning.fraction"} & set(at.query_params)


def test_settings_changed_since_the_run_survive_a_reload(door: Service, visit: Open) -> None:
    at = press_run(visit())
    at.number_input(key="seed").set_value(3).run()
    told = {name: str(value) for name, value in at.query_params.items()}
    assert (told["seed"], told["run"]) == ("3", at.query_params["run"])
    again = visit(**told)
    assert again.number_input(key="seed").value == 3
    assert again.query_params["run"] == told["run"]


def test_fine_settings_come_back_with_their_plug_in(door: Service, visit: Open) -> None:
    at = visit(defense="pruning", **{"pruning.fraction": "0.25"})
    at.selectbox(key="defense").select("none").run()
    assert "pruning.fraction" not in at.query_params
    at.selectbox(key="defense").select("pruning").run()
    assert at.slider(key="pruning.fraction").value == 0.25
    assert at.query_params["pruning.fraction"] == "0.25"


def test_where_a_data_set_was_opened_stays_in_the_address_with_it_alone(door: Service, visit: Open) -> None:
    at = visit(source="gallery", offset="40")
    assert "offset" not in at.query_params


def test_batchnorm_has_a_choice_where_the_model_has_batchnorm_and_nowhere_else(door: Service, visit: Open) -> None:
    at = visit(model="convnet", batch_norm="batch")
    fine(at)
    first = press_run(at).query_params["run"]
    assert asked(door, at).batch_norm == "batch"
    there = visit(who="you", run=first)
    assert there.selectbox(key="batch_norm").value == "batch"
    there.selectbox(key="batch_norm").select("eval").run()
    assert "batch_norm" not in there.query_params
    assert asked(door, press_run(there)).batch_norm == "eval"
    for change in ({"convnet.norm": "group"}, {"model": "lenet"}):
        at = visit(**{"model": "convnet", "batch_norm": "batch", **change})
        assert "batch_norm" not in [box.key for box in at.selectbox]
        assert "batch_norm" not in at.query_params
        assert asked(door, press_run(at)).batch_norm == "eval"


@pytest.mark.parametrize(
    "address",
    [
        {"attack": "nothing"},
        {"batch_norm": "train", "model": "lenet"},
        {"seed": "-1"},
        {"seed": "x"},
        {"labels_known": "perhaps"},
        {"idlg.steps": "1e9"},
        {"idlg.steps": "nan"},
        {"batch": "1000"},
        {"pictures": "gallery:nobody"},
        {"source": "a/../b"},
    ],
)
@pytest.mark.long
def test_nonsense_in_the_address_is_passed_over(door: Service, visit: Open, address: dict[str, str]) -> None:
    at = visit(**address)
    fine(at)
    assert asked(door, press_run(at)) == asked(door, press_run(visit()))


def test_a_link_to_a_run_shows_its_settings(door: Service, visit: Open) -> None:
    first = visit(attack="inverting_gradients", seed="4")
    run = press_run(first).query_params["run"]
    at = visit(who="you", run=run)
    fine(at)
    assert at.selectbox(key="attack").value == "inverting_gradients"
    assert at.number_input(key="seed").value == 4


def test_reset_brings_back_the_defaults_and_leaves_the_run(door: Service, visit: Open) -> None:
    at = press_run(visit(attack="inverting_gradients", seed="4", batch="3"))
    next(button for button in at.button if "Reset" in button.label).click().run()
    fine(at)
    assert "run" not in at.query_params
    assert "attack" not in at.query_params
    assert asked(door, press_run(at)) == asked(door, press_run(visit()))


def test_reset_leaves_a_run_that_came_by_its_link_too(door: Service, visit: Open) -> None:
    run = press_run(visit()).query_params["run"]  # the settings are the defaults: only the run is to go
    at = visit(who="you", itself=True, run=run)
    assert dict(at.query_params) == {"run": run}  # nothing else in the address
    next(button for button in at.button if "Reset" in button.label).click().run()
    fine(at)
    assert "run" not in at.query_params


# ---------------------------------------------------------------- the runs of a browser


def test_the_runs_page_lists_what_is_mine_and_deletes_it(door: Service, visit: Open) -> None:
    mine = press_run(visit(seed="1")).query_params["run"]
    kept = press_run(visit(seed="2")).query_params["run"]
    yours = press_run(visit(who="you", seed="3")).query_params["run"]
    at = visit("pages/runs.py")
    fine(at)
    keys = {button.key for button in at.button if (button.key or "").startswith(("pin-", "delete-"))}
    assert keys == {f"{what}-{run}" for what in ("pin", "delete") for run in (mine, kept)}
    assert f"?run={mine}" in words(at)
    at.button(key=f"delete-{mine}").click().run()
    assert door.look(mine) is None
    assert f"?run={mine}" not in words(at)
    assert {run.id for run in door.mine(owner_of("me"))} == {kept}
    assert {run.id for run in door.mine(owner_of("you"))} == {yours}


def test_runs_are_named_and_pinned_by_their_owner_and_listed_for_anybody(door: Service, visit: Open) -> None:
    first, second, third = (press_run(visit(seed=seed)).query_params["run"] for seed in "123")
    press_run(visit(who="you", seed="1"))
    at = visit("pages/runs.py")
    assert not at.code
    at.button(key=f"pin-{second}").click().run()
    at.button(key=f"pin-{first}").click().run()
    at.text_input(key=f"name-{first}").set_value(" **The** \u202efirst ").run()
    fine(at)
    name = "**The** first"
    assert [run.id for run in door.mine(owner_of("me"))] == [second, first, third]
    assert f"[**\\*\\*The\\*\\* first**](/?run={first})" in words(at)  # as it was typed
    press_run(visit(seed="1"))  # the same run again
    assert door.labels.of(owner_of("me"))[first].name == name
    (yours,) = door.mine(owner_of("you"))
    assert (yours.id, door.labels.of(owner_of("you"))) == (first, {})

    shared = dict(parse_qsl(str(at.code[0].value).split("?")[1], keep_blank_values=True))
    assert shared == {"list": f"{second},{first}", "called": name}
    at.button(key=f"pin-{second}").click().run()
    assert [run.id for run in door.mine(owner_of("me"))] == [first, third, second]
    at.text_input(key=f"name-{first}").set_value("").run()
    assert door.labels.of(owner_of("me"))[first].name == ""
    assert "[**Astronaut: iDLG" in words(at)
    door.labels.rename(third, owner_of("me"), "x" * 80)
    assert door.labels.of(owner_of("me"))[third].name == "x" * 60

    lesson = visit("pages/runs.py", who="nobody", list=f"{second},gone,{first}", called=[name])
    fine(lesson)
    said = words(lesson)
    assert said.index(f"?run={second}") < said.index(f"?run={first}")
    assert f"first**](/?run={second})" in said
    assert "A run of this list is not here" in said
    assert not [button.key for button in lesson.button if (button.key or "").startswith(("pin-", "delete-"))]


def test_deleting_a_shared_run_leaves_it_to_the_other(door: Service, visit: Open) -> None:
    run = press_run(visit()).query_params["run"]
    press_run(visit(who="you"))
    visit("pages/runs.py").button(key=f"delete-{run}").click().run()
    assert door.mine(owner_of("me")) == []
    assert [found.id for found in door.mine(owner_of("you"))] == [run]


def test_delete_all_takes_everything_of_mine_and_nothing_else(door: Service, visit: Open) -> None:
    for seed in ("1", "2"):
        press_run(visit(seed=seed))
    press_run(visit(who="you", seed="3"))
    at = visit("pages/runs.py")
    next(button for button in at.button if button.label == "Delete them").click().run()
    fine(at)
    assert door.mine(owner_of("me")) == []
    assert len(door.mine(owner_of("you"))) == 1


def test_a_browser_without_runs_is_told_where_to_begin(door: Service, visit: Open) -> None:
    assert "lab" in visit("pages/runs.py").info[0].value


# ---------------------------------------------------------------- uploads


def encoded(kind: str, **how: Any) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (40, 30), (200, 30, 30)).save(file, kind, **how)
    return file.getvalue()


def test_an_uploaded_picture_gets_a_class_and_is_run(door: Service, visit: Open) -> None:
    at = visit(source="upload")
    assert at.button(key="run-button").disabled
    at.file_uploader(key="files-0").upload("me.png", encoded("PNG"), "image/png").run()
    fine(at)
    assert "class" in words(at)
    next(box for box in at.selectbox if box.label == "Class of me.png").select(1).run()
    press_run(at)
    fine(at)
    (picture,) = asked(door, at).pictures
    assert (picture.source, picture.label) == ("upload", 1)
    run = door.look(at.query_params["run"])
    assert run is not None
    assert not run.shareable
    assert set(door.store.files(run.id)) == {f"upload:{picture.id}"}
    visit("pages/runs.py").button(key=f"delete-{run.id}").click().run()
    assert door.store.files(run.id) == {}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("cut.png", encoded("PNG")[:60]),
        ("words.png", b"these are words"),
        ("empty.jpg", b""),
        ("moving.webp", encoded("WEBP", save_all=True, append_images=[Image.new("RGB", (40, 30), "blue")])),
    ],
)
def test_a_bad_upload_is_explained_and_cannot_be_run(door: Service, visit: Open, name: str, data: bytes) -> None:
    at = visit(source="upload")
    at.file_uploader(key="files-0").upload(name, data, "image/png").run()
    fine(at)
    assert at.error[0].value.startswith(name)
    assert at.error[0].value.endswith(".")
    assert at.button(key="run-button").disabled


def test_a_bad_upload_among_good_ones_does_not_spoil_them(door: Service, visit: Open) -> None:
    at = visit(source="upload")
    at.file_uploader(key="files-0").set_value([("bad.png", b"words", "image/png"), ("good.png", encoded("PNG"), "image/png")]).run()
    fine(at)
    assert len(at.error) == 1
    press_run(at)
    assert len(asked(door, at).pictures) == 1


def test_a_data_set_that_is_not_here_is_explained(door: Service, visit: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LEAKAGE_DATA", str(tmp_path))
    at = visit(source="cifar10")
    fine(at)
    assert "fetch cifar10" in at.info[0].value
    assert at.button(key="run-button").disabled


@pytest.mark.usefixtures("door")
def test_a_damaged_photograph_of_a_data_set_is_left_out_and_told(visit: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LEAKAGE_DATA", str(tmp_path))
    for person, content in (("Ada", encoded("JPEG")), ("Bob", b"no picture"), ("Cleo", encoded("JPEG"))):
        (tmp_path / "lfw" / person).mkdir(parents=True)
        (tmp_path / "lfw" / person / f"{person}_0001.jpg").write_bytes(content)
    at = visit(source="lfw")
    fine(at)
    (told,) = [warning.value for warning in at.warning]
    assert "1 of these pictures are damaged and left out" in told
    assert "Bob" in told
    assert not at.button(key="run-button").disabled


def test_settings_in_force_are_read_from_the_environment(bare: Service, tmp_path: Path) -> None:
    assert bare.config == settings()
    assert bare.config.home == tmp_path


# ---------------------------------------------------------------- trained models


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures to learn from."""
    monkeypatch.setenv("LEAKAGE_DATA", str(write_digits(tmp_path / "digits")))


def trained(door: Service, at: AppTest) -> Training:
    """The training that the page shows."""
    run = door.look(at.query_params["run"])
    assert run is not None
    assert run.kind == "train"
    return run.experiment_as(Training)


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without data sets."""
    monkeypatch.setenv("LEAKAGE_DATA", str(tmp_path / "no data"))


def press_train(at: AppTest) -> AppTest:
    return next(button for button in at.button if button.label == "Train").click().run()


@pytest.mark.usefixtures("digits")
def test_train_submits_what_the_page_shows(door: Service, visit: Open) -> None:
    at = visit("pages/training.py")
    at.number_input(key="rounds").set_value(3).run()
    at.number_input(key="clients").set_value(4).run()
    at.segmented_control(key="split").set_value("shards").run()
    at = press_train(at)
    fine(at)
    asked = trained(door, at)
    assert (asked.rounds, asked.clients, asked.partition, asked.data, asked.model.id) == (3, 4, "shards", "mnist", "lenet")
    assert "1 in the queue" in words(at)


@pytest.mark.usefixtures("digits")
def test_train_submits_the_protection_with_its_fields_and_the_runs_page_names_it(door: Service, visit: Open) -> None:
    at = visit("pages/training.py")
    at.selectbox(key="defense").set_value("ada_defense").run()
    at.selectbox(key="ada_defense.variant").set_value("as in the code").run()
    at.number_input(key="server-rate").set_value(0.5).run()
    at = press_train(at)
    fine(at)
    (part,) = trained(door, at).defenses
    assert (part.id, part.fields["variant"], part.fields["beta1"]) == ("ada_defense", "as in the code", 0.9)
    assert trained(door, at).server_rate == 0.5
    assert "5 rounds centrally, with AdaDefense" in words(visit("pages/runs.py"))


@pytest.mark.usefixtures("digits")
def test_the_button_below_trains_an_attacker_of_the_model_and_the_protection_that_are_chosen(door: Service, visit: Open) -> None:
    at = visit("pages/training.py")
    at.selectbox(key="defense").set_value("clipping").run()
    at.number_input(key="training-seed").set_value(7).run()
    at = next(button for button in at.button if button.label == "Train an attacker").click().run()
    fine(at)
    run = door.look(at.query_params["run"])
    assert run is not None
    assert run.kind == "invert"
    task = run.experiment_as(InverterTraining)
    assert (task.model.id, task.data, [part.id for part in task.defenses], task.seed) == ("lenet", "mnist", ["clipping"], 7)
    assert (task.hidden, task.epochs, task.rate) == (600, 30, 1e-3)
    assert "Attacker trained to turn updates of LeNet (Clipping) into pictures, on MNIST" in words(at)
    assert "Waiting: 1 in the queue" in words(at)
    door.cancel(run.id, owner_of("me"))
    assert "Stopped: nothing of this attacker is kept" in words(at.run())


@pytest.mark.usefixtures("digits")
def test_an_attacker_can_be_trained_with_the_papers_width_and_passes(door: Service, visit: Open) -> None:
    at = visit("pages/training.py")
    recipe = at.selectbox(key="attacker-recipe")
    recipe.select(next(words for words in recipe.options if words.startswith("With the paper's width"))).run()
    next(button for button in at.button if button.label == "Train an attacker").click().run()
    fine(at)
    run = door.look(at.query_params["run"])
    assert run is not None
    task = run.experiment_as(InverterTraining)
    assert (task.hidden, task.epochs, task.rate, task.examples) == (3000, 200, 1e-4, 256)
    door.cancel(run.id, owner_of("me"))


@pytest.mark.usefixtures("digits")
def test_a_data_set_that_is_not_here_is_named_below_more_data_with_the_way_to_get_it(door: Service, visit: Open) -> None:
    at = visit("pages/training.py")
    assert at.segmented_control(key="data").options == ["Digits", "MNIST"]
    assert "**CIFAR-10**: `python -m leakage fetch cifar10`" in words(at)


@pytest.mark.usefixtures("no_data")
def test_without_any_data_set_the_page_trains_on_the_digits_that_ship(door: Service, visit: Open) -> None:
    at = visit("pages/training.py")
    fine(at)
    assert at.segmented_control(key="data").options == ["Digits"]
    assert "The digits that ship with this program are too few to train an attacker on." in words(at)
    asked = trained(door, press_train(at))
    assert (asked.data, asked.batch, asked.rounds) == ("digits", 16, 5)


@pytest.mark.usefixtures("no_data")
def test_without_any_data_set_the_lab_offers_what_is_there_and_no_path_of_the_machine(door: Service, visit: Open) -> None:
    at = visit()
    assert at.segmented_control(key="source").options == ["Gallery", "Your own"]
    assert "**MNIST**: `python -m leakage fetch mnist`" in words(at)
    named = visit(source="cifar10")  # by a link
    assert "The pictures of CIFAR-10 were not found in LEAKAGE_DATA" in words(named)
    assert os.environ["LEAKAGE_DATA"] not in words(named)


@pytest.mark.usefixtures("digits")
def test_a_training_is_among_the_runs_and_not_taken_for_an_attack(door: Service, visit: Open) -> None:
    run = door.train(Training(rounds=3), owner_of("me"))
    listed = visit("pages/runs.py")
    fine(listed)
    assert f"[**LeNet trained on MNIST, 3 rounds centrally**](/training?run={run})" in words(listed)
    lab = visit(run=run)
    fine(lab)
    assert f"/training?run={run}" in words(lab)


def test_choosing_a_trained_model_sets_what_it_was_trained_with(door: Service, visit: Open) -> None:
    at = visit()
    at.selectbox(key="checkpoint").set_value("lenet-mnist@5").run()
    fine(at)
    at = press_run(at)
    wanted = asked(door, at)
    assert (wanted.checkpoint, wanted.size, wanted.channels) == ("lenet-mnist@5", 28, 1)
    assert at.query_params["checkpoint"] == "lenet-mnist@5"


def test_a_trained_model_with_pictures_it_was_not_made_for_says_so_and_cannot_run(door: Service, visit: Open) -> None:
    at = visit(checkpoint="lenet-mnist@5")
    assert "lenet-mnist was trained with channels 1, given was 3" in words(at)
    assert at.button(key="run-button").disabled


def test_choosing_a_trained_model_undoes_fields_that_its_card_does_not_name(door: Service, visit: Open) -> None:
    at = visit(model="convnet", attack="inverting_gradients")
    at.selectbox(key="convnet.norm").set_value("group").run()
    at.selectbox(key="checkpoint").set_value("convnet-16-cifar10@24").run()
    fine(at)
    assert asked(door, press_run(at)).checkpoint == "convnet-16-cifar10@24"


def test_a_run_on_a_trained_model_that_is_gone_still_shows_its_page(door: Service, visit: Open) -> None:
    shutil.copytree(ROOT / "assets" / "checkpoints" / "lenet-cifar10", door.config.checkpoints / "mine")
    run = door.submit(Experiment(checkpoint="mine@5"), owner_of("me"))
    shutil.rmtree(door.config.checkpoints / "mine")
    at = visit(run=run)
    fine(at)
    assert at.selectbox(key="checkpoint").value == ""


def test_results_on_other_weights_of_the_same_name_are_not_shared(door: Service) -> None:
    shutil.copytree(ROOT / "assets" / "checkpoints" / "lenet-cifar10", door.config.checkpoints / "mine")
    run = door.submit(Experiment(checkpoint="mine@5"), "me")
    assert door.submit(Experiment(checkpoint="mine@5"), "me") == run
    card = door.config.checkpoints / "mine" / "card.json"
    card.write_text(card.read_text().replace(find("mine@5")[1].sha256, "0" * 64))
    assert door.submit(Experiment(checkpoint="mine@5"), "me") != run


def test_results_with_lpips_and_without_are_not_shared(door: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKAGE_DATA", str(tmp_path / "data"))
    run = door.submit(Experiment(), "me")
    (tmp_path / "data" / "lpips").mkdir(parents=True)
    (tmp_path / "data" / "lpips" / "squeezenet1_1-b8a52dc0.pth").write_bytes(b"anything")
    assert door.submit(Experiment(), "me") != run


@pytest.mark.usefixtures("digits")
def test_a_training_that_was_stopped_at_once_says_so(door: Service, visit: Open) -> None:
    run = door.train(Training(rounds=3), owner_of("me"))
    door.cancel(run, owner_of("me"))
    at = visit("pages/training.py")
    at.query_params["run"] = run
    at.run()
    fine(at)
    assert "Stopped before the first round of training had ended" in words(at)


@pytest.mark.parametrize("name", ["nosuch@3", "lenet-mnist@999"])
def test_a_link_to_a_trained_model_that_is_not_here_says_so_until_another_is_chosen(door: Service, visit: Open, name: str) -> None:
    at = visit(checkpoint=name)
    fine(at)
    sentence = f"{name} is not a trained model of this kind on this machine. The model starts untrained."
    assert sentence in words(at)
    assert sentence in words(at.run())
    assert sentence not in words(at.selectbox(key="checkpoint").set_value("lenet-mnist@5").run())


def test_changing_the_model_says_that_its_training_is_gone_and_changing_back_does_not(door: Service, visit: Open) -> None:
    at = visit(checkpoint="lenet-mnist@5", size="28", channels="1")
    assert "lenet-mnist@5 is not" in words(at.selectbox(key="model").set_value("mlp").run())
    assert "lenet-mnist@5 is not" not in words(at.selectbox(key="model").set_value("lenet").run())


@pytest.mark.usefixtures("digits")
def test_go_on_asks_for_the_same_training_again(door: Service, visit: Open) -> None:
    run = door.train(Training(rounds=3, clients=2), owner_of("me"))
    door.cancel(run, owner_of("me"))
    at = visit("pages/training.py")
    at.query_params["run"] = run
    at = next(button for button in at.run().button if button.label == "Go on").click().run()
    fine(at)
    assert at.query_params["run"] != run
    assert (trained(door, at).rounds, trained(door, at).clients) == (3, 2)


def test_the_training_page_lists_every_trained_model_with_its_way_into_the_lab(door: Service, visit: Open) -> None:
    said = words(visit("pages/training.py"))
    assert "**LeNet** on 60,000 pictures of MNIST: accuracy 95.4% after 1, 98.2% after 5, 98.8% after 12 epochs." in said
    assert said.count("[Attack it](/?model=") == 6


def test_a_run_that_will_meet_its_time_limit_says_so_and_a_loaded_machine_takes_longer(
    door: Service, visit: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    door.store.put_note(SPEEDS, {"lenet": (1.0, 1.0)})
    at = visit(attack="inverting_gradients", max_seconds="60")
    assert "About 80 min on this machine, and 60 s at most: its time limit" in words(at)
    monkeypatch.setattr(os, "getloadavg", lambda: (4.0 * (os.cpu_count() or 1) - 1, 0.0, 0.0))  # four times as many as there are cores
    assert "About 320 min on this machine while others use it (80 min when it is idle), and 60 s at most" in words(at.run())


def test_another_model_is_untrained_until_its_own_training_is_chosen(door: Service, visit: Open) -> None:
    at = visit(checkpoint="lenet-mnist@5", size="28", channels="1")
    at.selectbox(key="model").set_value("mlp").run()
    fine(at)
    assert at.selectbox(key="checkpoint").value == ""
    assert asked(door, press_run(at)).checkpoint == ""
