"""One predicate says where naive and adaptive attackers are the same; the engine proves it, and every place uses it."""

from dataclasses import replace

import pytest
import torch
from small_problems import CATALOG, LABELS, TINY, smooth

from leakage.engine.core import Params
from leakage.results.differences import attacker, differs
from leakage.results.run_titles import attack_title
from leakage.results.what_ifs import what_ifs
from leakage.runs.event_parts import CheckFacts
from leakage.spec.catalog import Entries
from leakage.spec.cautions import all_cautions, warnings
from leakage.spec.check_words import summary
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture
from leakage.spec.threat_model import assumptions, coincide
from leakage.workers.adapter import observe

TWO = (Picture(id="cat"), Picture(id="coffee"))
CLIENTS = Part(id="secure_aggregation", fields={"clients": 2})
NORMED = Part(id="convnet", fields={"width": 4})
SUM = Experiment(pictures=TWO, model=TINY, aggregation=CLIENTS)
ASKED = {
    "one gradient": (Experiment(model=TINY), True),
    "one gradient of a batch whose statistics BatchNorm took": (Experiment(pictures=TWO, model=NORMED, batch_norm="batch"), True),
    "a sum of gradients": (SUM, True),
    "a sum of gradients with stored statistics": (SUM.model_copy(update={"model": NORMED}), True),
    "a sum in a later round": (SUM.model_copy(update={"rounds": 3, "attacked_round": 3}), True),
    "a sum of gradients, each with statistics of its own": (SUM.model_copy(update={"model": NORMED, "batch_norm": "batch"}), False),
    "a sum of gradients, each of a model of its own": (SUM.model_copy(update={"server": Part(id="loki", fields={"bins": 8})}), False),
    "a protection": (Experiment(model=TINY, defenses=(Part(id="pruning"),)), False),
    "local steps": (Experiment(model=TINY, protocol=Part(id="fedavg", fields={"epochs": 3, "rate": 0.1})), False),
}
EVERY = pytest.mark.parametrize(("experiment", "same"), ASKED.values(), ids=ASKED.keys())


def both(experiment: Experiment) -> list[Experiment]:
    """Against a naive attacker, and against an adaptive one."""
    return [experiment.model_copy(update={"assume": Assumptions(adaptive=adaptive)}) for adaptive in (False, True)]


def apart(first: Params, second: Params) -> float:
    """How far two gradients are from each other, in lengths of the second."""
    lengths = [
        torch.cat([value.flatten() for value in one]).norm()
        for one in ([first[name] - value for name, value in second.items()], second.values())
    ]
    return float(lengths[0] / lengths[1])


@EVERY
def test_the_attackers_coincide_where_they_hold_the_same_gradient_and_replay_the_same(experiment: Experiment, same: bool) -> None:
    x, guess = (smooth(len(experiment.pictures), 3, 32, seed=seed) for seed in (0, 1))
    y, other = LABELS[: len(x)], LABELS[1 : len(x) + 1]
    naive, adaptive = (observe(one, x, y) for one in both(experiment))
    received = apart(naive.as_gradient(), adaptive.as_gradient())
    replayed = apart(naive.gradient(guess, other), adaptive.gradient(guess, other))
    together = apart(naive.gradients(guess[None], other), adaptive.gradients(guess[None], other))
    assert coincide(experiment, CATALOG) == same
    if same:
        assert max(received, replayed, together) < 1e-6  # float32
    else:
        assert max(received, replayed) > 1e-3


def test_who_holds_the_truth_is_right_about_a_sum_with_statistics_of_each_phone_only_if_adaptive() -> None:
    experiment, _ = ASKED["a sum of gradients, each with statistics of its own"]
    x = smooth(2, 3, 32)
    errors = []
    for one in both(experiment):
        seen = observe(one, x, LABELS[:2])
        errors.append(apart(seen.gradient(x, LABELS[:2]), seen.as_gradient()))
    assert errors[0] > 0.01
    assert errors[1] < 1e-6


