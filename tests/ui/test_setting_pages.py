"""The federated setting on the page: protocol, sums, rounds, naive and adaptive attacker, and the table about them."""

import dataclasses
import json
from xml.etree import ElementTree

import pytest
from page_visits import Open, asked, fine, press_run, words
from sample_events import end, meta, received
from small_problems import CATALOG

from leakage.learn.restored import restore_all
from leakage.results.run_assumptions import run_assumptions
from leakage.runs.estimates import count_passes, timing_key
from leakage.runs.service import Service
from leakage.spec import catalog
from leakage.spec.client_behavior import ClientBehavior
from leakage.spec.declarations import Travels
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture, parse
from leakage.spec.threat_model import ATTACKER_ROW, assumptions
from leakage.ui.components import sent
from leakage.ui.components.live import Shown
from leakage.ui.lab.result import find_shown_runs
from leakage.ui.lab.threat_model_table import baseline_rows, setting_rows

EIGHT = {"batch": "8"}
PHONES = Part(id="secure_aggregation", fields={"clients": 4})


def rows(experiment: Experiment, note: dict[str, object] | None = None, *, batch_norm: bool = False) -> dict[str, tuple[str, str]]:
    """The threat model table of an experiment: what it is about -> tag, what holds."""
    told = meta(batch_norm=batch_norm, received=received(1))
    return {what: (tag, value) for tag, what, value in assumptions(experiment.resolve(CATALOG), CATALOG, told, note or {})}


# ---------------------------------------------------------------- choosing


def test_the_federated_setting_goes_into_the_experiment_and_the_address_and_back(door: Service, visit: Open) -> None:
    at = visit(**EIGHT)
    at.selectbox(key="protocol").select("fedavg").run()
    at.slider(key="fedavg.epochs").set_value(3)
    at.select_slider(key="phones").set_value(4)
    at.slider(key="rounds").set_value(5).run()
    at.slider(key="attacked_round").set_value(2)
    at.segmented_control(key="adaptive").set_value("false").run()
    address = {name: str(value) for name, value in at.query_params.items()}
    assert {"protocol": "fedavg", "phones": "4", "rounds": "5", "attacked_round": "2", "adaptive": "false"}.items() <= address.items()
    for page in (at, visit(**{**EIGHT, "fedavg.epochs": "3", **address}), visit(run=press_run(at).query_params["run"])):
        experiment = asked(door, press_run(page))
        fine(page)
        assert (experiment.protocol.id, experiment.protocol.fields["epochs"], experiment.aggregation) == ("fedavg", 3, PHONES)
        assert (experiment.rounds, experiment.attacked_round, experiment.assume.adaptive) == (5, 2, False)


def test_what_the_phone_checks_goes_into_the_experiment_the_address_and_a_file_and_back(door: Service, visit: Open) -> None:
    at = visit(**EIGHT)
    fine(at)
    assert not [toggle for toggle in at.toggle if toggle.key == "refuse"]
    assert not {"checks", "refuse"} & set(at.query_params)
    plain = asked(door, press_run(at))
    at.multiselect(key="checks").select("new_layers").run()
    assert at.query_params["checks"] == "new_layers"
    assert at.toggle(key="refuse").value is True
    at.number_input(key="new_layers.threshold").set_value(5.0).run()
    assert asked(door, press_run(at)).refuse
    at.toggle(key="refuse").set_value(False).run()
    address = {name: str(value) for name, value in at.query_params.items() if name != "run"}
    assert {"checks": "new_layers", "refuse": "False", "new_layers.threshold": "5.0"}.items() <= address.items()
    for page in (
        at,
        visit(checks="new_layers", refuse="False", **{**EIGHT, "new_layers.threshold": "5"}),
        visit(run=press_run(at).query_params["run"]),
    ):
        experiment = asked(door, press_run(page))
        fine(page)
        assert (experiment.checks, experiment.refuse) == ((Part(id="new_layers", fields={"threshold": 5.0}),), False)
        assert parse(experiment.model_dump_json()) == experiment
    at.multiselect(key="checks").unselect("new_layers").run()
    assert not {"checks", "refuse", "new_layers.threshold"} & set(at.query_params)
    assert asked(door, press_run(at)) == plain


