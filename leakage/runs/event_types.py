"""The events as TypeScript types, for the JavaScript that receives them; they are generated from the models' JSON schema."""

from typing import Any

from pydantic.json_schema import models_json_schema

from leakage.runs.events import ALL
from leakage.runs.meta_parts import WrittenFlat
from leakage.settings import ROOT

TYPES = ROOT / "leakage" / "ui" / "components" / "live" / "events.d.ts"  # beside the scripts that receive them
HEAD = "// Written by `make docs` from leakage/runs/events.py: what a run tells, as the event stream sends it.\n"
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def declarations() -> str:
    """Return the content of events.d.ts: an interface for every event and every part, and RunEvent for any event."""
    _, schema = models_json_schema([(model, "validation") for model in ALL])
    groups = {part.__name__ for model in ALL if issubclass(model, WrittenFlat) for part in model.groups().values()}
    parts = [_interface(name, part) for name, part in schema["$defs"].items() if name not in groups]
    union = " | ".join(model.__name__ for model in ALL)
    return "\n".join([HEAD, *parts, f"/** Whatever the stream sends. */\nexport type RunEvent = {union};\n"])


def _interface(name: str, schema: dict[str, Any]) -> str:
    """Return the interface of a model. A field with a default may be missing, except `kind`, by which events are told apart."""
    if "properties" not in schema:  # any JSON
        return f"export type {name} = unknown;\n"
    words = schema["description"].split("\n")[0]
    fields = [
        (f"  /** {declared['description']} */\n" if "description" in declared else "")
        + f"  {field}{'' if 'const' in declared or field in schema.get('required', ()) else '?'}: {_type(declared)};"
        for field, declared in schema["properties"].items()
    ]
    return "\n".join([f"/** {words} */", f"export interface {name} {{", *fields, "}", ""])


def _type(schema: dict[str, Any]) -> str:
    """Return the TypeScript type of a field from its JSON schema."""
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[1])
    if "const" in schema:
        return f"'{schema['const']}'"
    if "anyOf" in schema:
        return " | ".join(map(_type, schema["anyOf"]))
    if schema.get("type") == "array":
        inside = _type(schema["items"])
        return f"({inside})[]" if "|" in inside else f"{inside}[]"
    if schema.get("type") == "object":
        return f"{{ [name: string]: {_type(schema['additionalProperties'])} }}"
    return PLAIN.get(schema.get("type", ""), "unknown")