@EVERY
def test_every_place_tells_the_same(experiment: Experiment, same: bool) -> None:
    naive, adaptive = both(experiment)
    assert [attacker(one, CATALOG) for one in (naive, adaptive)] == (["both", "both"] if same else ["naive", "adaptive"])
    offered = {question for one in (naive, adaptive) for question in what_ifs(one, CATALOG, [])}
    assert ("a naive attacker" in offered, "an adaptive attacker" in offered) == (not same, not same)
    said = [
        next(value for _, what, value in assumptions(one.resolve(CATALOG), CATALOG, None, {}) if what == "Naive or adaptive")
        for one in (naive, adaptive)
    ]
    assert ("an adaptive attacker would do the same" in said[0]) == same
    assert ("a naive attacker would" in said[1]) == same


def test_of_a_sum_with_statistics_of_each_phone_the_naive_attacker_is_told_to_be_wrong() -> None:
    naive, _ = both(ASKED["a sum of gradients, each with statistics of its own"][0])
    said = [value for _, what, value in assumptions(naive.resolve(CATALOG), CATALOG, None, {}) if what == "Naive or adaptive"]
    assert said == [
        "Naive: it takes the sum, divided by the number of phones, for a plain gradient, "
        "though each phone's BatchNorm used statistics of its own."
    ]


def test_of_a_sum_of_models_the_naive_attacker_is_told_to_be_wrong_unless_it_reads_what_was_built_in() -> None:
    naive, _ = both(ASKED["a sum of gradients, each of a model of its own"][0])
    reads = naive.model_copy(update={"attack": Part(id="bins")})
    behind = reads.model_copy(update={"defenses": (Part(id="gaussian_noise"),)})
    wrong, right, noisy, knowing = (
        next(value for _, what, value in assumptions(one.resolve(CATALOG), CATALOG, None, {}) if what == "Naive or adaptive")
        for one in (naive, reads, behind, reads.model_copy(update={"assume": Assumptions(adaptive=True)}))
    )
    assert wrong == (
        "Naive: it takes the sum, divided by the number of phones, for a plain gradient, though each phone received a model of its own."
    )
    assert right == (
        "Naive: it reads in the sum what the server built into the model of each phone, and an adaptive attacker would do the same."
    )
    assert noisy == "Naive: it reads in the sum what the server built into the model of each phone. It does not know of Gaussian noise."
    assert knowing == "Adaptive: it reads in the sum what the server built into the model of each phone, as a naive attacker would."
    assert (coincide(naive, CATALOG), coincide(reads, CATALOG)) == (False, True)


def test_of_a_protocol_that_is_gone_nothing_is_claimed() -> None:
    gone = Experiment(protocol=Part(id="forgotten"))
    assert not coincide(gone, CATALOG)
    assert attacker(gone, CATALOG) == "adaptive"


def test_who_asks_a_trained_network_is_said_to_imitate_nothing() -> None:
    asking = Experiment(size=28, channels=1, defenses=(Part(id="ada_defense"),), attack=Part(id="learning_to_invert"))
    naive, adaptive = ({what: words for _, what, words in assumptions(one.resolve(CATALOG), CATALOG, None, {})} for one in both(asking))
    assert naive["Naive or adaptive"] == ("Naive: it asks the network that was trained without protection. It does not know of AdaDefense.")
    assert adaptive["Naive or adaptive"] == "Adaptive: it asks the network that was trained behind AdaDefense."
    assert naive["The protection"].endswith("not known: the update is taken as it came")
    assert adaptive["The protection"].endswith("known: the network was trained behind it")
    chosen = asking.model_copy(update={"assume": Assumptions(strategy="read it off")}).resolve(CATALOG)
    (warned,) = warnings(chosen, CATALOG)
    assert "does nothing here: Learning to Invert asks the network that was trained behind the protection." in warned
    assert warnings(asking.resolve(CATALOG), CATALOG) == []