@pytest.mark.usefixtures("door")
def test_an_address_with_an_unknown_check_says_so(visit: Open) -> None:
    at = visit(checks="new_layers,tea_leaves", refuse="False")
    fine(at)
    assert at.multiselect(key="checks").value == ["new_layers"]
    assert "checks=tea" in words(at)
    assert "is not known here; it is left out" in words(at)
    assert "refuse=False cannot be used here; True is used instead" in words(visit(refuse="False"))


def test_reset_takes_the_federated_setting_back(door: Service, visit: Open) -> None:
    at = visit(**EIGHT, protocol="fedadmm", phones="4", rounds="5", attacked_round="3", adaptive="false")
    fine(next(button for button in at.button if "Reset" in button.label).click().run())
    assert asked(door, press_run(at)) == asked(door, press_run(visit()))
    assert not {"protocol", "phones", "rounds", "attacked_round", "adaptive"} & set(at.query_params)


def test_what_is_laid_over_others_is_no_protocol_of_its_own(door: Service, visit: Open) -> None:
    at = visit(protocol="secure_aggregation")
    fine(at)
    assert not any("Secure aggregation" in option for option in at.selectbox(key="protocol").options)
    assert asked(door, press_run(at)).protocol.id == "fedsgd"


def test_pictures_that_cannot_be_shared_evenly_are_explained_beside_run(door: Service, visit: Open) -> None:
    at = visit(batch="6", phones="4")
    fine(at)
    assert "6 cannot be shared evenly by 4 phones" in words(at)
    assert at.button(key="run-button").disabled
    assert not at.select_slider(key="phones").set_value(3).run().button(key="run-button").disabled


def test_the_attacked_round_is_one_of_those_watched(door: Service, visit: Open) -> None:
    at = visit(rounds="6", attacked_round="6")
    assert at.slider(key="rounds").set_value(4).run().slider(key="attacked_round").value == 4
    at.slider(key="rounds").set_value(1).run()
    fine(at)
    assert "attacked_round" not in at.query_params
    experiment = asked(door, press_run(at))
    assert (experiment.rounds, experiment.attacked_round) == (1, 1)


@pytest.mark.parametrize(
    "address", [{"phones": "17"}, {"rounds": "0"}, {"attacked_round": "x"}, {"adaptive": "perhaps"}, {"statistics": "all"}]
)
@pytest.mark.long
def test_a_setting_that_does_not_exist_is_passed_over(door: Service, visit: Open, address: dict[str, str]) -> None:
    at = visit(**address)
    fine(at)
    assert asked(door, press_run(at)) == asked(door, press_run(visit()))


def test_statistics_are_offered_where_the_model_has_batchnorm_and_nowhere_else(door: Service, visit: Open) -> None:
    at = visit(model="convnet", statistics="exact")
    fine(at)
    assert asked(door, press_run(at)).assume.statistics == "exact"
    assert visit(run=at.query_params["run"]).selectbox(key="statistics").value == "exact"
    at.selectbox(key="model").select("lenet").run()
    assert "statistics" not in [box.key for box in at.selectbox]
    assert "statistics" not in visit(model="lenet", statistics="exact").query_params
    assert asked(door, press_run(at)).assume.statistics == "none"


def test_the_switch_says_what_it_means_for_what_was_chosen(door: Service, visit: Open) -> None:
    at = visit(protocol="fedavg", **{"fedavg.epochs": "7"})
    assert "Adaptive: it imitates 7 local steps." in words(at)
    assert "knows nothing of the 7 local steps" in words(at.segmented_control(key="adaptive").set_value("false").run())
    at.selectbox(key="protocol").select("fedadmm").run()
    at.selectbox(key="attack").select("dlg_admm").run()
    assert "goes on where the last one ended" in words(at)
    assert "it compares what was sent with a gradient" in words(at)
    at.toggle(key="dlg_admm.repair_state").set_value(True).run()
    assert "goes on where the last one ended" not in words(at)
    at.selectbox(key="protocol").select("fedsgd").run()
    assert "an adaptive attacker would do the same" in words(at)
    assert "does not know of Pruning" in words(at.selectbox(key="defense").select("pruning").run())


