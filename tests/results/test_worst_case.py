"""The worst case: the attackers of a scenario, their order, and which result counts."""

import pytest
from comparison_rows import judged
from small_problems import CATALOG

from leakage.results.precomputed import load_results, reach
from leakage.results.worst_case import are_strongest_attacks, attacked_in_several_ways, attackers, strongest_attacks, worst_runs
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.spec.words import NOT_SHOWN, PARTLY, RECOGNIZABLE, SINGLED_OUT

NOISE, PRUNING = Part(id="gaussian_noise"), Part(id="pruning", fields={"fraction": 0.5})
FOUR = tuple(Picture(id=f"face-{number}") for number in range(4))


def ways(experiment: Experiment) -> list[tuple[str, str]]:
    """Attack and attacker of every try."""
    return [
        (one.attack.id, (one.assume.strategy or "imitate") if one.assume.adaptive else "naive")
        for one in strongest_attacks(experiment, CATALOG)
    ]


def test_the_strongest_of_the_precomputed_results_comes_first() -> None:
    fields = {**PRUNING.fields, "scope": "each tensor", "feedback": False}
    tried = {entry.id for entry in CATALOG.attacks if entry.strongest is not None} - {"r_gap"}  # which needs 64 bits
    reached = {
        (cell["attack"], cell["who"]): reach(cell)
        for cell in (load_results("matrix") or {})["cells"]
        if cell["defense"] == {"id": "pruning", "fields": fields} and "psnr" in cell and cell["attack"] in tried
    }
    usual = next(iter(CATALOG.defenses.get("pruning").strategies))
    expected = [(attack, "imitate" if who == usual else who) for attack, who in sorted(reached, key=lambda way: reached[way], reverse=True)]
    assert ways(Experiment(defenses=(PRUNING,)))[: len(expected)] == expected  # what was not measured comes last


@pytest.mark.parametrize(
    ("experiment", "attacks"),
    [
        (Experiment(), {"idlg", "inverting_gradients"}),
        (Experiment(model=Part(id="mlp")), {"linear_layer", "idlg", "inverting_gradients"}),
        (Experiment(precision="float64"), {"r_gap", "idlg", "inverting_gradients"}),
        (Experiment(pictures=FOUR), {"idlg", "inverting_gradients", "gradinversion"}),
        (
            Experiment(pictures=FOUR, model=Part(id="mlp")),
            {"linear_layer", "spear", "idlg", "inverting_gradients", "gradinversion"},
        ),
        (Experiment(pictures=FOUR + FOUR), {"inverting_gradients", "gradinversion"}),
    ],
    ids=["one picture", "dense", "64 bits", "four pictures", "four, dense", "eight pictures"],
)
def test_the_attacks_that_fit_are_tried(experiment: Experiment, attacks: set[str]) -> None:
    assert {attack for attack, _ in ways(experiment)} == attacks


def test_closed_forms_that_nobody_measured_come_first() -> None:
    assert ways(Experiment(model=Part(id="mlp")))[0] == ("linear_layer", "imitate")
    assert ways(Experiment(pictures=FOUR, model=Part(id="mlp")))[:2] == [("spear", "imitate"), ("linear_layer", "imitate")]


def test_everything_that_can_be_done_about_a_protection_is_tried_and_nothing() -> None:
    names = list(CATALOG.defenses.get("soteria").strategies)
    assert attackers(Experiment(defenses=(Part(id="soteria"),)), CATALOG) == ["imitate", *names[1:], "naive"]
    assert attackers(Experiment(), CATALOG) == ["imitate"]  # a naive attacker would do the same
    models = Experiment(pictures=FOUR, aggregation=Part(id="secure_aggregation", fields={"clients": 4}), server=Part(id="loki"))
    assert attackers(models, CATALOG) == ["imitate"]  # what the server built in, both read in the same way
    noise = (Part(id="gaussian_noise"),)  # no attacker can repeat it: an adaptive one averages, or does the same as a naive one
    assert attackers(Experiment(defenses=noise), CATALOG) == ["imitate", "average the rounds"]
    assert attackers(Experiment(protocol=Part(id="fedavg"), defenses=noise), CATALOG) == ["imitate", "average the rounds", "naive"]


def test_a_try_has_the_settings_that_its_plug_in_names() -> None:
    for one in strongest_attacks(Experiment(), CATALOG):
        strongest = CATALOG.attacks.get(one.attack.id).strongest
        assert strongest is not None
        assert {name: one.attack.fields[name] for name in strongest} == strongest


def test_tries_are_told_from_a_comparison_of_chosen_attacks() -> None:
    own, other = strongest_attacks(Experiment(), CATALOG), strongest_attacks(Experiment(defenses=(NOISE,)), CATALOG)
    assert are_strongest_attacks([*own, *other[:1]], CATALOG)
    assert not are_strongest_attacks([own[0], other[0]], CATALOG)  # one way each: a comparison of protections
    assert not are_strongest_attacks([own[0], own[0].model_copy(update={"attack": Part(id="dlg")})], CATALOG)


def test_an_arm_is_judged_by_the_best_of_its_attackers() -> None:
    weak = judged("noise", "naive", NOT_SHOWN, attack="a")
    strong, stronger = (judged("noise", "adaptive", word, attack=word) for word in (PARTLY, SINGLED_OUT))
    other = judged("pruning", "adaptive", RECOGNIZABLE, attack="a")
    assert worst_runs([weak, stronger, strong, other]) == {"noise": stronger, "pruning": other}
    assert worst_runs([weak]) == {"noise": weak}


def test_two_attackers_of_one_attack_need_no_table_of_the_best() -> None:
    pair = [judged("noise", who, NOT_SHOWN, attack="a") for who in ("naive", "adaptive")]
    assert not attacked_in_several_ways(pair)
    assert attacked_in_several_ways([*pair, judged("noise", "adaptive", NOT_SHOWN, attack="b")])
    assert attacked_in_several_ways([*pair, judged("noise", "adaptive", NOT_SHOWN, attack="a", answer="another")])


def test_a_batch_is_attacked_as_a_sum_of_as_many_pictures_was_and_not_as_one_picture() -> None:
    """iDLG, which reaches 44 dB of one picture and 6 of a sum of four, was the control of a batch of four."""
    cells = [cell for cell in (load_results("matrix") or {})["cells"] if cell["defense"] is None and cell["who"] == "naive"]
    summed = {cell["attack"]: reach(cell) for cell in cells if cell.get("phones", 1) > 1}
    first = strongest_attacks(Experiment(pictures=FOUR), CATALOG, measured=True)[0]
    assert first.attack.id == max(summed, key=lambda attack: summed[attack])
