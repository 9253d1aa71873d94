"""The page Compare: variants that differ in one thing, run at once, shown side by side, stored as a link and a file."""

import html
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

import pytest
import torch
from page_visits import Open, fine, opener, words
from page_visits import all_asked as asked
from page_visits import press_without_error as press
from small_problems import CATALOG
from streamlit.testing.v1 import AppTest

from leakage.data.checkpoints import cards
from leakage.learn.restored import restore_all
from leakage.results import accuracy_cost
from leakage.results.accuracy_cost import Cost
from leakage.results.comparison import Row
from leakage.results.comparison_exports import make
from leakage.results.comparison_plan import MAX_ATTACKS
from leakage.results.defense_keys import key_of, parse_key
from leakage.results.differences import attacker
from leakage.runs.events import TrainingEnd
from leakage.runs.owners import owner_of
from leakage.runs.service import Service
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture
from leakage.spec.prepared import prepared
from leakage.spec.words import INAPPLICABLE
from leakage.ui.common.markdown import escape
from leakage.ui.compare import cost, table
from leakage.ui.compare.deployed import deployed_query
from leakage.workers.job import MEMORY, Job
from leakage.workers.worker import perform

QUICK = {"v": "1", "voices": "both", "attack": "inverting_gradients", "inverting_gradients.steps": "20"}
ME = owner_of("me")  # the owner with the cookie of `look`
GREY = {"psnr": 11.5, "ssim": 0.1}


