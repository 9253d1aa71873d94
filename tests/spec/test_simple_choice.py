"""The simple form of the Lab: every choice can be run and is read back; other experiments are not simple."""

import pytest
from small_problems import CATALOG

from leakage.spec.experiment import Assumptions, Experiment, Part, Picture
from leakage.spec.lab_settings import NONE, experiment_of, lab_settings
from leakage.spec.prepared import prepared
from leakage.spec.simple_choice import STRENGTHS, SimpleChoice, choices, find_choice


def pictures(count: int) -> tuple[Picture, ...]:
    return tuple(Picture(id=f"digit-{number}") for number in range(count))


@pytest.mark.parametrize("count", prepared().simple.counts)
def test_every_choice_can_be_run_and_is_read_back_from_the_settings_that_it_writes(count: int) -> None:
    offered = list(choices(count))
    form = prepared().simple
    assert len(set(offered)) == len(offered) == 4 * len(form.networks) * (1 + len(STRENGTHS) * len(form.protections))
    for choice in offered:
        settings = lab_settings(choice.experiment(pictures(count)).resolve(CATALOG))
        assert find_choice(experiment_of(settings, pictures(count), CATALOG), CATALOG) == choice


def test_no_two_choices_ask_for_the_same() -> None:
    asked = [choice.experiment(pictures(1)).resolve(CATALOG).digest() for choice in choices(1)]
    assert len(set(asked)) == len(asked)


def test_the_lab_opens_with_a_choice_of_the_simple_form() -> None:
    assert find_choice(Experiment(), CATALOG) == SimpleChoice("small", 1)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 2},
        {"size": 64},
        {"protocol": Part(id="fedavg", fields={"epochs": 3})},
        {"attack": Part(id="dlg")},
        {"attack": Part(id="idlg", fields={"steps": 299})},
        {"model": Part(id="vgg16")},
        {"assume": Assumptions(labels=True)},
        {"pictures": pictures(2)},
        {"defenses": (Part(id="clipping"),)},
        {"attack": Part(id="gone")},
    ],
)
def test_what_the_simple_form_cannot_show_is_none_of_its_choices(change: dict[str, object]) -> None:
    assert find_choice(Experiment().model_copy(update=change), CATALOG) is None


def test_the_usual_strategy_by_its_name_is_the_same_choice() -> None:
    choice = next(one for one in choices(1) if one.protection != NONE and not one.experiment(pictures(1)).assume.strategy and one.adaptive)
    experiment = choice.experiment(pictures(1))
    usual = next(iter(CATALOG.defenses.get(experiment.defenses[0].id).strategies))
    named = experiment.model_copy(update={"assume": Assumptions(strategy=usual)})
    assert find_choice(named, CATALOG) == choice