@pytest.mark.parametrize(("defense", "imitated"), [("pruning", True), ("gaussian_noise", False), ("soteria", True)])
def test_who_imitates_no_phone_is_said_to_imitate_no_protection(defense: str, imitated: bool) -> None:
    asked = Experiment(protocol=Part(id="fedavg", fields={"epochs": 5}), defenses=(Part(id=defense),), attack=Part(id="sme"))
    rows = {what: words for _, what, words in assumptions(asked.resolve(CATALOG), CATALOG, None, {})}
    own = "known, and not imitated: this attack imitates no phone"
    told = own if imitated else CATALOG.defenses.get(defense).default_strategy.description
    assert rows["The protection"].endswith(f": {told}")
    assert rows["Naive or adaptive"].endswith(f" is {told}.")


def test_what_weighs_or_undoes_an_update_is_no_imitation() -> None:
    imitating = {entry.id: entry.strategies_with(imitating=True) for entry in CATALOG.defenses}
    assert "without that layer" not in imitating["soteria"]  # it weighs
    assert "read it off" not in imitating["ada_defense"]  # it undoes
    assert "look for the noise" not in imitating["precode"]  # it looks for it
    assert imitating["gaussian_noise"] == []  # against noise an adaptive attacker imitates nothing, or averages


@pytest.mark.parametrize("protocol", [entry.id for entry in CATALOG.protocols if not entry.is_aggregation])
@pytest.mark.parametrize("epochs", [1, 2])
def test_a_protocol_says_truly_whether_what_it_sends_is_a_gradient(protocol: str, epochs: int) -> None:
    entry = CATALOG.protocols.get(protocol)
    fields = {"epochs": epochs, "rate": 0.01} if any(field.name == "epochs" for field in entry.fields) else {}
    naive = observe(
        Experiment(model=TINY, protocol=Part(id=protocol, fields=fields), assume=Assumptions(adaptive=False)), smooth(1, 3, 32), LABELS[:1]
    )
    plain = observe(Experiment(model=TINY), smooth(1, 3, 32), LABELS[:1])
    is_one = entry.sends_gradient or (entry.travels.one_step and epochs == 1)
    assert (apart(naive.as_gradient(), plain.received.update) < 1e-4) == is_one  # a step of 0.01 rounds the sixth digit


def test_the_first_row_says_whether_the_server_keeps_to_the_protocol() -> None:
    first, *rest = assumptions(Experiment().resolve(CATALOG), CATALOG, None, {})
    assert first == ("assumed", "The server", "honest but curious: it follows the protocol, and reads what arrives")
    cheating = Experiment(server=Part(id="imprint", fields={"mean": 0.25})).resolve(CATALOG)
    (tag, what, text), knows, *others = assumptions(cheating, CATALOG, None, {})
    assert (tag, what) == ("assumed", "The server")
    assert text.startswith("it changes the network before it hands the network out. Sorts pictures by brightness")
    assert "bins 256, mean 0.25" in text
    assert knows == ("granted", "How bright such pictures are", "a normal distribution with mean 0.25 and standard deviation 0.1258")
    assert others == rest


def test_a_server_that_changes_values_alone_is_said_to_leave_the_network() -> None:
    moved = CATALOG.servers.get("imprint").model_copy(update={"changes": "parameters", "granted": None})
    known = replace(CATALOG, servers=Entries("server", (moved,)))
    rows = assumptions(Experiment(server=Part(id="imprint")).resolve(known), known, None, {})
    assert rows[0][2].startswith("it changes the model's parameters before it hands the model out. ")
    assert [what for _, what, _ in rows].count("How bright such pictures are") == 0


def test_what_the_attacker_assumes_of_a_protections_errors_stands_in_the_threat_model_table() -> None:
    noisy, note = Experiment(model=TINY, defenses=(Part(id="gaussian_noise"),)), {"errors": "known from the protection"}
    row = ("assumed", "How large the protection's errors are", "known from the protection")
    assert row in assumptions(noisy, CATALOG, None, note)
    assert row not in assumptions(Experiment(model=TINY), CATALOG, None, note)  # there is no protection
    assert row not in assumptions(noisy, CATALOG, None, {})  # a closed form, or a run that has not ended


# ---------------------------------------------------------------- what the phones check

CHECKED = Experiment(model=TINY, checks=(Part(id="new_layers", fields={"threshold": 2.0}),))
MEASURES = f"The check measures {CATALOG.checks.get('new_layers').measures}."


