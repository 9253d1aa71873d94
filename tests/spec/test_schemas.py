"""The published JSON Schemas: they accept what this program writes, and refuse what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from small_problems import IDS

from leakage.__main__ import main
from leakage.results import schemas
from leakage.settings import ROOT
from leakage.spec.experiment import Experiment, SpecError, parse
from leakage.spec.fields import KINDS
from leakage.workers.plugin_catalog import describe

KNOWN = describe()
EXPERIMENT, METRICS = (Draft202012Validator(schemas.schema(name, KNOWN)) for name in schemas.NAMES)
SMALL = {
    "pictures": [{"id": "digit-3"}],
    "size": 28,
    "channels": 1,
    "attack": {"id": "dlg", "fields": {"steps": 3, "restarts": 1}},
    "defenses": [{"id": "dp_sgd", "fields": {"noise_multiplier": 2.0}}],
}


def experiments(value: Any) -> list[dict[str, Any]]:
    """Everything inside a file that is an experiment: it names pictures, a model and an attack."""
    found = [value] if isinstance(value, dict) and {"pictures", "model", "attack"} <= value.keys() else []
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [*found, *(one for part in inside for one in experiments(part))]


def shipped() -> list[tuple[str, dict[str, Any]]]:
    files = [ROOT / "assets" / "prepared.json", *sorted((ROOT / "assets" / "lessons").rglob("*.json"))]
    return [(file.name, one) for file in files for one in experiments(json.loads(file.read_text()))]


@pytest.mark.parametrize("name", schemas.NAMES)
def test_a_schema_is_one_and_stands_in_docs_as_it_is(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    Draft202012Validator.check_schema(schemas.schema(name, KNOWN))
    assert (ROOT / "docs" / "schema" / f"{name}.json").read_text() == schemas.text(name, KNOWN), "run `make docs`"
    assert main(["schema", name]) == 0
    assert capsys.readouterr().out == schemas.text(name, KNOWN)


def test_every_prepared_and_recorded_experiment_keeps_to_the_schema() -> None:
    held = shipped()
    assert len(held) > 50
    wrong = [(name, error.message[:200]) for name, one in held for error in EXPERIMENT.iter_errors(one)]
    assert wrong == []


def test_the_schema_knows_every_plugin_with_every_default() -> None:
    for kind, folder in KINDS.items():
        field, several = (folder, True) if folder in Experiment.model_fields else (kind, False)
        for id in IDS[kind]:
            part = {"id": id, "fields": KNOWN.of(kind).get(id).resolve({})}
            asked = Experiment().model_dump(mode="json") | {field: [part] if several else part}
            assert [error.message for error in EXPERIMENT.iter_errors(asked)] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"sizes": 32},
        {"size": 33},
        {"seed": -1},
        {"seed": 2**31},
        {"pictures": []},
        {"pictures": [{"id": "digit-3", "source": "elsewhere"}]},
        {"attack": {"id": "no-attack"}},
        {"attack": {"id": "dlg", "fields": {"steps": 0}}},
        {"attack": {"id": "dlg", "fields": {"steps": "many"}}},
        {"attack": {"id": "dlg", "fields": {"stepz": 3}}},
        {"defenses": [{"id": "pruning", "fields": {"fraction": 2}}]},
        {"defenses": [{"id": "pruning"}] * 5},
        {"model": {"id": "lenet", "fields": {"activation": "none"}}},
        {"server": {"id": "no-server"}},
        {"server": {"id": "imprint", "fields": {"bins": 1}}},
        {"checks": [{"id": "no-check"}]},
        {"checks": [{"id": "new_layers", "fields": {"threshold": -1}}]},
        {"checks": [{"id": "new_layers"}] * 9},
        {"refuse": "perhaps"},
        {"assume": {"adaptive": "perhaps"}},
    ],
    ids=lambda wrong: json.dumps(wrong)[:60],
)
def test_what_the_program_refuses_the_schema_refuses_too(wrong: dict[str, Any]) -> None:
    assert EXPERIMENT.is_valid(SMALL)
    assert not EXPERIMENT.is_valid(SMALL | wrong)
    with pytest.raises(SpecError):
        parse(json.dumps(SMALL | wrong)).resolve(KNOWN)


@pytest.mark.parametrize(
    "defense", [{"id": "dp_sgd", "fields": {"noise_multiplier": 2.0}}, {"id": "dp_sgd", "fields": {"noise_multiplier": 0.0}}, None]
)
def test_metrics_json_of_a_run_keeps_to_its_schema(defense: dict[str, Any] | None, tmp_path: Path) -> None:
    (tmp_path / "asked.json").write_text(json.dumps(SMALL | {"defenses": [defense] if defense else []}))
    assert main(["run", str(tmp_path / "asked.json"), "--out", str(tmp_path / "out")]) == 0
    written = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert [error.message for error in METRICS.iter_errors(written)] == []
    assert parse(written["experiment"]).digest() == parse((tmp_path / "asked.json").read_bytes()).resolve(KNOWN).digest()
    assert not METRICS.is_valid(written | {"more": 1})
    assert not METRICS.is_valid({name: value for name, value in written.items() if name != "program"})
