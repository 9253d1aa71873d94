"""One plug-in as plain data, and the base of experiments and other tasks: frozen, with known fields only, with a digest. No torch."""

import hashlib
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SerializationInfo, ValidationInfo, field_serializer, field_validator

from leakage.spec.aliases import fields_at_first, fields_today, plugin_at_first, plugin_today

Fields: TypeAlias = dict[str, bool | int | float | str]

FIRST_NAMES = "first names"  # context of `model_dump_json`: write plug-ins and their fields under the names of the first version


class SpecError(ValueError):
    """An experiment that cannot be run; the message names the field, what is allowed and what was given."""


class Base(BaseModel):
    """The base of all experiment data: immutable, and without fields that its class does not define."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def digest(self) -> str:
        """Return a hash that is equal for equal (resolved) data, also for data that earlier versions stored under other names of fields."""
        return hashlib.sha256(self.model_dump_json(context=FIRST_NAMES).encode()).hexdigest()[:32]


class Part(Base):
    """One plug-in with the fields that differ from its defaults."""

    id: str = Field(max_length=60)
    fields: Fields = Field(default_factory=dict)

    @field_validator("id")
    @classmethod
    def _read_id(cls, id: str) -> str:
        return plugin_today(id)

    @field_serializer("id")
    def _write_id(self, id: str, info: SerializationInfo) -> str:
        return plugin_at_first(id) if info.context == FIRST_NAMES else id

    @field_validator("fields")
    @classmethod
    def _read_names(cls, fields: Fields, info: ValidationInfo) -> Fields:
        return fields_today(info.data.get("id", ""), fields)

    @field_serializer("fields")
    def _write_names(self, fields: Fields, info: SerializationInfo) -> Fields:
        return fields_at_first(self.id, fields) if info.context == FIRST_NAMES else fields