@pytest.fixture
def look(door: Service, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Open the page by an address, with no other page before it."""
    return opener("pages/compare.py", monkeypatch)


def shown(at: AppTest) -> str:
    """The table."""
    return "\n".join(str(element.proto.body) for element in at.get("html") if "gle-compared" in element.proto.body)


def row(title: str, attacker: str, **found: Any) -> Row:
    nothing = dict.fromkeys(("verdict", "words", "psnr", "ssim", "lpips", "rank", "label_accuracy", "epsilon", "accuracy"))
    told = {
        "title": title,
        "arm": title,
        "attacker": attacker,
        "run": "r",
        "status": "done",
        "ended": "Attack finished",
        "answered": True,
        "grey": GREY,
        "protection": title,
        "attack": "",
        "answer": "",
    }
    return Row(**{**told, **nothing, **found})


def costing(title: str, psnr: float, *accuracies: float, attacker: str = "both") -> Row:
    """A row with known accuracies."""
    found = Cost("LeNet on MNIST, 6 rounds", "", accuracies)
    return row(title, attacker, psnr=psnr, accuracy=found.accuracy, cost=found)


# ---------------------------------------------------------------- what is prepared, and run


def test_a_newcomer_finds_four_arms_prepared_each_against_the_strongest_known_attackers(door: Service, look: Open) -> None:
    at = look()
    assert at.multiselect(key="arms").value == ["none", "gaussian_noise", "pruning", "ada_defense"]
    assert at.segmented_control(key="voices").value == "worst"
    experiments = asked(door, press(at))
    stacks = [tuple((part.id, part.fields.get("scale", part.fields.get("fraction"))) for part in one.defenses) for one in experiments]
    tried = {stack: stacks.count(stack) for stack in stacks}
    assert list(tried) == [(), (("gaussian_noise", 0.01),), (("pruning", 0.9),), (("ada_defense", None),)]
    assert tried[()] == 2  # nothing to know: iDLG, and Inverting Gradients
    assert max(tried.values()) == MAX_ATTACKS
    equal = [one.model_copy(update={"defenses": (), "assume": Assumptions(), "attack": Part(id="dlg")}) for one in experiments]
    assert len({one.digest() for one in equal}) == 1  # the same pictures, seed, model
    assert (experiments[0].model.id, len(experiments[0].pictures)) == ("lenet", 1)


def test_both_attackers_of_one_attack_are_paired(door: Service, look: Open) -> None:
    experiments = asked(door, press(look(**QUICK, arms="none,gaussian_noise,pruning")))
    stacks = [tuple(part.id for part in one.defenses) for one in experiments]
    assert stacks == [(), *[("gaussian_noise",)] * 2, *[("pruning",)] * 2]
    assert [attacker(one, CATALOG) for one in experiments] == ["both", *["naive", "adaptive"] * 2]


def test_pressed_again_equal_experiments_are_not_run_twice(door: Service, look: Open) -> None:
    at = press(look())
    first = at.query_params["runs"]
    assert press(at).query_params["runs"] == first
    assert len(door.mine(ME)) == len(first.split(","))


def test_pressed_again_they_are_computed_anew_where_somebody_asks_for_that(door: Service, look: Open) -> None:
    at = press(look(**QUICK, arms="none,pruning")).run()
    first = at.query_params["runs"]
    at.toggle(key="anew").set_value(True).run()
    assert set(press(at).query_params["runs"].split(",")).isdisjoint(first.split(","))


@pytest.mark.parametrize(("attackers", "heard"), [("adaptive", ["both", "adaptive"]), ("naive", ["both", "naive"])])
def test_one_attacker_alone_is_one_run_for_each_arm(door: Service, look: Open, attackers: str, heard: list[str]) -> None:
    experiments = asked(door, press(look(**{**QUICK, "arms": "none,pruning", "voices": attackers})))
    assert [attacker(one, CATALOG) for one in experiments] == heard


def test_the_strongest_of_every_arm_is_queued_before_the_others_and_naive_ones_last(door: Service, look: Open) -> None:
    experiments = asked(door, press(look()))
    queued = [run.experiment_as(Experiment) for run in door.store.queue()]
    knowing = [one.assume.adaptive for one in queued]
    assert knowing == sorted(knowing, reverse=True)
    assert len({str(one.defenses) for one in queued[:4]}) == 4
    assert sorted(one.digest() for one in queued) == sorted(one.digest() for one in experiments)


def test_a_full_queue_is_told_and_nothing_is_queued(door: Service, look: Open) -> None:
    most = door.config.max_waiting
    for seed in range(most - 2):
        door.submit(Experiment(seed=100 + seed), ME)
    at = press(look(**QUICK, arms="none,pruning"))
    assert "runs" not in at.query_params
    assert len(door.store.queue()) == most - 2
    assert f"You can have {most} runs waiting or running: {most - 2} are, and this would be 3 more." in words(at)


def test_what_was_precomputed_is_worked_out_once_it_is_opened(look: Open) -> None:
    assert "3 phones together trained LeNet" not in words(look())
    at = look()
    at.session_state["measured"] = True
    at.session_state["measured-tab"] = "What it costs"
    fine(at.run())
    assert "3 phones together trained LeNet" in words(at)
    assert at.dataframe[0].value["Protection"][0] == "No protection"


def test_attackers_who_need_more_than_a_photograph_have_a_table_of_their_own(look: Open) -> None:
    at = look()
    at.session_state["measured"] = True
    fine(at.run())
    (tables,) = (own for own in at.segmented_control if own.key == "measured-scene")
    assert tables.options == ["A photograph", "A digit, by a trained attacker", "A phone that trains"]
    assert {"ROG", "GRNN"} <= heads(at)
    at.segmented_control(key="measured-scene").set_value(tables.options[1]).run()
    fine(at)
    assert {"GGL", "GIFD", "GIAS", "Learning to Invert"} <= heads(at)
    assert "GRNN is not in this table" in words(at)
    at.segmented_control(key="measured-scene").set_value(tables.options[2]).run()
    fine(at)
    assert {"SME", "ROG"} <= heads(at)


def heads(at: AppTest) -> set[str]:
    """The attacks that the precomputed table has."""
    grid = next(str(one.proto.body) for one in at.get("html") if "gle-matrix" in one.proto.body)
    return {html.unescape(head).strip() for head in re.findall(r'<th scope="colgroup"[^>]*>([^<]*)</th>', grid)}


def test_the_proof_is_computed_for_the_round_that_is_chosen(look: Open) -> None:
    at = look()
    at.session_state["measured"], at.session_state["measured-tab"] = True, "A proof, computed"
    fine(at.run())
    assert "is 1 in every round" in words(at)
    assert not at.slider(key="proof-before").disabled
    at.segmented_control(key="proof-round").set_value(1).run()
    fine(at)
    assert at.slider(key="proof-before").disabled  # nothing was before


def test_what_many_rounds_give_away_is_drawn_beside_epsilon_and_said_for_every_strategy(look: Open) -> None:
    at = look()
    at.session_state["measured"], at.session_state["measured-tab"] = True, "Over many rounds"
    fine(at.run())
    box = at.selectbox(key="rounds-stack")
    chosen = next(title for title in box.options if title.startswith("DP-SGD"))
    told = words(box.select(chosen).run())
    assert "Average the rounds: After 1 round" in told
    assert "after 100 rounds" in told
    assert "Its privacy budget (epsilon)" in told
    assert "Why an attacker can undo" not in told
    sampled = next(title for title in box.options if title.startswith("MinMax sampling"))
    told = words(at.selectbox(key="rounds-stack").select(sampled).run())
    fine(at)
    assert "MinMax sampling sends v = g + C / g" in told
    assert "Solve it: After 1 round" in told


def test_equal_arms_are_one_run(door: Service) -> None:
    twice = door.submit_all([Experiment(seed=1), Experiment(seed=2), Experiment(seed=1)], ME)
    assert twice[0] == twice[2] != twice[1]
    assert len(door.store.queue()) == 2
    assert door.submit_all([Experiment(seed=2)], "another") == [twice[1]]


# ---------------------------------------------------------------- what differs


def test_protections_stack_in_the_order_in_which_they_were_named(door: Service, look: Open) -> None:
    at = look(**QUICK, arms="none,gaussian_noise:scale=0.1+clipping")
    at.multiselect(key="stack").set_value(["clipping", "gaussian_noise:scale=0.1"]).run()
    at = next(button for button in at.button if button.label == "Add this variant").click().run()
    fine(at)
    assert at.multiselect(key="arms").value == ["none", "gaussian_noise:scale=0.1+clipping", "clipping+gaussian_noise:scale=0.1"]
    stacks = [[part.id for part in one.defenses] for one in asked(door, press(at))]
    assert stacks == [[], *[["gaussian_noise", "clipping"]] * 2, *[["clipping", "gaussian_noise"]] * 2]


def test_attacks_differ_and_the_chosen_one_keeps_its_settings(door: Service, look: Open) -> None:
    experiments = asked(door, press(look(**{**QUICK, "differs": "attack", "protected": "pruning", "voices": "adaptive"})))
    assert [(one.attack.id, one.attack.fields["steps"]) for one in experiments] == [("inverting_gradients", 20), ("idlg", 300)]
    assert all([part.id for part in one.defenses] == ["pruning"] for one in experiments)


@pytest.mark.long
def test_protections_cross_attacks_and_the_matrix_fills(door: Service, look: Open, work: Callable[[], None]) -> None:
    quick = {**QUICK, "differs": "matrix", "arms": "none,clipping", "attacks": "inverting_gradients,linear_layer"}
    at = press(look(**quick))
    experiments = asked(door, at)
    assert [([part.id for part in one.defenses], one.attack.id, attacker(one, CATALOG)) for one in experiments] == [
        ([], "inverting_gradients", "both"),
        ([], "linear_layer", "both"),
        *((["clipping"], attack, heard) for attack in ("inverting_gradients", "linear_layer") for heard in ("naive", "adaptive")),
    ]

    def cells() -> list[list[str]]:
        grid = next(str(one.proto.body) for one in at.get("html") if "gle-matrix" in one.proto.body)
        return [re.findall(r"<td.*?</td>", line) for line in re.findall(r"<tr.*?</tr>", grid)[2:]]

    assert [["Waiting" in cell for cell in line] for line in cells()] == [[True] * 2, [True] * 4]
    while door.store.queue():
        work()
    at.run()
    fine(at)
    results = [run.result for id in at.query_params["runs"].split(",") if (run := door.look(id)) and run.result]
    wanted = [f">{result['scores']['psnr']:.1f}</span>" if "scores" in result else f">{INAPPLICABLE}<" for result in results]
    assert sum(INAPPLICABLE in number for number in wanted) == 3  # the bias attack: LeNet begins with a convolution
    assert [number in cell for number, cell in zip(wanted, [cell for row in cells() for cell in row], strict=True)] == [True] * 6
    assert at.segmented_control(key="watch-attack").value == "inverting_gradients"
    at.segmented_control(key="watch-attack").set_value("linear_layer").run()
    fine(at)
    other = press(look(**QUICK, differs="matrix", arms="none,pruning", attacks="idlg,dlg"))  # the attack watched before is none of these
    assert other.segmented_control(key="watch-attack").value == "idlg"


def test_of_too_many_runs_the_last_are_left_out_in_words(door: Service, look: Open) -> None:
    arms = "none,gaussian_noise,pruning,clipping,ada_defense,soteria"
    at = look(**QUICK, differs="matrix", arms=arms, attacks="inverting_gradients,idlg,dlg")
    assert "At most 24 runs go at once. Left out: AdaDefense, as published, Guess and compare (iDLG); " in words(at)
    assert " and more (5 of 18 variants)." in words(at)
    runs = asked(door, press(at))
    assert len(runs) == 3 + 10 * 2  # no arm is cut in two: the last place stays empty
    assert sum(attacker(one, CATALOG) == "naive" for one in runs) == sum(attacker(one, CATALOG) == "adaptive" for one in runs)


def test_a_protection_that_the_model_has_no_place_for_is_left_out_before_the_run(door: Service, look: Open) -> None:
    at = look(**QUICK, arms="none,pruning,fedkl")
    assert "FedKL 16 cannot run and is left out: FedKL needs a model whose norm is batch; LeNet" in words(at)
    assert {part.id for one in asked(door, press(at)) for part in one.defenses} == {"pruning"}


def test_other_settings_beside_a_result_are_said_to_be_other(look: Open) -> None:
    changed = "The results below belong to other settings."
    at = press(look(**QUICK, arms="none,pruning"))
    assert changed not in words(at.run())
    assert changed in words(at.number_input(key="seed").set_value(9).run())
    again = look(**{name: str(value) for name, value in at.query_params.items()})
    assert again.number_input(key="seed").value == 9  # a reload keeps them
    assert changed in words(again)
    assert changed not in words(press(at).run())


@pytest.mark.long
def test_arms_that_fail_say_why_once(door: Service, look: Open) -> None:
    at = press(look(**QUICK, arms="none,clipping"))
    while run := door.store.claim("0:1"):
        if run.experiment_as(Experiment).defenses:
            with Job(door.store, run, so_far="") as job:
                job.fail(MemoryError())
        else:
            perform(door.store, run, torch.device("cpu"))
    fine(at.run())
    assert [one.value for one in at.warning] == [f"Clipping 4 (naive); Clipping 4 (adaptive): {escape(MEMORY)}"]


def test_a_strength_is_swept_and_a_value_out_of_range_is_named_and_left_out(door: Service, look: Open) -> None:
    at = look(**QUICK, differs="strength", swept="pruning.fraction", values="0.5 0.9; 7 much,")
    assert "fraction 7 cannot run and is left out: " in words(at)
    assert "allowed is a number from 0 to 0.999" in words(at)
    assert "much is no number" in words(at)
    tried = [(one.seed, one.defenses[0].fields["fraction"]) for one in asked(door, press(at))]
    assert tried == [(seed, share) for seed in (1, 2, 3) for share in (0.5, 0.5, 0.9, 0.9)]  # three seeds unless asked for another number
    assert at.query_params["values"] == "0.5 0.9; 7 much,"


def test_no_values_are_no_arms(look: Open) -> None:
    at = look(**QUICK, differs="strength", swept="pruning.fraction", values=" , ")
    assert not at.warning
    assert "Choose at least two variants." in words(at)


def test_after_a_comparison_of_batches_there_are_as_many_pictures_as_before(look: Open) -> None:
    at = look(**QUICK, differs="batch", sizes="1,4")
    assert (at.number_input(key="batch").value, at.number_input(key="batch").disabled) == (4, True)
    at.button_group(key="differs").set_value("protection").run()
    fine(at)
    assert (at.number_input(key="batch").value, at.number_input(key="batch").disabled) == (1, False)


def test_batches_are_the_first_of_the_same_pictures(door: Service, look: Open) -> None:
    batches = [one.pictures for one in asked(door, press(look(**QUICK, differs="batch", sizes="1,2,4")))]
    assert [len(batch) for batch in batches] == [1, 2, 4]
    assert all(batches[-1][: len(batch)] == batch for batch in batches)


def test_training_states_are_those_that_fit_and_others_are_named(door: Service, look: Open) -> None:
    at = look(**QUICK, differs="training")
    stages = [f"lenet-cifar10@{stage.rounds}" for stage in cards()["lenet-cifar10"].stages]
    assert [one.checkpoint for one in asked(door, press(at))] == ["", *stages]
    at = look(**QUICK, differs="training", states=",".join(["", *stages[:1], f"lenet-mnist@{cards()['lenet-mnist'].stages[0].rounds}"]))
    assert "cannot run and is left out: checkpoint: lenet-mnist was trained with channels 1" in words(at)
    assert [one.checkpoint for one in asked(door, press(at))] == ["", stages[0]]


def test_local_steps_differ_and_a_phone_without_them_is_given_the_prepared_protocol(door: Service, look: Open) -> None:
    at = look(**{**QUICK, "differs": "steps", "steps": "1,20,many,700", "voices": "adaptive"})
    assert "many is no whole number and is left out." in words(at)
    assert "700 is left out: allowed is 1 to 100." in words(at)
    experiments = asked(door, press(at))
    several = prepared().what_ifs.local.change.protocol
    assert several
    assert [(one.protocol.id, one.protocol.fields["epochs"]) for one in experiments] == [(several.id, 1), (several.id, 20)]
    assert ">1 local step</a>" in shown(at.run())
    assert "**Differs.** Local steps: 1; 20." in words(at)
    own = asked(door, press(look(**{**QUICK, "differs": "rate", "rates": "0.1,0.01", "protocol": "fedadmm", "fedadmm.epochs": "3"})))
    assert [(one.protocol.id, one.protocol.fields["epochs"], one.protocol.fields["rate"]) for one in own[::2]] == [
        ("fedadmm", 3, 0.01), ("fedadmm", 3, 0.1)
    ]  # fmt: skip


def test_of_rounds_the_last_is_attacked_and_who_averages_them_is_among_the_strongest(door: Service, look: Open) -> None:
    asked_for = {"differs": "rounds", "watched": "1,4", "protected": "gaussian_noise", "attack": "inverting_gradients"}
    experiments = asked(door, press(look(**{**QUICK, **asked_for, "voices": "worst"})))
    assert {(one.rounds, one.attacked_round) for one in experiments} == {(1, 1), (4, 4)}
    assert {one.rounds for one in experiments if one.assume.strategy == "average the rounds"} == {4}


def test_fewer_than_two_arms_are_no_comparison(look: Open) -> None:
    at = look(**QUICK, arms="none")
    assert at.button(key="run-button").disabled
    assert "Choose at least two variants." in words(at)


def test_protections_that_are_not_known_here_are_passed_over(look: Open) -> None:
    at = look(**QUICK, arms="none,no_such,pruning:fraction=2,pruning:no=1,pruning:fraction=much,pruning:fraction=0.5")
    assert at.multiselect(key="arms").value == ["none", "pruning:fraction=0.5"]


def test_every_answer_to_a_protection_is_an_arm_and_the_naive_attacker_is_one_run(door: Service, look: Open) -> None:
    at = look(**QUICK, differs="answer")
    experiments = asked(door, press(at))
    answers = list(CATALOG.defenses.get("ada_defense").strategies)
    assert len(answers) > 2
    assert [(one.assume.adaptive, one.assume.strategy) for one in experiments] == [
        (False, ""), (True, ""), *((True, name) for name in answers[1:])
    ]  # fmt: skip
    assert {one.defenses[0].id for one in experiments} == {"ada_defense"}
    assert shown(at).count("<tr>") == 2 + len(answers)  # two lines of headings
    at.selectbox(key="answered").set_value("soteria").run()
    fine(at)
    assert at.multiselect(key="answers").value == ["", *list(CATALOG.defenses.get("soteria").strategies)[1:]]
    at.multiselect(key="answers").set_value([""]).run()
    at.selectbox(key="answered").set_value("ada_defense").run()
    assert at.multiselect(key="answers").value == ["", *answers[1:]]  # what was chosen was of the other


def test_the_address_of_a_page_without_a_picture_is_left_alone(look: Open) -> None:
    at = look(v="1", source="upload")
    assert "Choose a picture first." in words(at)


@pytest.mark.long
def test_a_sweep_is_tried_with_several_seeds_as_far_as_they_fit(door: Service, look: Open) -> None:
    sweep = {**QUICK, "differs": "strength", "swept": "gaussian_noise.scale", "voices": "adaptive", "seeds": "5", "seed": "7"}
    at = look(**sweep, values="0.001 0.01 0.1 0.2")
    assert not at.warning
    experiments = asked(door, press(at))
    scales = [one.defenses[0].fields["scale"] for one in experiments]
    assert [(one.seed, scale) for one, scale in zip(experiments, scales, strict=True)] == [
        (seed, scale) for seed in (7, 8, 9, 10, 11) for scale in (0.001, 0.01, 0.1, 0.2)
    ]
    at.text_input(key="values.gaussian_noise.scale").set_value("0.001 0.003 0.01 0.03 0.1 0.3").run()
    press(at)
    again = look(runs=at.query_params["runs"])
    assert (again.segmented_control(key="differs").value, again.segmented_control(key="seeds").value) == ("strength", 3)
    assert "The animation shows the first of 3 random starts (seeds)" in words(again)
    assert "With 5 seeds these would be 30 runs, and at most 24 go at once: 3 of the seeds will be tried." in at.warning[0].value


# ---------------------------------------------------------------- links and files


@pytest.mark.parametrize(
    "address",
    [
        {"arms": "none,pruning:fraction=0.5,clipping+gaussian_noise"},
        {"arms": "none,pruning:fraction=0.5", "voices": "worst"},
        {"differs": "attack", "protected": "pruning", "voices": "naive"},
        {"differs": "matrix", "arms": "none,pruning:fraction=0.5", "attacks": "inverting_gradients,idlg"},
        {"differs": "batch", "sizes": "1,4"},
        {"differs": "training"},
        {"differs": "steps", "steps": "2,7", "protocol": "fedavg", "fedavg.rate": "0.01"},
        {"differs": "rate", "rates": "0.001,0.01"},
        {"differs": "rounds", "watched": "1,3", "protected": "pruning"},
        {"differs": "answer", "answered": "ada_defense", "answers": "read it off|signs alone"},
        {"differs": "answer", "answered": "pruning:fraction=0.7", "answers": "|what arrived, and bounds"},
        {"differs": "strength", "swept": "gaussian_noise.scale", "values": "0.001, 0.1", "seeds": "3", "protected": "clipping"},
    ],
    ids=lambda address: address.get("differs", "protection"),
)
@pytest.mark.long
def test_a_comparison_is_at_a_link_with_its_settings(door: Service, look: Open, address: dict[str, str]) -> None:
    at = press(look(**{**QUICK, **address}))
    runs = at.query_params["runs"]
    for again in (look(runs=runs), look(**{name: str(value) for name, value in at.query_params.items()})):
        assert press(again).query_params["runs"] == runs


def test_a_newcomer_watches_the_prepared_comparison_as_it_was_recorded(door: Service, look: Open) -> None:
    restore_all(door.store)
    at = look()
    assert "Recorded runs, played again." in words(at)
    for arm in ("No protection", "Gaussian noise 0.01", "Pruning 0.9", "AdaDefense"):
        assert arm in shown(at)
    assert door.store.queue() == []
    live = asked(door, press(at))
    assert [one.digest() for one in live] == [run.digest for name in prepared().compare.recorded if (run := door.look(name))]
    assert "played again" not in words(at)
    assert len(door.store.queue()) == len(live)
    other = look().multiselect(key="arms").set_value(["none", "pruning"]).run()
    assert "A comparison is prepared." in words(other)


def test_what_is_prepared_for_a_newcomer_is_at_the_link_too(door: Service, look: Open) -> None:
    at = look().segmented_control(key="voices").set_value("both").run()
    assert at.query_params["inverting_gradients.steps"] == "1000"  # not the attack's usual number, and nobody opened the fine settings
    again = look(**{name: str(value) for name, value in at.query_params.items()})
    assert asked(door, press(again)) == asked(door, press(at))


def test_what_is_prepared_stays_on_this_page(look: Open) -> None:
    at = look(expert="1").switch_page("pages/lab.py").run()
    fine(at.selectbox(key="attack").select("inverting_gradients").run())
    assert at.number_input(key="inverting_gradients.steps").value == 4800


def test_a_lost_link_says_so(look: Open) -> None:
    assert "This comparison is not here" in words(look(runs="no-such-run"))


@pytest.mark.long
def test_runs_with_other_private_pictures_say_so_and_show_each_its_own(door: Service, look: Open) -> None:
    """As from an answer of Ask: two groups of people. Batches of the first of the same pictures are the same pictures."""
    ids = {count: tuple(Picture(id=id) for id in names) for count, names in {1: ["astronaut"], 2: ["astronaut", "chelsea"]}.items()}
    other = (Picture(id="face-0"),)
    runs = [door.submit(Experiment(pictures=pictures), ME) for pictures in (ids[1], ids[2], other)]

    def page(*which: int) -> tuple[str, list[bool]]:
        at = look(runs=",".join(runs[place] for place in which))
        data = [json.loads(element.proto.json)[0] for element in at.get("bidi_component") if "apart" in element.proto.json]
        return words(at), [one["apart"] for one in data]

    assert "One picture, several protections" in page(0, 1)[0]
    apart, stages = page(0, 2)
    assert "Several attacks side by side: not all on the same pictures." in apart
    assert "One picture, several protections" not in apart
    assert page(0, 1)[1] == [False]
    assert stages == [True]


def test_what_differs_and_what_is_equal_is_said_in_words(look: Open) -> None:
    said = words(press(look().segmented_control(key="voices").set_value("both").run()))
    differing, equal = (re.search(rf"\*\*{word}\.\*\*(.*)", said) for word in ("Differs", "Equal"))
    assert differing
    assert equal
    assert "no protection; Gaussian noise 0.01; Pruning 0.9; AdaDefense" in differing[1]
    assert (
        equal[1]
        == " Astronaut, Guess and compare by direction (Inverting Gradients), Small network (LeNet), untrained, seed 1, and all else."
    )
    assert "- The attack: Guess and compare by direction (Inverting Gradients), steps 1000" in said
    worst = words(press(look()))
    protections = "no protection; Gaussian noise 0.01; Pruning 0.9; AdaDefense"
    assert f"**Differs.** The protection: {protections}. Each variant is attacked by the strongest known attackers." in worst
    assert re.search(r"- The attack: Guess and compare \(iDLG\)[^;]*; Guess and compare by direction", worst)
    alone = words(press(look(arms="none")))  # of one variant the attacks are what differs
    assert re.search(r"\*\*Differs\.\*\* .*The attack: Guess and compare \(iDLG\)", alone)
    assert "by the strongest known attackers." not in alone


@pytest.mark.long
def test_the_table_fills_as_runs_finish_and_an_exported_file_runs_again(door: Service, look: Open, work: Callable[[], None]) -> None:
    at = press(look(**QUICK, arms="none,clipping"))  # what clips shares no loop
    assert shown(at).count("Waiting") == 3
    work()
    assert shown(at.run()).count("Waiting") == 2
    work()
    work()
    at.run()
    fine(at)
    assert "Waiting" not in shown(at)
    ids = at.query_params["runs"].split(",")
    for id in ids:
        run = door.look(id)
        assert run
        assert run.result
        assert f">{run.result['scores']['psnr']:.1f}<" in shown(at)
    file = make(door.store, ids, "comparison.json", CATALOG)
    assert file
    other = look()
    other.file_uploader(key="comparison-0").set_value(("comparison.json", file.data, "application/json")).run()
    other = next(button for button in other.button if button.label == "Run it again").click().run()
    fine(other)
    assert other.query_params["runs"].split(",") == ids  # shared: nothing is run twice
    assert other.multiselect(key="arms").value == ["none", "clipping"]


def test_a_file_that_is_no_comparison_is_refused_in_words(look: Open) -> None:
    at = look()
    at.file_uploader(key="comparison-0").set_value(("comparison.json", b'{"experiments": 3}', "application/json")).run()
    at = next(button for button in at.button if button.label == "Run it again").click().run()
    assert "This is no exported comparison" in words(at)
    assert "runs" not in at.query_params


# ---------------------------------------------------------------- table and plot


def texts(line: str) -> list[str]:
    """What stands in the cells of a line, one after the other."""
    return [re.sub(r"<[^>]*>", " ", cell).strip() for cell in re.findall(r"<t[dh].*?</t[dh]>", line)]


def test_an_arm_is_one_line_with_naive_and_adaptive_beside_each_other() -> None:
    rows = [row("no protection", "both", psnr=24.04), row("noise <1>", "naive", psnr=9.0), row("noise <1>", "adaptive", psnr=12.54)]
    lines = re.findall(r"<tr.*?</tr>", table.table(rows))
    assert len(lines) == 5  # two of heads, grey, two arms
    assert texts(lines[0]) == [
        "Variant",
        "Verdict",
        "Accuracy",
        "PSNR",
        "SSIM",
        "LPIPS",
        "Rank",
        "Label",
    ]  # what it costs beside what it does
    assert texts(lines[1])[:6] == ["", "naive", "adaptive", "", "naive", "adaptive"]
    assert texts(lines[2])[3:5] == ["11.5", "0.10"]
    assert texts(lines[3])[:4] == ["No protection", "Attack finished", "–", "24.0"]
    assert texts(lines[4])[:6] == ["Noise &lt;1&gt;", "Attack finished", "Attack finished", "–", "9.0", "12.5"]
    assert lines[3].count('colspan="2"') == 6


def test_on_a_phone_every_cell_says_which_it_is_and_one_that_says_nothing_can_be_left_out() -> None:
    rows = [row("noise", "naive", psnr=9.0), row("noise", "adaptive", psnr=12.54)]
    cells = re.findall(r"<td.*?</td>", re.findall(r"<tr.*?</tr>", table.table(rows))[-1])
    heads = [re.search(r'data-head="([^"]*)"', cell) for cell in cells]
    assert [head and head[1] for head in heads][:5] == ["Verdict, naive", "Verdict, adaptive", "Accuracy", "PSNR, naive", "PSNR, adaptive"]
    assert ["data-unknown" in cell for cell in cells][:5] == [False, False, True, False, False]


def test_where_pictures_differ_the_grey_picture_has_a_range() -> None:
    lines = re.findall(r"<tr.*?</tr>", table.table([row("1 picture", "both"), row("2 pictures", "both", grey={"psnr": 13.1, "ssim": 0.1})]))
    assert texts(lines[1])[3:] == ["11.5 to 13.1", "0.10", "–", "–", ""]


def test_without_two_attackers_there_is_one_column_for_each_number() -> None:
    lines = re.findall(r"<tr.*?</tr>", table.table([row("1 picture", "both", psnr=24.04)]))
    assert len(lines) == 3
    assert [len(texts(line)) for line in lines] == [8] * 3
    assert '<td title="not measured" data-head="Accuracy" data-unknown>–</td>' in lines[2]


def test_a_column_of_accuracies_says_of_what_they_are_and_a_cell_what_its_seeds_can_tell() -> None:
    recipe = "LeNet on MNIST, 6 rounds"
    private = Cost(recipe, "", (0.88, 0.89, 0.9), "5.0 points lost", sampled=1.42, unsampled=math.inf)
    rows = [costing("none", 24.0, 0.97, 0.98, 0.99), row("dp", "both", accuracy=0.89, cost=private, epsilon=4.387)]
    heads, _, none, noisy = re.findall(r"<tr.*?</tr>", table.table([*rows]))
    assert f">Accuracy of {recipe}, 3 seeds</th>" in heads
    assert re.findall(r">((?:ε|Privacy budget)[^<]*)<", heads) == [
        "Privacy budget (epsilon) of that training, not sampled",
        "Privacy budget (epsilon) of that training, if sampled",
        "Privacy budget (epsilon) of what was sent, not sampled",
    ]
    assert ('title="3 seeds: 97.0%, 98.0%, 99.0%"' in none, texts(none)[2], texts(none)[-3:]) == (True, "98.0%", ["–"] * 3)
    assert (texts(noisy)[2].split("  "), texts(noisy)[-3:]) == (["89.0%", "5.0 points lost"], ["∞", "1.4", "4.4"])
    blank = row("convnet", "both", cost=Cost(recipe, "measured of another model"))
    assert 'title="measured of another model"' in table.table([blank])
    assert "ε" not in table.table([blank, rows[0]])


def test_the_plot_shows_the_stronger_attacker_where_accuracies_are_known() -> None:
    noisy = [costing("noise", 9.0, 0.97, attacker="naive"), costing("noise", 12.0, 0.97, attacker="adaptive")]
    assert cost.leakage_against_accuracy(noisy, scene="LeNet on MNIST") is None  # one point is no plot
    every = [costing("none", 24.0, 0.98, 0.99, 1.0), row("unknown", "both", psnr=3.0), *noisy]
    figure = cost.leakage_against_accuracy(every, scene="LeNet on MNIST")
    assert figure
    (drawn,) = figure.data
    assert list(zip(drawn.text, drawn.x, drawn.y, strict=True)) == [("none", 99.0, 24.0), ("noise", 97.0, 12.0)]
    assert drawn.mode == "markers+text"
    assert list(drawn.error_x.array) == pytest.approx([100 * 4.3027 * 0.01 / 3**0.5, 0])  # Student's t, three seeds; one tells no spread
    assert figure.layout.xaxis.title.text == "Accuracy of LeNet on MNIST, 6 rounds, 1 to 3 seeds (%)"
    assert figure.layout.yaxis.title.text == "what leaks of LeNet on MNIST (dB)"


def test_the_matrix_frames_what_only_fools_the_naive_attacker() -> None:
    def cell(attacker: str, attack: str, word: str | None, psnr: float | None = 9.0, protection: str = "noise <1>") -> Row:
        return row(f"{protection}, {attack}", attacker, protection=protection, attack=attack, verdict=word, psnr=psnr, words="why")

    hidden, seen = "not shown by this attack", "recognizable"
    rows = [
        cell("both", "A", seen, 30.04, "none"),
        cell("naive", "A", hidden),
        cell("adaptive", "A", seen, 20.0),
        cell("naive", "B", hidden),
        replace(cell("adaptive", "B", None, None), status="running", ended="Running", answered=False),
    ]
    none, noise = re.findall(r"<tr.*?</tr>", table.matrix(rows))[2:]
    assert re.search(r'colspan="2" title="none, A: recognizable. why">.*--share:1.00">30.0<', none)
    assert none.count("–") == 2  # B is not asked without protection
    naive, adaptive, other, waiting = re.findall(r"<td.*?</td>", noise)
    assert ["data-framed" in one for one in (naive, adaptive, other, waiting)] == [False, True, False, False]
    assert "--share:0.00" in naive
    assert "<small>Running</small>" in waiting
    assert "Noise &lt;1&gt;" in noise
    stopped = [replace(rows[1], ended="Stopped by hand", answered=False), rows[2]]  # it might have found more
    naive, adaptive = re.findall(r"<td.*?</td>", table.matrix(stopped))
    assert ("Stopped by hand" in naive, "data-framed" in adaptive) == (True, False)
    assert table.matrix([rows[1], replace(rows[2], verdict=hidden)]).count("data-framed") == 0


def test_the_strongest_of_several_attacks_and_answers_counts_not_their_mean() -> None:
    noisy = [replace(costing("noise", psnr, 0.97, attacker="adaptive"), attack=attack) for attack, psnr in (("A", 9.0), ("B", 19.0))]
    figure = cost.leakage_against_accuracy([costing("none", 24.0, 0.99), *noisy], scene="LeNet on MNIST")
    assert figure
    assert list(figure.data[0].y) == [24.0, 19.0]


def test_who_found_most_of_an_arm_stands_beside_it_and_how_many_tried() -> None:
    def found_by(*rows: Row) -> str:
        return table.worst_table(rows).rpartition("<tr>")[2]

    first = row("noise, A", "adaptive", arm="noise", attack="Attack A", verdict="recognizable", psnr=20.0)
    other = row("noise, B", "adaptive", arm="noise", attack="Attack B", verdict="not shown by this attack", psnr=9.0)
    stopped = replace(other, ended="Stopped by hand", answered=False)
    waiting = row("noise, A", "adaptive", arm="noise", attack="Attack A", status="running", ended="Running", answered=False)
    assert ("Attack A" in found_by(first, other), "best of 2" in found_by(first, other)) == (True, True)
    assert "1 of 2 answered" in found_by(first, stopped)
    assert ("Attack A" in found_by(waiting, stopped), "0 of 2 answered" in found_by(waiting, stopped)) == (False, True)


def test_defaults_are_left_out_of_the_address() -> None:
    assert (
        key_of((Part(id="clipping", fields={"bound": 1.0}), Part(id="pruning", fields={"fraction": 0.9})), CATALOG)
        == "clipping:bound=1.0+pruning"
    )


# ---------------------------------------------------------------- what protection costs


def test_an_accuracy_cost_that_cannot_be_measured_is_not_offered(look: Open) -> None:
    stack = parse_key("fedkl", CATALOG)
    assert accuracy_cost.training(stack, CATALOG) is None  # the recipe's LeNet has no BatchNorm
    at = press(look(**{**QUICK, "model": "convnet", "arms": "none,clipping:bound=3.0", "voices": "naive"}))
    assert "%</td>" not in shown(at)
    assert "; the model here is another" in shown(at)
    assert not [one.label for one in at.button if one.label.startswith("Clipping")]  # it would say nothing of a ConvNet


def test_leakage_is_drawn_against_accuracy_only_of_the_same_model_and_data() -> None:
    recipe = accuracy_cost.training((), CATALOG)
    assert recipe
    channels, size, _ = recipe.image_shape
    same = Experiment(model=recipe.model, channels=channels, size=size, pictures=(Picture(source=recipe.data, id="0"),))
    changes: list[dict[str, Any]] = [
        {"pictures": (Picture(id="astronaut"),)}, {"channels": 3}, {"size": 32}, {"model": Part(id="convnet")}
    ]  # fmt: skip
    assert accuracy_cost.same_scene(same, CATALOG)
    assert [accuracy_cost.same_scene(same.model_copy(update=change), CATALOG) for change in changes] == [False] * 4


def test_what_nobody_measured_is_trained_by_the_tables_own_recipe(door: Service, look: Open) -> None:
    at = press(look(**{**QUICK, "arms": "none,clipping:bound=3.0", "voices": "naive"}))
    kept = accuracy_cost.trained_in_table((), CATALOG)
    assert kept
    assert f"{sum(kept.accuracies) / len(kept.accuracies):.1%}" in shown(at)  # without protection, from the table
    stack = asked(door, at)[1].defenses
    wanted = accuracy_cost.training(stack, CATALOG)
    assert wanted
    plain = accuracy_cost.training((), CATALOG)
    assert plain
    assert wanted.model_copy(update={"defenses": ()}) == plain
    recipe = json.loads(accuracy_cost.ACCURACY_COSTS.read_text())["recipe"]
    assert {name: getattr(plain, name) for name in recipe if name != "model"} == {name: recipe[name] for name in recipe if name != "model"}
    for told, result in (("Too little memory.", None), ("", TrainingEnd(accuracy=0.9321))):
        id = door.train(wanted, "somebody else")
        assert f"Clipping 3: [being measured](/training?run={id})" in words(at.run())
        for _ in door.store.queue():
            run = door.store.claim("0:1")
            assert run
            door.store.finish(run.id, "done" if result or run.id != id else "failed", message=told, result=result)
        fine(at.run())
        assert "being measured" not in words(at)
        assert (told in words(at), "93.2%" in shown(at)) == (True, bool(result))


# ---------------------------------------------------------------- protections as frameworks offer them


def test_the_link_to_deployed_protections_opens_all_three_with_their_defaults_against_a_phone_that_trains(look: Open) -> None:
    at = look(**dict(parse_qsl(deployed_query(CATALOG))))
    own = prepared().compare.deployed
    assert at.multiselect(key="arms").value == ["none", *(key_of((part,), CATALOG) for part in own.presets.values())]
    assert at.query_params["arms"] == "none,percentile_privacy:steps=5,svt_privacy:steps=5,flower_local_dp"
    assert (at.session_state["protocol"], at.session_state["fedavg.epochs"], at.session_state["voices"]) == ("fedavg", 5, "both")
    for part in own.presets.values():  # what differs from what the framework does by itself is how many steps it is told
        usual = CATALOG.defenses.get(part.id).resolve({})
        assert {name: value for name, value in part.fields.items() if value != usual[name]} in ({"steps": 5}, {})
