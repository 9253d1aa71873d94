"""Reading data of a class from JSON, with a sentence for the first mistake. No torch."""

import json
from typing import Any, Literal, TypeVar

from pydantic import ValidationError

from leakage.spec.json_size import each_once, more_values_than
from leakage.spec.part import Base, SpecError
from leakage.spec.words import short_repr

VERSION: Literal[1] = 1
MAX_VALUES = 5000  # values in an uploaded file, at any depth; with more values a refusal would take seconds

Data = TypeVar("Data", bound=Base)


def parse_as(text: str | bytes | dict[str, Any], kind: type[Data], what: str, *, most: float = MAX_VALUES) -> Data:
    """Return data of the class `kind` from JSON; raise SpecError if the JSON is not valid.

    Args:
        text: the JSON, as text or as the object in it.
        kind: the class of the data.
        what: the name of the data in error messages, such as "an experiment".
        most: the largest number of values that the JSON may have, at any depth.
    """
    try:
        raw = text if isinstance(text, dict) else json.loads(text, object_pairs_hook=each_once)
    except (ValueError, RecursionError) as error:
        raise SpecError(f"This is not {what} file: expected JSON, and {error}.") from None
    if not isinstance(raw, dict):
        raise SpecError(f"This is not {what} file: expected an object {{...}}, given was a {type(raw).__name__}.")
    if more_values_than(most, raw):
        raise SpecError(f"This is not {what} file: expected are at most {most} values, given were more.")
    if raw.get("version", VERSION) != VERSION:
        raise SpecError(f"version: allowed is {VERSION}, given was {short_repr(raw['version'])}. Update this program to read newer files.")
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        steps = [step if len(step) <= 60 and step.isprintable() else short_repr(step) for step in map(str, first["loc"])]
        where, given = ".".join(steps), short_repr(first["input"])
        if "fields" in steps[:-1]:  # the type that pydantic tried last would follow
            where = ".".join(steps[: steps.index("fields") + 2])
            raise SpecError(f"{where}: allowed is a number, a word, true or false, given was {given}.") from None
        if first["type"] == "extra_forbidden":
            raise SpecError(
                f"{where}: this version has no such field, given was {given}. Update this program or remove the field."
            ) from None
        raise SpecError(f"{where}: {first['msg'].lower()}; given was {given}.") from None