def test_runs_with_local_steps_say_nothing_of_how_long_those_without_take() -> None:
    five, one = (Experiment(protocol=Part(id="fedavg", fields={"epochs": epochs})) for epochs in (5, 1))
    assert (
        len({timing_key(five), timing_key(one), timing_key(Experiment()), timing_key(five.model_copy(update={"aggregation": PHONES}))}) == 4
    )
    assert timing_key(five.model_copy(update={"assume": Assumptions(adaptive=False)})) != timing_key(five)
    assert timing_key(five.model_copy(update={"seed": 2})) == timing_key(five)


# ---------------------------------------------------------------- the picture of what is sent


@pytest.mark.parametrize("phones", [1, 2, 16])
@pytest.mark.parametrize("steps", [None, 1, 100])
@pytest.mark.parametrize("protocol", ["fedsgd", "fedavg", "fedprox", "fedadmm", "nobody-knows-it"])
def test_the_picture_is_drawn_and_told_for_any_protocol(protocol: str, steps: int | None, phones: int) -> None:
    entry = CATALOG.protocols.find(protocol) or CATALOG.protocols.get("fedsgd").model_copy(update={"travels": Travels()})
    drawn = ElementTree.fromstring(sent.picture(ClientBehavior(entry, {}, steps, phones, 1, "eval")))
    said = drawn.attrib["aria-label"]
    labels = {text.text for text in drawn.iter("text")}
    assert ("sum only" in labels) == (phones > 1) == ("Each of" in said)
    assert phones > 1 or sent.words(entry.travels).removeprefix("the ") in labels
    assert "the server" in labels
    assert ("local step" in said) == (steps is not None)


def test_each_protocol_has_a_mark_of_its_own_in_the_picture() -> None:
    def picture(protocol: str) -> str:
        return sent.picture(ClientBehavior(CATALOG.protocols.get(protocol), {}, 5, 1, 1, "eval"))

    assert 'class="gle-spring"' in picture("fedprox")
    assert 'class="gle-dual"' in picture("fedadmm")
    plain = picture("fedavg")
    assert plain.count("<ellipse") == 5
    assert "gle-spring" not in plain
    assert "gle-dual" not in plain


def test_a_protocol_that_somebody_adds_gets_the_general_picture_and_runs(door: Service, visit: Open) -> None:
    raw = json.loads(door.config.catalog.read_text())
    said = {"id": "swarm", "title": "Swarm", "short": "Swarm", "plain": "It swarms.", "sends_gradient": False, "travels": {}}
    planted = next(entry for entry in raw["protocols"] if entry["id"] == "fedsgd") | said
    door.config.catalog.write_text(json.dumps(raw | {"protocols": [*raw["protocols"], planted]}))
    assert catalog.read(door.config.catalog) is not None
    at = visit(protocol="swarm")
    fine(at)
    assert "Adaptive: it imitates what Swarm does." in words(at)
    assert asked(door, press_run(at)).protocol.id == "swarm"
    fine(at)


# ---------------------------------------------------------------- the threat model table


def test_the_threat_model_table_tells_the_protocol_with_its_settings_and_the_rounds() -> None:
    fields = {"epochs": 2, "mini_batch": 2, "rate": 0.01, "momentum": 0.9, "shuffled": True}
    eight = tuple(Picture(id=name) for name in ("astronaut", "cat", "coffee", "rocket", "retina", "face-0", "face-1", "face-2"))
    said = rows(Experiment(pictures=eight, protocol=Part(id="fedavg", fields=fields), aggregation=PHONES, rounds=3, attacked_round=2))
    tag, value = said["What the client does"]
    assert tag == "knows"
    for piece in (
        "2 epochs over all its pictures at once, 2 local steps",
        "step size 0.01",
        "momentum 0.9",
        "random order that nobody else",
    ):
        assert piece in value
    assert said["A sum of several phones"][1] == "of 4 phones with 2 pictures each; never a single update"
    assert said["Rounds watched"][1] == "3, of which round 2 is attacked"
    assert "random order" in said["Naive or adaptive"][1]
    plain = rows(Experiment())
    assert plain["Rounds watched"][1] == "1, which is attacked"
    assert "A sum of several phones" not in plain