def reading(number: float | None, round: int = 1, *, tripped: bool = False) -> CheckFacts:
    return CheckFacts(check="new_layers", title="New layers", number=number, threshold=2.0, tripped=tripped, round=round)


def checks_told(experiment: Experiment, *found: CheckFacts) -> list[str]:
    rows = assumptions(experiment.resolve(CATALOG), CATALOG, None, {}, readings=found)
    return [what for tag, about, what in rows if (tag, about) == ("checks", "The phone checks: New layers")]


def test_each_check_has_a_row_with_its_number_its_threshold_and_whether_it_tripped() -> None:
    shown = CHECKED.model_copy(update={"refuse": False})
    assert checks_told(Experiment(model=TINY)) == []
    assert checks_told(CHECKED) == [f"{MEASURES} It trips above 2: then the phone sends nothing."]
    assert checks_told(shown)[0].startswith(f"{MEASURES} It trips above 2: then the phone sends its update all the same")
    assert checks_told(CHECKED, reading(1.0)) == [f"1 (threshold 2): it did not trip. {MEASURES}"]
    rounds = reading(1.0), reading(4.0, 2, tripped=True), reading(8.0, 3, tripped=True)
    assert checks_told(CHECKED, *rounds) == [f"4 (threshold 2): it tripped in round 2, and from then on the phone sent nothing. {MEASURES}"]
    assert checks_told(shown, *rounds) == [
        f"4 (threshold 2): it tripped in round 2, and the phone sent its update all the same. {MEASURES}"
    ]
    assert checks_told(CHECKED, reading(None, tripped=True))[0].startswith("infinite (threshold 2): it tripped in round 1")
    assert checks_told(CHECKED, reading(None)) == [f"not defined here (threshold 2). {MEASURES}"]
    assert checks_told(CHECKED, reading(1.0), reading(None, 2), reading(1.5, 3))[0].startswith("1.5 (threshold 2): it did not trip")


def test_the_checks_are_told_in_a_line_in_titles_and_between_variants() -> None:
    assert summary([reading(1.0), reading(4.0, 2, tripped=True)]) == "New layers 4 above 2 in round 2"
    assert summary([reading(1.0)]) == "New layers 1"
    assert summary([]) == ""
    assert "a phone that checks the model (New layers)" in attack_title(CHECKED, CATALOG)
    apart, _ = differs([CHECKED, CHECKED.model_copy(update={"refuse": False}), Experiment(model=TINY)], CATALOG)
    (line,) = [line for line in apart if line.startswith("The phone's checks: ")]
    assert [part.endswith("refuses nothing") for part in line.split("; ")] == [False, True, False]
    assert line.endswith("no checks")


LONE_CLIENT, LONE_PICTURES = "Model consistency compares", "D-SNR compares"


@pytest.mark.parametrize(
    ("pictures", "phones", "alone"), [(1, 1, [LONE_CLIENT, LONE_PICTURES]), (2, 1, [LONE_CLIENT]), (2, 2, [LONE_PICTURES]), (4, 2, [])]
)
def test_a_check_that_has_nothing_to_compare_is_told_before_the_run(pictures: int, phones: int, alone: list[str]) -> None:
    asked = Experiment(
        pictures=(Picture(id="astronaut"),) * pictures,
        model=TINY,
        aggregation=Part(id="secure_aggregation", fields={"clients": phones}) if phones > 1 else None,
        checks=tuple(Part(id=id) for id in ("new_layers", "same_for_all", "d_snr")),
    ).resolve(CATALOG)
    told = all_cautions(asked, CATALOG)
    assert [words.startswith(begin) for words, begin in zip(told, alone, strict=True)] == [True] * len(alone)
    assert warnings(asked, CATALOG) == []  # such an experiment is no repetition of another one


def test_without_checks_it_means_nothing_whether_the_phone_refuses() -> None:
    idle = Experiment(model=TINY, refuse=False)
    assert idle.resolve(CATALOG).digest() == Experiment(model=TINY).resolve(CATALOG).digest()
    assert not CHECKED.model_copy(update={"refuse": False}).resolve(CATALOG).refuse
