"""The page Compare with servers that change the model: as what differs, and behind protections, beside an honest server."""

import csv
import json
import re
from collections.abc import Callable

import pytest
from page_visits import Open, fine, opener, words
from page_visits import all_asked as asked
from page_visits import press_without_error as press
from small_problems import CATALOG
from streamlit.testing.v1 import AppTest

from leakage.results.comparison_exports import make
from leakage.results.comparison_file import experiments as read_file
from leakage.results.worst_case import are_strongest_attacks
from leakage.runs.service import Service
from leakage.spec.experiment import Experiment
from leakage.spec.prepared import prepared
from leakage.spec.words import RECOGNIZABLE
from leakage.ui.compare.compared import CHECKS, QUESTION, SERVERS

FOUR = ",".join(f"gallery:{name}" for name in ("astronaut", "chelsea", "coffee", "rocket"))
QUICK = {"v": "1", "voices": "both", "attack": "inverting_gradients", "inverting_gradients.steps": "20", "pictures": FOUR}
SUM = {"phones": "2"}  # secure aggregation


@pytest.fixture
def look(door: Service, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Open the page by an address, with no other page before it."""
    return opener("pages/compare.py", monkeypatch)


def attacked(experiments: list[Experiment]) -> list[tuple[str, str]]:
    """The server and the attack of each experiment; an empty text for an honest server."""
    return [(one.server.id if one.server else "", one.attack.id) for one in experiments]


def grids(at: AppTest) -> list[str]:
    return [str(one.proto.body) for one in at.get("html") if "gle-matrix" in one.proto.body]


# ---------------------------------------------------------------- servers as what differs


def test_the_servers_that_fit_are_chosen_and_the_honest_one_is_always_there(door: Service, look: Open) -> None:
    at = look(**QUICK, **SUM, differs="server")
    fitting = [entry.id for entry in CATALOG.servers if entry.rounds == 1]
    assert "imprint" in fitting
    assert set(at.multiselect(key="servers").value) <= set(fitting)
    assert "bisect" not in at.multiselect(key="servers").value  # it needs two rounds
    at.multiselect(key="servers").set_value(["imprint"]).run()
    experiments = asked(door, press(at))
    assert attacked(experiments) == [("", "inverting_gradients"), ("imprint", "bins")]
    honest, cheating = experiments
    assert honest.attack.fields["steps"] == 20  # the attack of the page, with its settings
    assert cheating.model_copy(update={"server": None, "attack": honest.attack}) == honest  # the same pictures, sum and seed


def test_the_headline_asks_about_servers_before_they_run(look: Open) -> None:
    titles = {differs: str(look(**QUICK, differs=differs).markdown[0].value) for differs in ("protection", "server", "checks")}
    assert titles == {"protection": f"#### {QUESTION}", "server": f"#### {SERVERS}", "checks": f"#### {CHECKS}"}


def test_no_chosen_server_leaves_the_honest_one_alone(look: Open) -> None:
    at = look(**QUICK, differs="server")
    at.multiselect(key="servers").set_value([]).run()
    fine(at)
    assert at.button(key="run-button").disabled
    assert "Choose at least two variants." in words(at)


def test_a_server_that_does_not_fit_is_left_out_in_words(door: Service, look: Open) -> None:
    at = look(**QUICK, differs="server", servers="imprint,bisect")
    assert "Bisection cannot run and is left out: rounds: Bisection needs at least 2 watched rounds, given was 1." in words(at)
    assert attacked(asked(door, press(at))) == [("", "inverting_gradients"), ("imprint", "bins")]
    at = look(**QUICK, differs="server", servers="imprint,bisect", rounds="2", attacked_round="2")
    assert [name for name, _ in attacked(asked(door, press(at)))] == ["", "imprint", "bisect"]


def test_one_server_is_tried_with_several_settings(door: Service, look: Open) -> None:
    at = look(**QUICK, differs="server", servers="imprint")
    at.selectbox(key="own-server").set_value("imprint").run()
    at.number_input(key="imprint.bins").set_value(16).run()
    at.button(key="add-server").click().run()
    fine(at)
    assert at.multiselect(key="servers").value == ["imprint", "imprint:bins=16"]
    assert at.button(key="add-server").disabled  # it is among them
    experiments = asked(door, press(at))
    assert [one.server.fields["bins"] if one.server else 0 for one in experiments] == [0, 256, 16]
    table = next(str(one.proto.body) for one in at.run().get("html") if "gle-compared" in one.proto.body)
    assert ["Imprint, bins 256" in table, "Imprint, bins 16" in table] == [True, True]


def test_where_servers_differ_the_honest_one_is_attacked_by_what_needs_no_other(door: Service, look: Open) -> None:
    at = look(v="1", pictures=FOUR, **{"voices": "both"}, server="imprint", attack="bins")
    at.button_group(key="differs").set_value("server").run()
    fine(at)
    usual = prepared().compare.experiment.attack
    assert at.selectbox(key="attack").value == usual.id
    assert not any(box.key == "server" for box in at.selectbox)  # the list of servers takes its place
    assert "server" not in at.query_params
    experiments = asked(door, press(at.multiselect(key="servers").set_value(["imprint"]).run()))
    assert attacked(experiments) == [("", usual.id), ("imprint", "bins")]
    assert experiments[0].attack.fields["steps"] == usual.fields["steps"]


def test_protections_of_all_variants_are_tried_with_every_server(door: Service, look: Open) -> None:
    experiments = asked(door, press(look(**QUICK, differs="server", servers="imprint", protected="pruning")))
    assert [(name, one.assume.adaptive) for (name, _), one in zip(attacked(experiments), experiments, strict=True)] == [
        ("", False), ("", True), ("imprint", False), ("imprint", True)
    ]  # fmt: skip
    assert all([part.id for part in one.defenses] == ["pruning"] for one in experiments)


# ---------------------------------------------------------------- protections, with a server and without


def test_each_protection_has_a_variant_with_an_honest_server(door: Service, look: Open) -> None:
    at = look(**{**QUICK, **SUM, "attack": "bins"}, server="imprint", arms="none,clipping", **{"imprint.bins": "64"})
    assert at.toggle(key="honest").value is True
    experiments = asked(door, press(at))
    names = [([part.id for part in one.defenses], one.server.id if one.server else "", one.assume.adaptive) for one in experiments]
    assert names == [
        ([], "imprint", True),
        ([], "", True),
        *((["clipping"], server, adaptive) for server in ("imprint", "") for adaptive in (False, True)),
    ]
    assert {one.server.fields["bins"] for one in experiments if one.server} == {64}
    assert {one.attack.id for one in experiments if one.server is None} == {prepared().compare.experiment.attack.id}
    assert len({one.seed for one in experiments}) == 1
    without = [one for one in experiments if one.server]
    assert asked(door, press(at.toggle(key="honest").set_value(False).run())) == without
    assert at.query_params["honest"] == "false"


def test_without_a_cheating_server_there_is_no_such_switch(look: Open) -> None:
    assert not any(toggle.key == "honest" for toggle in look(**QUICK, arms="none,clipping").toggle)
    assert not any(toggle.key == "honest" for toggle in look(**QUICK, differs="server").toggle)


def test_the_strongest_attackers_of_a_cheating_server_begin_with_the_one_that_reads_it(door: Service, look: Open) -> None:
    experiments = asked(door, press(look(v="1", **{"voices": "worst"}, pictures=FOUR, server="imprint", arms="none,clipping")))
    first = {(len(one.defenses), one.server is None): one.attack.id for one in reversed(experiments)}
    assert first[0, False] == first[1, False] == "bins"
    assert "bins" not in {one.attack.id for one in experiments if one.server is None}
    assert are_strongest_attacks(experiments, CATALOG)


def test_an_attack_that_needs_a_cheating_server_has_no_honest_variant_where_attacks_differ(door: Service, look: Open) -> None:
    address = {**QUICK, "differs": "attack", "server": "imprint", "attacks": "bins,inverting_gradients"}
    assert attacked(asked(door, press(look(**address)))) == [
        ("imprint", "bins"), ("imprint", "inverting_gradients"), ("", "inverting_gradients")
    ]  # fmt: skip


# ---------------------------------------------------------------- links, files and words


@pytest.mark.parametrize(
    "address",
    [
        {"differs": "server", "servers": "imprint,imprint:bins=16"},
        {"differs": "server", "servers": "imprint,bisect", "rounds": "2", "attacked_round": "2", "protected": "pruning"},
        {"server": "imprint", "imprint.bins": "64", "attack": "bins", "arms": "none,clipping"},
        {"server": "imprint", "attack": "bins", "arms": "none,clipping", "honest": "false"},
        {"server": "imprint", "arms": "none,pruning:fraction=0.5", "voices": "worst"},
        {"server": "imprint", "attack": "bins", "differs": "matrix", "arms": "none,clipping", "attacks": "bins,idlg"},
        {"server": "bisect", "attack": "bins", "differs": "rounds", "watched": "2,3"},
        {"differs": "checks", "servers": "imprint,label_flip", "checks": "new_layers,d_snr", "d_snr.threshold": "2.0"},
        {"differs": "checks", "servers": "imprint", "checks": "new_layers", "refuse": "False"},
    ],
    ids=["server", "rounds", "protection", "no-honest", "worst", "matrix", "watched", "checks", "checks-send"],
)
@pytest.mark.long
def test_a_comparison_of_servers_is_at_a_link_with_its_settings(door: Service, look: Open, address: dict[str, str]) -> None:
    at = press(look(**{**QUICK, **address}))
    runs = at.query_params["runs"]
    assert len(runs.split(",")) > 1
    for again in (look(runs=runs), look(**{name: str(value) for name, value in at.query_params.items()})):
        assert again.button_group(key="differs").value == at.button_group(key="differs").value
        assert press(again).query_params["runs"] == runs


def test_a_link_with_a_server_that_is_not_known_says_so(look: Open) -> None:
    at = look(**QUICK, differs="server", servers="imprint,no_such,imprint:bins=0")
    assert at.multiselect(key="servers").value == ["imprint"]
    assert re.search(r"servers: no.?_such cannot be used here and is left out", words(at).replace("\\", ""))


@pytest.mark.long
def test_pictures_are_read_off_by_a_cheating_server_and_files_say_so(door: Service, look: Open, work: Callable[[], None]) -> None:
    at = press(look(**{**QUICK, **SUM, "attack": "bins"}, server="imprint", arms="none,clipping"))
    while door.store.queue():
        work()
    fine(at.run())
    ids = at.query_params["runs"].split(",")
    runs = [run for id in ids if (run := door.look(id))]
    reading = runs[0].result
    assert reading
    assert reading["verdict"]["word"] == RECOGNIZABLE
    assert reading["scores"]["psnr"] == 100  # the cap: each of the four pictures is alone in its bin, so it is exact
    servers, told = grids(at)[0], words(at)
    assert [head.strip() for head in re.findall(r'<th scope="colgroup"[^>]*>([^<]*)</th>', servers)] == ["Imprint", "Honest server"]
    assert f">{reading['scores']['psnr']:.1f}<" in servers
    assert "**Differs.** The protection: no protection; Clipping 4. The server: Sorts pictures by brightness" in told
    assert "The same pictures, several servers: what leaks if a server changes the model?" in told
    table = make(door.store, ids, "table.csv", CATALOG)
    report = make(door.store, ids, "comparison.html", CATALOG)
    file = make(door.store, ids, "comparison.json", CATALOG)
    assert table
    assert report
    assert file
    lines = table.data.decode("utf-8-sig").splitlines()
    assert [line.rsplit(",", 1)[-1] for line in lines] == [
        "server",
        *["Imprint", "honest server"],
        *["Imprint"] * 2,
        *["honest server"] * 2,
    ]
    assert "it changes the network before it hands the network out" in report.data.decode()
    assert "honest but curious: it follows the protocol" in report.data.decode()
    other = look()
    other.file_uploader(key="comparison-0").set_value(("comparison.json", file.data, "application/json")).run()
    other = next(button for button in other.button if button.label == "Run it again").click().run()
    fine(other)
    assert other.query_params["runs"].split(",") == ids
    assert other.toggle(key="honest").value is True
    assert other.selectbox(key="server").value == "imprint"


# ---------------------------------------------------------------- servers and checks

CHECKED = {**QUICK, "differs": "checks"}


def test_servers_are_looked_at_by_all_checks_beside_an_honest_one_and_the_phone_sends_all_the_same(door: Service, look: Open) -> None:
    at = look(**CHECKED, **SUM, servers="imprint")
    every = {entry.id for entry in CATALOG.checks}
    assert set(at.multiselect(key="checks").value) == every
    assert at.toggle(key="refuse").value is False
    experiments = asked(door, press(at))
    assert attacked(experiments) == [("", "inverting_gradients"), ("imprint", "bins")]
    assert [{part.id for part in one.checks} for one in experiments] == [every, every]
    assert [one.refuse for one in experiments] == [False, False]


def test_checks_that_were_chosen_stay_chosen_and_all_checks_leave_with_the_axis(look: Open) -> None:
    at = look(**CHECKED, servers="imprint")
    at.multiselect(key="checks").set_value([]).run()
    fine(at)
    assert at.multiselect(key="checks").value == []  # not filled again
    at.multiselect(key="checks").set_value(["d_snr"]).run()
    assert at.multiselect(key="checks").value == ["d_snr"]
    at.button_group(key="differs").set_value("protection").run()
    fine(at)
    assert at.multiselect(key="checks").value == []
    at = look(**QUICK, differs="server", servers="imprint", checks="d_snr")
    at.button_group(key="differs").set_value("checks").run()
    assert at.multiselect(key="checks").value == ["d_snr"]  # the visitor's choice
    at.button_group(key="differs").set_value("server").run()
    assert at.multiselect(key="checks").value == ["d_snr"]


@pytest.mark.long
def test_the_table_of_checks_has_numbers_thresholds_and_the_false_alarms_of_the_honest_server(
    door: Service, look: Open, work: Callable[[], None]
) -> None:
    at = press(look(**CHECKED, servers="imprint,label_flip", checks="new_layers,alive", refuse="False", **{"new_layers.threshold": "3"}))
    while door.store.queue():
        work()
    fine(at.run())
    ids = at.query_params["runs"].split(",")
    honest, imprint, _ = (door.store.meta(id) for id in ids)
    assert honest
    assert imprint
    assert [(each.check, each.number, each.threshold, each.tripped) for each in (*honest.checks, *imprint.checks)] == [
        ("new_layers", 0, 3, False), ("alive", 0, 0, False),
        ("new_layers", 4, 3, True), ("alive", 0, 0, False),  # two linear layers, each with a bias
    ]  # fmt: skip
    grid = next(str(one.proto.body) for one in at.get("html") if "gle-checked" in one.proto.body)
    assert "alarm above 3" in grid
    assert grid.count('class="gle-alarm"') == 1
    assert "False alarms with an honest server: none." in words(at)
    assert "Servers that were not noticed: Label flip." in words(at)
    table, report, file = (make(door.store, ids, name, CATALOG) for name in ("table.csv", "comparison.html", "comparison.json"))
    assert table
    assert report
    assert file
    lines = list(csv.DictReader(table.data.decode("utf-8-sig").splitlines()))
    assert [(line["new_layers"], line["new_layers_threshold"], line["new_layers_alarm"]) for line in lines] == [
        ("0", "3.0", "no"), ("4", "3.0", "yes"), ("0", "3.0", "no")
    ]  # fmt: skip
    assert [reading["number"] for reading in json.loads(file.data)["rows"][1]["readings"]] == [4, 0]
    assert "What the phone's checks found" in report.data.decode()
    repeated = [experiment.digest() for experiment in read_file(file.data.decode(), CATALOG)]
    assert repeated == [run.digest for id in ids if (run := door.look(id))]


@pytest.mark.long
def test_a_check_that_refuses_ends_the_run_of_a_cheating_server_alone(door: Service, look: Open, work: Callable[[], None]) -> None:
    at = press(look(**CHECKED, servers="imprint", checks="new_layers", refuse="True"))
    while door.store.queue():
        work()
    fine(at.run())
    verdicts = [bool((run := door.look(id)) and run.result and run.result.get("verdict")) for id in at.query_params["runs"].split(",")]
    assert verdicts == [True, False]
    grid = next(str(one.proto.body) for one in at.get("html") if "gle-checked" in one.proto.body)
    assert ">refused<" in grid


# ---------------------------------------------------------------- accuracy


def test_no_accuracy_is_offered_beside_a_server_that_changes_the_model(look: Open) -> None:
    def buttons(**more: str) -> list[str]:
        at = press(look(**{**QUICK, "attack": "bins"}, server="imprint", arms="none,clipping:bound=3.0", **more))
        return [one.label for one in at.button if one.label.startswith("Clipping")]

    assert buttons(honest="true") == ["Clipping 3"]  # for the variant with an honest server
    assert buttons(honest="false") == []