@pytest.mark.parametrize(
    ("protocol", "attack", "adaptive", "tag", "piece"),
    [
        ("fedavg", "idlg", True, "knows", "imitates 5 local steps"),
        ("fedavg", "idlg", False, "does not know", "knows nothing of the 5 local steps"),
        ("fedprox", "idlg", False, "does not know", "the proximal term"),
        ("fedadmm", "idlg", False, "does not know", "the hidden correction"),
        ("fedadmm", "dlg_admm", True, "knows", "works out the hidden correction"),
        ("fedadmm", "dlg_admm", False, "knows", "instead of starting afresh and it compares what was sent with a gradient"),
        ("fedsgd", "idlg", False, "knows", "here it is one"),
    ],
)
def test_the_threat_model_table_says_what_is_imitated_and_what_is_mistaken(
    protocol: str, attack: str, adaptive: bool, tag: str, piece: str
) -> None:
    said = rows(Experiment(protocol=Part(id=protocol), attack=Part(id=attack), assume=Assumptions(adaptive=adaptive)))
    assert said["What the client does"][0] == tag
    assert said["Naive or adaptive"][1].startswith("Adaptive: " if adaptive else "Naive: ")
    assert piece in said["Naive or adaptive"][1]


def test_the_threat_model_table_repeats_what_the_attack_says_of_itself() -> None:
    note = {"label rule": "a rule", "label certainty": 0.97, "attacker": "naive, repaired: state"}
    said = rows(Experiment(), note)
    assert said["The labels"] == ("finds out", "a rule, expected to be right for about 97 %")
    assert said["Naive or adaptive"][1].endswith("The attack reports: naive, repaired: state.")
    assert rows(Experiment(), {"label rule": "a rule"})["The labels"][1] == "a rule"
    assert "more than 99 %" in rows(Experiment(), {"label rule": "a rule", "label certainty": 0.999})["The labels"][1]
    assert "Whether it was right" not in rows(Experiment(), note)
    assert rows(Experiment(), {"lambda": 0.9985, "proved": 7})["Whether it was right"][1].startswith("lambda 0.9985")
    assert "7 pictures proved" in rows(Experiment(), {"lambda": 0.9985, "proved": 7})["Whether it was right"][1]
    assert rows(Experiment(), {"prior": "handwritten digits: so"})["What such pictures look like"] == ("assumed", "handwritten digits: so")
    assert "What such pictures look like" not in rows(Experiment(), note)
    assert rows(Experiment(assume=Assumptions(labels=True)), note)["The labels"] == ("granted", "granted by a switch")


def test_the_threat_model_table_says_where_an_answer_was_read_and_what_the_attack_thinks_of_it() -> None:
    scores = {"cosine": 0.1, "relative_l2": 0.2, "mse": 0.3, "psnr": 5.2}
    experiment = Experiment(attack=Part(id="linear_layer")).resolve(CATALOG)

    def said(**note: object) -> dict[str, str]:
        return {what: value for _, what, value in setting_rows(experiment, CATALOG, None, end(1, scores=scores, note=note))}

    closed = said(**{"read from": "130 rows of linear1", "event": "It is no exact copy."})
    assert (closed["What the picture was read from"], closed["What the attack reports"]) == (
        "130 rows of linear1",
        "It is no exact copy.",
    )
    assert "Which try of the search is shown" not in closed
    searched = said(start=2)
    assert searched["Which try of the search is shown"] == "try 2"
    assert not {"What the picture was read from", "What the attack reports"} & set(searched)
    model = "The model that the attacker computes with: as the phone received it (0), as the phone sent it back (1), or a mixture"
    assert said(alpha=0.48123)[model] == "alpha 0.48"


def test_a_search_says_how_it_got_its_derivatives_and_a_closed_form_needs_none() -> None:
    told = meta(received=received(1), versions={"torch": "2", "derivatives by": "formula"})
    search, closed = (Experiment(attack=Part(id=attack)).resolve(CATALOG) for attack in ("inverting_gradients", "linear_layer"))
    row = "How the search gets its derivatives"
    searched, read = ({what: value for _, what, value in setting_rows(one, CATALOG, told, None)} for one in (search, closed))
    ended = end(1, note={"derivatives by": "formula, compiled"})
    assert "compiled on this machine" in {what: value for _, what, value in setting_rows(search, CATALOG, told, ended)}[row]
    assert "compiled" not in searched[row]
    assert searched[row].startswith("by a formula for the layers of this network")
    assert row not in read
    assert searched["Device and versions"] == read["Device and versions"] == f"{told.environment.device}; torch 2"


