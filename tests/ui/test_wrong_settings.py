"""Wrong links, files and settings: each is named before Run is pressed, with what is used instead."""

import json
from pathlib import Path
from typing import Any

import pytest
from page_visits import Open, asked, fine, press_run, words
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from leakage.__main__ import main
from leakage.runs.service import Service
from leakage.settings import ROOT
from leakage.spec.experiment import Experiment, Part
from leakage.ui.common.markdown import escape

LINKS = [  # to the lab: an address, and what the page says of it
    ({"attack": "nope"}, ["attack=nope is not known here; Guess and compare (iDLG) is used instead."]),
    (
        {"model": "gpt", "protocol": "pigeon"},
        ["model=gpt is not known here; Small network (LeNet)", "protocol=pigeon is not known here; One step (FedSGD)"],
    ),
    ({"defense": "amulet"}, ["defense=amulet is not known here; no protection is used instead."]),
    ({"inverting_gradients.stepz": "3"}, ["inverting_gradients.stepz is left out: Inverting Gradients has steps, step_size,"]),
    ({"crystal_ball.size": "3"}, ["crystal_ball.size is left out: there is no crystal_ball here."]),
    ({"seed": "-1"}, ["seed: allowed is a whole number from 0 to 2147483647, given was -1; 1 is used instead."]),
    (
        {"seed": "x", "labels_known": "perhaps"},
        ["seed: allowed is a whole number", "given was 'x'", "labels_known: allowed is true or false"],
    ),
    ({"gaussian_noise.scale": "99"}, ["gaussian_noise.scale: allowed is a number from 0 to 10, given was 99.0; 0.01 is used instead."]),
    ({"idlg.steps": "nan"}, ["idlg.steps: allowed is a whole number from 1 to 2000, given was 'nan'; 300 is used instead."]),
    ({"mlp.activation": "gelu"}, ["mlp.activation: allowed is 'relu' or 'leaky_relu'"]),
    ({"pictures": "gallery:nobody"}, ["pictures=gallery:nobody is not here; gallery:astronaut is used instead."]),
    ({"pictures": "gallery:face-0,upload:abc"}, ["pictures=upload:abc is not here; it is left out."]),
    (
        {"size": "30", "task": "three"},
        ["size=30 is not known here; 32 is used instead.", "task=three is not known here; One output for each class"],
    ),
    ({"batch_norm": "batch"}, ["batch_norm=batch cannot be used here; stored statistics (eval) is used instead."]),
    ({"rounds": "3", "attacked_round": "7"}, ["attacked_round=7 cannot be used here; 3 is used instead."]),
    ({"counter": "average the rounds"}, ["counter=average the rounds cannot be used here; the default is used instead."]),
    ({"checkpoint": "mine@3"}, ["checkpoint=mine@3 is not known here; an untrained model is used instead."]),
    ({"phones": "17", "statistics": "all"}, ["phones=17 is not known here; 1 is used", "statistics=all is not known here; none is used"]),
    ({"preset": "nope", "v": "7"}, ["preset=nope is not known here", "v=7 is another version of links; this link is read as version 1."]),
    ({"attack": "[a](https://x.y) $x$ `c`"}, [escape("attack=[a](https://x.y) $x$ `c` is not known here")]),
]
FINE = [  # of an address that is all right, or not ours
    {},
    {"utm_source": "mail", "differs": "attack", "data": "mnist"},
    {"v": "1", "attack": "idlg", "seed": "1", "idlg.steps": "300", "labels_known": "False", "channels": "3"},
    {"attack": "inverting_gradients", "inverting_gradients.tv_weight": "1e-4", "inverting_gradients.signed": "true", "dlg.steps": "7"},
    {"attack": "exact_batches", "exact_batches.search": "samples", "inverting_gradients.boxed": "false"},  # ids and fields of 0.2
    {"defense": "gaussian_noise", "counter": "average the rounds", "rounds": "3", "attacked_round": "2", "pictures": "gallery:face-0"},
]


def told(at: AppTest) -> str:
    """What a page says of its link; empty where it took all of it."""
    fine(at)
    return "\n".join(one.value for one in at.warning if "Not all of this link can be used here." in one.value)


