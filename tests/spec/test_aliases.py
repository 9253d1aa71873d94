"""Every earlier name of a field is read into that field, and written no more."""

from pathlib import Path

import pytest
from pydantic import BaseModel

from leakage.engine.loading import load
from leakage.engine.plugin import described
from leakage.results.defense_keys import key_today
from leakage.runs.events import AttackEnd
from leakage.spec.aliases import EARLIER, EARLIER_PLUGIN_FIELDS, fields_at_first, fields_today, names_of, settings_today
from leakage.spec.experiment import Assumptions, Experiment, Part
from leakage.spec.fields import KINDS
from leakage.spec.question import Question
from leakage.spec.tasks import Training

ROOT = Path(__file__).parents[2]
OWNERS: dict[str, tuple[type[BaseModel], dict[str, object], object]] = {  # field -> its model, what else that needs, a value
    "adaptive": (Assumptions, {}, False),
    "strategy": (Assumptions, {}, "read it off"),
    "clients": (Question, {}, 4),
    "timing_key": (AttackEnd, {"answer": 1}, "[1, 2]"),
}


@pytest.mark.parametrize(("field", "name"), [(field, name) for field in EARLIER for name in names_of(field)])
def test_a_field_is_read_by_each_of_its_names_and_written_by_todays(field: str, name: str) -> None:
    model, needed, value = OWNERS[field]
    read = model.model_validate({**needed, name: value})
    assert getattr(read, field) == value != getattr(model.model_validate(needed), field)
    assert read.model_dump()[field] == value
    assert set(EARLIER[field]) & set(read.model_dump()) == set()


def test_an_experiment_of_0_1_keeps_its_attacker() -> None:
    read = Experiment.model_validate({"assume": {"defense": False, "counter": "same columns", "labels": True}})
    assert read.assume == Assumptions(adaptive=False, strategy="same columns", labels=True)


STORED = {"model": {"id": "mlp"}, "defenses": [{"id": "dp_sgd", "fields": {"clip": 2.0, "sigma": 0.1}}, {"id": "pruning"}]}


@pytest.mark.parametrize(("id", "names"), EARLIER_PLUGIN_FIELDS.items())
def test_an_earlier_name_of_a_plugins_field_belongs_to_a_field_of_today_alone(id: str, names: dict[str, str]) -> None:
    folder = next(kind for kind in KINDS if (ROOT / "leakage" / KINDS[kind] / f"{id}.py").exists())
    today = {field.name for field in described(load(folder, id))}
    assert set(names) <= today
    assert not set(names.values()) & today
    assert len(set(names.values())) == len(names)


def test_a_stored_experiment_is_read_under_todays_names() -> None:
    own = Experiment.model_validate(STORED).defenses[0]
    assert own == Part(id="dp_sgd", fields={"max_grad_norm": 2.0, "noise_multiplier": 0.1})
    assert list(own.model_dump()["fields"]) == ["max_grad_norm", "noise_multiplier"]


@pytest.mark.parametrize(
    ("task", "digest"), [(Experiment, "1c12100a64436607cb99c2e813c41ebc"), (Training, "bbd0401d77f9f8e7a4bccfb997c6f8c3")]
)
def test_what_was_stored_keeps_its_digest(task: type[Experiment | Training], digest: str) -> None:
    """Computed by version 0.2 from the same JSON."""
    assert task.model_validate(STORED).digest() == digest


def test_a_field_under_both_of_its_names_keeps_both_so_that_it_is_refused() -> None:
    assert fields_today("dp_sgd", {"sigma": 1, "noise_multiplier": 2}) == {"sigma": 1, "noise_multiplier": 2}


def test_names_of_fields_go_there_and_back() -> None:
    for id, names in EARLIER_PLUGIN_FIELDS.items():
        fields = dict.fromkeys((*names, "steps"), 1)
        assert fields_today(id, fields_at_first(id, fields)) == fields


def test_an_address_names_fields_as_they_were_or_are() -> None:
    address = {"dp_sgd.sigma": "1", "pruning.scope": "random", "v": "1"}
    assert settings_today(address) == {"dp_sgd.noise_multiplier": "1", "pruning.scope": "random", "v": "1"}
    assert settings_today({"dp_sgd.noise_multiplier": "2", "dp_sgd.sigma": "1"}) == {"dp_sgd.noise_multiplier": "2"}
    assert key_today("none") == "none"