def test_of_a_batch_the_table_gives_mean_scores_of_baselines() -> None:
    one, eight = (baseline_rows(meta(received=received(1), batch=batch))[0][2] for batch in (1, 8))
    assert eight == one + ", on average over the batch"


def test_a_refused_run_tells_the_server_and_nothing_of_an_update_that_was_never_sent() -> None:
    experiment = Experiment(checks=(Part(id="new_layers"),), attack=Part(id="inverting_gradients")).resolve(CATALOG)
    refused = end(0, ending={"how": "refused", "words": "The phone refused.", "step": 0})
    told = [{row[1] for row in run_assumptions(experiment, CATALOG, None, ending)} for ending in (None, refused)]
    assert told[0] - told[1] >= {ATTACKER_ROW, "The labels"}
    assert "The model and its weights" in told[1]


def test_an_attack_without_steps_costs_the_replays_of_its_answer() -> None:
    at_once = Experiment(attack=Part(id="linear_layer")).resolve(CATALOG)
    assert count_passes(at_once, CATALOG) == 1
    assert count_passes(at_once.model_copy(update={"protocol": Part(id="fedavg", fields={"epochs": 5})}), CATALOG) == 5
    assert (
        count_passes(Experiment(attack=Part(id="inverting_gradients", fields={"steps": 60, "starts": 2})).resolve(CATALOG), CATALOG) == 120
    )
    local = Part(id="fedavg", fields={"epochs": 5})
    assert count_passes(Experiment(attack=Part(id="sme", fields={"steps": 60}), protocol=local).resolve(CATALOG), CATALOG) == 60


@pytest.mark.parametrize(("given", "tag"), [("none", "does not know"), ("running", "granted"), ("exact", "granted")])
def test_the_threat_model_table_says_which_statistics_were_granted(given: str, tag: str) -> None:
    experiment = Experiment(model=Part(id="convnet"), assume=Assumptions(statistics=given))
    assert rows(experiment, batch_norm=True)["BatchNorm statistics"][0] == tag
    assert "BatchNorm statistics" not in rows(Experiment())


# ---------------------------------------------------------------- a published result, overturned