@pytest.fixture
def compare(door: Service, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Open the comparison by an address."""

    def opened(**address: str) -> AppTest:
        monkeypatch.setattr(ContextProxy, "cookies", {"gle_owner": "me"})
        at = AppTest.from_file(ROOT / "app.py", default_timeout=240).switch_page("pages/compare.py")
        at.query_params.update(address)
        return at.run()

    return opened


# ---------------------------------------------------------------- links


@pytest.mark.parametrize(("address", "sentences"), LINKS, ids=lambda value: "&".join(value) if isinstance(value, dict) else "")
@pytest.mark.long
def test_what_a_link_to_the_lab_cannot_get_is_named(door: Service, visit: Open, address: dict[str, str], sentences: list[str]) -> None:
    at = visit(**address)
    said = told(at).replace(r"gallery\:", "gallery:").replace(r"upload\:", "upload:")
    for sentence in sentences:
        assert sentence in said
    assert not at.button(key="run-button").disabled
    assert not door.store.queue()


@pytest.mark.parametrize("address", FINE, ids="&".join)
def test_of_what_is_known_and_of_what_others_own_nothing_is_said(door: Service, visit: Open, address: dict[str, str]) -> None:
    assert told(visit(**address)) == ""


def test_an_address_of_an_earlier_version_is_read_and_written_under_todays_names(door: Service, visit: Open) -> None:
    at = visit(attack="exact_batches", **{"exact_batches.search": "samples"})
    assert (at.query_params["attack"], at.query_params["spear.search"]) == ("spear", "samples")
    assert not [key for key in at.query_params if key.startswith("exact_batches")]
    attack = asked(door, press_run(at)).attack
    assert (attack.id, attack.fields["search"]) == ("spear", "samples")


def test_a_comparison_of_an_earlier_version_has_its_attacks(compare: Open) -> None:
    at = compare(v="1", differs="attack", attacks="idlg,exact_batches")
    assert told(at) == ""
    assert at.session_state["attacks"] == ["idlg", "spear"]


def test_a_stored_run_with_an_earlier_id_opens(door: Service, visit: Open) -> None:
    stored = Experiment(attack=Part(id="spear")).resolve(door.ready())
    run = door.submit(stored, "me")
    with door.store.database.write() as db:
        db.execute("UPDATE runs SET experiment = replace(experiment, '\"spear\"', '\"exact_batches\"')")
    found = door.look(run)
    assert found
    assert '"exact_batches"' in found.experiment
    at = visit(run=run)
    fine(at)
    assert at.session_state["attack"] == "spear"
    assert door.submit(stored, "me") == run  # equal runs are shared


def test_the_warning_stays_until_a_setting_changes(door: Service, visit: Open) -> None:
    at = visit(attack="nope")
    assert "attack=nope" in told(at.run())
    assert asked(door, press_run(at)) == Experiment().resolve(door.ready())
    assert "attack=nope" in told(at)  # beside the run that it is about
    at.number_input(key="seed").set_value(2).run()
    assert told(at) == ""
    at.number_input(key="seed").set_value(1).run()
    assert told(at) == ""


def test_of_very_many_wrong_values_the_first_are_named_and_long_ones_are_cut(door: Service, visit: Open) -> None:
    said = told(visit(attack="x" * 10_000, **{f"gone.field{number}": "1" for number in range(40)}))
    assert f"attack={'x' * 160}… is not known here" in said
    assert said.count("there is no gone here") == 11
    assert said.endswith("And 29 more.")


@pytest.mark.parametrize(
    ("address", "sentences"),
    [
        (
            {"arms": "none,amulet,pruning:fraction=2"},
            [
                "arms: amulet cannot be used here and is left out (defense: 'amulet' is not known",
                "arms: pruning:fraction=2 cannot be used here and is left out (defense pruning.fraction",
            ],
        ),
        ({"differs": "weather", "voices": "choir"}, ["differs=weather cannot be used here; Protection is used", "voices=choir cannot"]),
        ({"differs": "attack", "attacks": "idlg,telepathy"}, ["attacks: telepathy cannot be used here and is left out."]),
        ({"differs": "batch", "sizes": "1,3"}, ["sizes: 3 cannot be used here and is left out."]),
        ({"differs": "strength", "swept": "pruning.no", "seeds": "2"}, ["swept=pruning.no cannot", "seeds=2 cannot be used here; 3"]),
        ({"differs": "answer", "answered": "ada_defense", "answers": "|pray"}, ["answers: pray cannot be used here and is left out."]),
        ({"differs": "attack", "protected": "amulet"}, ["protected: amulet cannot be used here and is left out (defense: 'amulet' is not"]),
        (
            {"v": "1", "attack": "nope", "dlg.steps": "0"},
            ["attack=nope is not known here; Guess and compare (iDLG)", "dlg.steps: allowed is a whole number"],
        ),
    ],
    ids=lambda value: "&".join(value) if isinstance(value, dict) else "",
)  # fmt: skip
@pytest.mark.long
def test_what_a_link_to_a_comparison_cannot_get_is_named(
    door: Service, compare: Open, address: dict[str, str], sentences: list[str]
) -> None:
    said = told(compare(**address)).replace("\\:", ":")
    for sentence in sentences:
        assert sentence in said
    assert not door.store.queue()


def test_of_a_good_link_to_a_comparison_nothing_is_said(door: Service, compare: Open) -> None:
    assert told(compare()) == ""
    assert told(compare(v="1", differs="matrix", arms="none,pruning:fraction=0.5", attacks="idlg,dlg", defense="amulet", utm="x")) == ""


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ({"model": "convnet", "batch_norm": "batch", "defense": "dp_sgd"}, "DP-SGD limits what each picture says alone"),
        ({"model": "resnet18_imagenet", "defense": "precode"}, "PRECODE goes before a last linear layer"),
        ({"model": "resnet18_imagenet", "batch_norm": "batch"}, "BatchNorm has no statistics of this batch"),
        ({"defense": "fedkl"}, "FedKL needs a model whose norm is batch"),
    ],
    ids=lambda value: "&".join(value) if isinstance(value, dict) else "",
)
def test_settings_that_must_fail_are_refused_beside_run(door: Service, visit: Open, address: dict[str, str], sentence: str) -> None:
    at = visit(**address)
    assert told(at) == ""
    assert at.button(key="run-button").disabled
    assert sentence in words(at)


def test_a_comparison_leaves_out_what_must_fail_and_says_why(door: Service, compare: Open) -> None:
    at = compare(v="1", model="convnet", batch_norm="batch", arms="none,dp_sgd,clipping")
    assert any(one.value.startswith("DP-SGD cannot run and is left out: DP-SGD limits what each picture says") for one in at.warning)


def test_an_average_over_one_round_is_named_before_run(door: Service, visit: Open, compare: Open) -> None:
    noise = {"defense": "gaussian_noise", "counter": "average the rounds"}
    assert "has a single round to work with: it puts together what arrived up to the attacked round, and only one is watched" in words(
        visit(**noise)
    )
    at = visit(**noise, rounds="4")
    assert ":material/warning: “average the rounds” has a single round" in words(at)
    assert "and the first is attacked. Watch several rounds and attack a later one." in words(at)
    assert not at.button(key="run-button").disabled
    assert "has a single round" not in words(at.slider(key="attacked_round").set_value(3).run())
    several = compare(v="1", differs="answer", answered="gaussian_noise", rounds="4")
    assert [one.value for one in several.warning if "has a single round" in one.value] == [
        "“average the rounds” has a single round to work with: it puts together what arrived up to the attacked round, and the first is "
        "attacked. Watch several rounds and attack a later one."
    ]


def test_the_command_line_names_it_and_runs_all_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tiny = {"model": {"id": "mlp", "fields": {"width": 16, "depth": 1}}, "attack": {"id": "idlg", "fields": {"steps": 1, "restarts": 1}}}
    noise = {"defenses": [{"id": "gaussian_noise"}], "assume": {"strategy": "average the rounds"}, "rounds": 2}
    for round_, named in ((1, True), (2, False)):
        (tmp_path / "asked.json").write_text(json.dumps({**tiny, **noise, "attacked_round": round_}))
        caplog.clear()
        assert main(["run", str(tmp_path / "asked.json"), "--out", str(tmp_path / f"round {round_}")]) == 0
        assert (
            "has a single round to work with: it puts together what arrived up to the attacked round, and the first" in caplog.text
        ) == named


# ---------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("arm", "sentence"),
    [
        ({"attack": {"id": "telepathy"}}, "attack: 'telepathy' is not known here; allowed are"),
        ({"attack": {"id": "dlg", "fields": {"stepz": 3}}}, "attack 'dlg' has no field 'stepz'; it has steps, restarts."),
        (
            {"defenses": [{"id": "pruning", "fields": {"fraction": 2}}]},
            "defense pruning.fraction: allowed is a number from 0 to 0.999, given was 2",
        ),
        ({"seed": -1}, "experiment 1: seed: input should be greater than or equal to 0; given was -1."),
        ({"brightness": 2}, "experiment 1: brightness: this version has no such field, given was 2."),
        ({"version": 2}, "experiment 1: version: allowed is 1, given was 2."),
        ({"pictures": [{"id": "nobody"}]}, "pictures: The gallery has no picture 'nobody'"),
        ({"attacked_round": 3}, "attacked_round: allowed is 1 to 1, the rounds that were watched; given was 3."),
        ({"model": {"id": "convnet"}, "batch_norm": "batch", "defenses": [{"id": "dp_sgd"}]}, "DP-SGD limits what each picture says alone"),
    ],
    ids=lambda value: "&".join(value) if isinstance(value, dict) else "",
)
@pytest.mark.long
def test_a_wrong_file_is_refused_with_what_is_wrong_and_nothing_is_run(
    door: Service, compare: Open, arm: dict[str, Any], sentence: str
) -> None:
    at = compare()
    file = json.dumps({"experiments": [arm, {}]}).encode()
    at.file_uploader(key="comparison-0").set_value(("comparison.json", file, "application/json")).run()
    at = next(button for button in at.button if button.label == "Run it again").click().run()
    fine(at)
    assert any(sentence in one.value.replace("\\", "") for one in at.error), [one.value for one in at.error]
    assert "runs" not in at.query_params
    assert not door.store.queue()
