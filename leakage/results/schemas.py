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
    """Return the JSON Schema of the file experiment.json or metrics.json (`name`: its first part), with all fields of every plug-in."""
    models: dict[str, type[BaseModel]] = {"experiment": Experiment, "metrics": Metrics}
    generated = models[name].model_json_schema(mode="validation")
    parts = generated["$defs"]
    kinds = {kind: kind for kind in ("model", "protocol", "server", "attack")}
    kinds |= {"aggregation": "protocol", "defenses": "defense", "checks": "check"}
    parts |= {f"{kind}_plugin": {"oneOf": [_plugin(entry) for entry in known.of(kind)]} for kind in sorted({*kinds.values()})}
    experiment = generated if name == "experiment" else parts["Experiment"]
    for field, kind in kinds.items():
        _point(experiment["properties"][field], {"$ref": f"#/$defs/{kind}_plugin"})
    del parts["Part"]
    title = f"{name}.json of Gradient Leakage Explorer"
    return {"$schema": DIALECT, "title": title, **{key: part for key, part in generated.items() if key != "title"}}


def write(folder: Path, known: Catalog) -> None:
    """Write both schemas (experiment.json, metrics.json) into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        (folder / f"{name}.json").write_text(text(name, known))


def text(name: str, known: Catalog) -> str:
    """Return the JSON Schema of "experiment" or "metrics" as the text of its file."""
    return json.dumps(schema(name, known), indent=1, ensure_ascii=False) + "\n"


def _point(part: dict[str, Any], to: dict[str, Any]) -> None:
    """Replace, in place, every reference to the class `Part` in this part of a schema by `to`, the reference to one kind of plug-in."""
    if part.get("$ref") == "#/$defs/Part":
        part.pop("$ref")
        part |= to
    for value in part.values():
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict):
                _point(inner, to)


def _plugin(entry: Entry) -> dict[str, Any]:
    """Return the JSON Schema of a plug-in: its id, and its fields with the allowed values."""
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
    """Return the JSON Schema of a field: its type, range or options, default and help."""
    allowed: dict[str, Any] = {"type": TYPES.get(field.type, "string"), "default": field.default, "description": field.help}
    if field.type in ("int", "float"):
        allowed |= {"minimum": field.low, "maximum": field.high}
    if field.options:
        allowed["enum"] = list(field.options)
    return allowed