@pytest.mark.parametrize("how", ["button", "address"])
def test_the_preset_runs_the_naive_and_the_adaptive_attack_side_by_side(
    door: Service, visit: Open, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages: list[list[Shown]] = []
    monkeypatch.setattr("leakage.ui.lab.result.stage", lambda shown, key: bool(stages.append(shown)))
    at = visit(preset="overturned") if how == "address" else visit().button(key="overturned").click().run()
    fine(at)
    assert "preset" not in at.query_params
    runs = find_shown_runs(at.query_params["run"])
    first, second = (run.experiment_as(Experiment) for run in runs)
    assert (first.assume.adaptive, second.assume.adaptive) == (False, True)
    assert first == second.model_copy(update={"assume": first.assume})
    assert [run.grp for run in runs] == ["overturned"] * 2
    assert [(shown.id, shown.title) for shown in stages[-1]] == [
        (runs[0].id, "Naive: as reported"),
        (runs[1].id, "Adaptive: same data, same seed"),
    ]
    assert stages[-1][0].sent == "the change of model and hidden correction"
    assert [tab.label for tab in at.tabs] == ["Naive: as reported", "Adaptive: same data, same seed"]
    assert "concluded that the method (ADMM) does not leak" in words(at)
    assert (at.selectbox(key="protocol").value, at.segmented_control(key="adaptive").value) == ("fedadmm", "true")
    cancels = {f"cancel-{run.id}" for run in runs}
    assert cancels <= {button.key for button in at.button}
    at.button(key=f"cancel-{runs[0].id}").click().run()
    assert [run.status for run in find_shown_runs(at.query_params["run"])] == ["cancelled", "queued"]


def test_a_preset_plays_its_recordings_at_once_and_computes_them_when_asked(door: Service, visit: Open) -> None:
    restore_all(door.store)
    at = visit().button(key="overturned").click().run()
    fine(at)
    assert at.query_params["run"] == "r19,r20"
    assert door.store.queue() == []
    assert "Recorded runs, played again." in words(at)
    assert (at.selectbox(key="protocol").value, at.segmented_control(key="adaptive").value) == ("fedadmm", "true")
    at.button(key="live").click().run()
    fine(at)
    live = find_shown_runs(at.query_params["run"])
    assert [run.grp for run in live] == ["overturned"] * 2
    assert [run.digest for run in live] == [run.digest for run in find_shown_runs("r19,r20")]
    assert "played again" not in words(at)


def test_a_second_preset_reads_a_stand_in_off(door: Service, visit: Open) -> None:
    at = visit(preset="stand-in")
    fine(at)
    naive, adaptive = (run.experiment_as(Experiment) for run in find_shown_runs(at.query_params["run"]))
    assert naive == adaptive.model_copy(update={"assume": Assumptions(adaptive=False)})
    assert (adaptive.defenses[0].id, adaptive.assume.strategy) == ("ada_defense", "read it off")
    assert [tab.label for tab in at.tabs] == ["Naive: takes it for a gradient", "Adaptive: solves its formula for the gradient"]
    assert at.selectbox(key="counter").value == "read it off"
    assert "An attacker who knows the formula solves it" in words(at)


def test_a_link_to_two_runs_shows_both_with_the_settings_of_the_second(door: Service, visit: Open) -> None:
    one, two = (press_run(visit(seed=seed)).query_params["run"] for seed in ("1", "2"))
    at = visit(who="you", run=f"{one},{two},nobody")
    fine(at)
    assert len(at.tabs) == 2
    assert at.number_input(key="seed").value == 2
    assert "A published result" not in " ".join(str(markdown.value) for markdown in at.markdown)
    alone = visit(run=f"nobody,{one}")
    fine(alone)
    assert not alone.tabs


def test_a_preset_that_is_refused_is_explained(door: Service, visit: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "config", dataclasses.replace(door.config, max_waiting=0))
    at = visit(preset="overturned")
    fine(at)
    assert "waiting" in at.error[0].value
    assert "run" not in at.query_params


# ---------------------------------------------------------------- an accomplice


def test_an_accomplice_is_chosen_where_the_strategy_needs_one_goes_into_the_address_and_is_dropped_with_it(
    door: Service, visit: Open
) -> None:
    ranked = {"defense": "minmax_sampling", "counter": "with an accomplice", "rounds": "5", "attacked_round": "5"}
    at = visit(**ranked)
    assert "needs another phone that works with the attacker, and there is none" in words(at)
    at.selectbox(key="accomplice").select("gallery:chelsea").run()
    assert "needs another phone" not in words(at)
    assert at.query_params["accomplice"] == "gallery:chelsea"
    for page in (at, visit(**ranked, accomplice="gallery:chelsea")):
        assert asked(door, press_run(page)).assume.accomplice == Picture(id="chelsea")
    at.selectbox(key="counter").select("").run()
    assert "accomplice" not in [box.key for box in at.selectbox]
    assert "accomplice" not in at.query_params
    assert asked(door, press_run(at)).assume.accomplice is None


def test_an_accomplice_that_cannot_be_is_explained_beside_run(door: Service, visit: Open) -> None:
    ranked = {"defense": "minmax_sampling", "counter": "with an accomplice", "rounds": "5", "attacked_round": "5"}
    at = visit(**ranked, accomplice="gallery:astronaut")
    assert "given was one of the private pictures" in words(at)
    assert at.button(key="run-button").disabled
    assert "accomplice=gallery:nobody is not known here; nobody is used instead" in words(
        visit(**ranked, accomplice="gallery:nobody")
    ).replace("\\", "")


def test_other_pictures_of_every_class_are_granted_by_a_switch_that_the_address_repeats(door: Service, visit: Open) -> None:
    at = visit()
    assert not asked(door, press_run(at)).assume.examples
    at.toggle(key="examples").set_value(True).run()
    assert at.query_params["examples"] == "True"
    for page in (at, visit(examples="true")):
        assert asked(door, press_run(page)).assume.examples
