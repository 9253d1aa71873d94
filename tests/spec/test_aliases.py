"""Every earlier name of a field and every earlier id of a plug-in is read, but not written."""

import json
from pathlib import Path

import pytest
from pydantic import BaseModel
from small_problems import CATALOG

import leakage
from leakage.engine.loading import ids, load
from leakage.engine.plugin import described
from leakage.results.defense_keys import key_today
from leakage.runs.estimates import timing_key
from leakage.runs.events import AttackEnd
from leakage.spec.aliases import (
    EARLIER,
    EARLIER_PLUGIN_FIELDS,
    EARLIER_PLUGINS,
    PLUGIN_KEYS,
    fields_at_first,
    fields_today,
    names_of,
    settings_today,
)
from leakage.spec.experiment import Assumptions, Experiment, Part
from leakage.spec.fields import KINDS
from leakage.spec.plugin_menu import menu_entries
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


# ---------------------------------------------------------------- ids of plug-ins

KIND_OF = {id: kind for kind in KINDS for id in ids(kind)}


@pytest.mark.parametrize(("today", "earlier"), EARLIER_PLUGINS.items())
def test_an_earlier_id_is_read_as_todays_and_keeps_the_digest(today: str, earlier: str) -> None:
    kind = KIND_OF[today]
    now, read = (
        Experiment.model_validate_json(json.dumps({"defenses": [{"id": id}]} if kind == "defense" else {kind: {"id": id}}))
        for id in (today, earlier)
    )
    assert read == now
    assert read.digest() == now.digest()
    assert f'"{earlier}"' not in read.model_dump_json()
    assert load(kind, earlier) is load(kind, today)


@pytest.mark.parametrize(("today", "earlier"), EARLIER_PLUGINS.items())
def test_an_address_may_name_a_plugin_by_its_earlier_id(today: str, earlier: str) -> None:
    address = {KIND_OF[today]: earlier, f"{earlier}.steps": "3", "run": earlier}
    assert settings_today(address) == {KIND_OF[today]: today, f"{today}.steps": "3", "run": earlier}


def test_every_kind_of_plugin_has_a_key_of_an_address() -> None:
    assert set(PLUGIN_KEYS) == {*KINDS, "aggregation"}


def test_no_menu_has_an_earlier_id() -> None:
    offered = {entry.id for kind in KINDS for entry in menu_entries(CATALOG, kind)}
    assert set(EARLIER_PLUGINS) <= offered
    assert not set(EARLIER_PLUGINS.values()) & (offered | set(KIND_OF))


@pytest.mark.parametrize(
    ("attack", "digest"),
    [
        ({"id": "exact_batches", "fields": {"search": "samples"}}, "2b13d0bd757013487cedc577ab6acbf8"),
        ({"id": "surrogate_model"}, "dcc7f27984fccf32b2e14b66d6ff94c0"),
        ({"id": "inverting_gradients", "fields": {"boxed": False, "steps": 7}}, "cc668f6760cf7087238341432241de11"),
    ],
)
def test_a_stored_attack_keeps_its_digest(attack: dict[str, object], digest: str) -> None:
    """Computed by version 0.2 from the same JSON."""
    stored = Experiment.model_validate({"attack": attack})
    assert stored.digest() == digest
    assert Experiment.model_validate_json(stored.model_dump_json()).digest() == digest


def test_the_time_that_an_earlier_run_took_is_found() -> None:
    """Written by version 0.2."""
    known = ["exact_batches", {"fields": {}, "id": "lenet"}, "eval", {"fields": {}, "id": "fedsgd"}, None, True, 1, 32, 3]
    assert json.loads(timing_key(Experiment(attack=Part(id="spear")))) == known


def test_the_api_knows_a_plugin_by_its_earlier_id() -> None:
    assert leakage.plugin("exact_batches", search="samples") == leakage.plugin("spear", search="samples")
    with pytest.raises(ValueError, match="There is no plug-in 'batches'"):
        leakage.plugin("batches")
