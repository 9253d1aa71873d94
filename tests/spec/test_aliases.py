"""Every earlier name of a field is read into that field, and written no more."""

import pytest
from pydantic import BaseModel

from leakage.runs.events import AttackEnd
from leakage.spec.aliases import EARLIER, names_of
from leakage.spec.experiment import Assumptions, Experiment

OWNERS: dict[str, tuple[type[BaseModel], dict[str, object], object]] = {  # field -> its model, what else that needs, a value
    "adaptive": (Assumptions, {}, False),
    "strategy": (Assumptions, {}, "read it off"),
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
