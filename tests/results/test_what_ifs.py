"""The what-ifs of a run: each changes the one thing that it names, and is offered where it is possible."""

import pytest
from small_problems import CATALOG

from leakage.results.what_ifs import what_ifs
from leakage.spec.experiment import Experiment, Part, Picture

PHONES = Part(id="secure_aggregation", fields={"clients": 4})


DIGIT = Experiment(pictures=(Picture(id="digit-3"),), size=28, channels=1)


@pytest.mark.parametrize(
    ("start", "question", "changed"),
    [
        (Experiment(), "five local steps", {"protocol"}),
        (Experiment(pictures=(Picture(id="cat"),) * 4), "added up with other phones", {"aggregation"}),
        (Experiment(protocol=Part(id="fedavg")), "a naive attacker", {"assume"}),
        (Experiment(protocol=Part(id="fedavg")), "a plain gradient", {"protocol"}),
        (Experiment(pictures=(Picture(id="cat"),) * 4, aggregation=PHONES), "each phone by itself", {"aggregation"}),
        (Experiment(protocol=Part(id="fedavg", fields={"epochs": 50})), "a model in between", {"attack"}),
        (Experiment(pictures=(Picture(id="cat"), Picture(id="coffee"))), "the batch taken apart", {"model", "attack"}),
        (DIGIT, "an attacker who has learned digits", {"attack"}),
        (DIGIT, "a network that has learned to undo it", {"attack"}),
        (Experiment(checks=(Part(id="new_layers"),)), "a phone that does not refuse", {"refuse"}),
        (Experiment(defenses=(Part(id="low_precision"),)), "a coarser picture searched", {"attack"}),
    ],
)
def test_a_what_if_changes_the_one_thing_it_names(start: Experiment, question: str, changed: set[str]) -> None:
    asked = what_ifs(start, CATALOG, [])
    assert len(asked) <= 5
    after = asked[question][1]
    assert {name for name in type(start).model_fields if getattr(after, name) != getattr(start, name)} == changed
    after.resolve(CATALOG)


def test_one_picture_is_not_taken_apart_nor_a_batch_twice() -> None:
    two = Experiment(pictures=(Picture(id="cat"), Picture(id="coffee")), attack=Part(id="spear"))
    assert all("the batch taken apart" not in what_ifs(one, CATALOG, []) for one in (Experiment(), two))


def test_after_each_attack_by_a_generator_the_next_one_is_offered_and_after_the_last_none() -> None:
    def generators(attack: str) -> list[str]:
        asked = what_ifs(DIGIT.model_copy(update={"attack": Part(id=attack)}), CATALOG, []).values()
        return [one.attack.id for _, one in asked if one.attack.id in chain and one.attack.id != attack]

    chain = ["ggl", "gifd", "gias", "grnn"]
    assert [generators(attack) for attack in ("idlg", *chain)] == [["ggl"], ["gifd"], ["gias"], ["grnn"], []]


def test_a_trained_network_is_offered_only_where_one_was_trained_and_not_twice() -> None:
    def offered(**change: object) -> bool:
        return "a network that has learned to undo it" in what_ifs(DIGIT.model_copy(update=change), CATALOG, [])

    published = Part(id="ada_defense")
    assert offered()
    assert offered(defenses=(published,))
    assert not offered(defenses=(Part(id="pruning"),))  # none was trained behind it
    assert not offered(seed=2)  # other weights
    assert not offered(protocol=Part(id="fedavg"))  # no gradient
    assert not offered(attack=Part(id="learning_to_invert"))


def test_a_coarser_picture_is_asked_about_only_behind_a_protection_and_not_twice() -> None:
    rounded = Experiment(defenses=(Part(id="low_precision"),), attack=Part(id="rog"))
    assert all("a coarser picture searched" not in what_ifs(one, CATALOG, []) for one in (Experiment(), rounded))


def test_who_has_learned_digits_is_offered_for_small_gray_pictures_and_not_twice() -> None:
    gray = Experiment(size=28, channels=1, attack=Part(id="ggl"))
    assert all("an attacker who has learned digits" not in what_ifs(one, CATALOG, []) for one in (Experiment(), gray))


def test_the_next_search_in_the_generator_of_digits_is_offered_after_one_in_that_generator_alone() -> None:
    def offered(**change: object) -> bool:
        asked = Experiment.model_validate({"size": 28, "channels": 1, **change})
        return any(one.attack.id == "gifd" for _, one in what_ifs(asked, CATALOG, []).values())

    assert offered(attack=Part(id="ggl"))
    assert not offered(attack=Part(id="ggl", fields={"generator": "faces"}))
    assert not offered(attack=Part(id="ggl"), size=64, channels=3)


def test_after_a_round_of_fresh_noise_twenty_are_asked_about_and_after_these_an_accomplice() -> None:
    start = Experiment(defenses=(Part(id="minmax_sampling"),)).resolve(CATALOG)
    about, watched = what_ifs(start, CATALOG, [Picture(id="chelsea"), Picture(id="astronaut")])["20 rounds watched"]
    assert "same model 20 times" in about
    assert (watched.rounds, watched.attacked_round, watched.protocol.fields["rate"], watched.assume.strategy) == (20, 20, 1e-6, "")
    asked_next = what_ifs(watched, CATALOG, [Picture(id="chelsea")])
    assert "20 rounds watched" not in asked_next
    _, colluding = asked_next["an accomplice"]
    assert (colluding.assume.strategy, colluding.assume.accomplice) == ("with an accomplice", Picture(id="chelsea"))
    colluding.resolve(CATALOG)
    private = Experiment(defenses=(Part(id="dp_sgd"),)).resolve(CATALOG)
    assert what_ifs(private, CATALOG, [])["20 rounds watched"][1].assume.strategy == "average the rounds"
    assert "20 rounds watched" not in what_ifs(Experiment().resolve(CATALOG), CATALOG, [])
