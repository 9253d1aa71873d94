"""JSON Schemas of the files that people write and read: experiments, and metrics.json. No torch."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from leakage.results.metrics_file import Metrics
from leakage.spec.catalog import Catalog, Entry, Field
from leakage.spec.experiment import Experiment

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TYPES = {"bool": "boolean", "int": "integer", "float": "number"}
NAMES = ("experiment", "metrics")


def schema(name: str, known: Catalog) -> dict[str, Any]:
    """The schema of "experiment" or "metrics", with every plug-in that is known and all of their fields."""
    models: dict[str, type[BaseModel]] = {"experiment": Experiment, "metrics": Metrics}
    made = models[name].model_json_schema(mode="validation")
    parts = made["$defs"]
    kinds = {"model": "model", "protocol": "protocol", "aggregation": "protocol", "defenses": "defense", "attack": "attack"}
    parts |= {f"{kind}_plugin": {"oneOf": [_plugin(entry) for entry in known.of(kind)]} for kind in sorted({*kinds.values()})}
    experiment = made if name == "experiment" else parts["Experiment"]
    for field, kind in kinds.items():
        _point(experiment["properties"][field], {"$ref": f"#/$defs/{kind}_plugin"})
    del parts["Part"]
    return {"$schema": DIALECT, "title": f"{name}.json of Gradient Leakage Explorer", **{k: v for k, v in made.items() if k != "title"}}


def write(folder: Path, known: Catalog) -> None:
    """Every schema as a file."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        (folder / f"{name}.json").write_text(text(name, known))


def text(name: str, known: Catalog) -> str:
    """A schema as it is written."""
    return json.dumps(schema(name, known), indent=1, ensure_ascii=False) + "\n"


def _point(place: dict[str, Any], to: dict[str, Any]) -> None:
    """Let whatever names any plug-in in this place name one of a kind."""
    if place.get("$ref") == "#/$defs/Part":
        place.pop("$ref")
        place |= to
    for inside in place.values():
        for one in inside if isinstance(inside, list) else [inside]:
            if isinstance(one, dict):
                _point(one, to)


def _plugin(entry: Entry) -> dict[str, Any]:
    """One plug-in: its id, and its fields with what is allowed."""
    fields = {field.name: _field(field) for field in entry.fields}
    return {
        "title": entry.title,
        "description": entry.plain,
        "type": "object",
        "properties": {
            "id": {"const": entry.id},
            "fields": {"type": "object", "properties": fields, "additionalProperties": False},
        },
        "required": ["id"],
        "additionalProperties": False,
    }


def _field(field: Field) -> dict[str, Any]:
    """One field: its type, range or options, default and sentence."""
    allowed: dict[str, Any] = {"type": TYPES.get(field.type, "string"), "default": field.default, "description": field.help}
    if field.type in ("int", "float"):
        allowed |= {"minimum": field.low, "maximum": field.high}
    if field.options:
        allowed["enum"] = list(field.options)
    return allowed
