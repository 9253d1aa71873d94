"""The groups of an attack's first event, a group for each question that it answers; in JSON their fields stand side by side. No torch."""

from typing import Any

from pydantic import GetJsonSchemaHandler, SerializerFunctionWrapHandler, model_serializer, model_validator
from pydantic_core import CoreSchema

from leakage.runs.event_parts import (
    BaselineScores,
    EventPart,
    GradientDistances,
    LineupFacts,
    LpipsFacts,
    Maybe,
    PrivacyBound,
    PrivatePicture,
    ReceivedUpdate,
)


class WrittenFlat(EventPart):
    """A model with groups as its fields; its JSON has the fields of all groups side by side, without the groups' names."""

    @classmethod
    def groups(cls) -> dict[str, type[EventPart]]:
        """Return the model of every group by the name of the group."""
        kinds = {name: field.annotation for name, field in cls.model_fields.items()}
        return {name: kind for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, EventPart)}

    @model_validator(mode="before")
    @classmethod
    def _group(cls, given: Any) -> Any:
        """Return the input with all groups: a missing group is filled with the fields of its names that the input has side by side."""
        if not isinstance(given, dict):
            return given
        missing = {group: part for group, part in cls.groups().items() if group not in given}
        return {**given, **{group: {name: given[name] for name in part.model_fields if name in given} for group, part in missing.items()}}

    @model_serializer(mode="wrap")
    def _flatten(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return the model as JSON, with the fields of the groups in place of the groups."""
        written: dict[str, Any] = write(self)
        for group in self.groups():
            written |= written.pop(group, {})
        return written

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Describe what is written: the fields of the groups in place of the groups."""
        reference = handler(core)
        schema = handler.resolve_ref_schema(reference)
        for group in cls.groups():
            part = handler.resolve_ref_schema(schema["properties"].pop(group))
            schema["properties"] |= part["properties"]
            schema["required"] = [*(name for name in schema["required"] if name != group), *part.get("required", ())]
        return reference


class PrivateBatch(EventPart):
    """Facts about the private pictures, which only pages and the referee (it scores the guesses) see."""

    batch: int
    """How many pictures the client trained on."""
    size: int
    """Height and width of a picture in pixels."""
    channels: int
    """3 for color, 1 for gray."""
    private: str
    """The address of the contact sheet of the private pictures."""
    pictures: tuple[PrivatePicture, ...]
    """Title, class and label of each private picture."""
    class_names: tuple[str, ...]
    """The names of the classes, in the order of their labels."""
    classes: int | None = None
    """How many classes the network tells apart, where there are more classes than names."""


class UpdateFacts(EventPart):
    """Facts about the update that the server received, and its distance from the gradient."""

    received: ReceivedUpdate
    """The update that the server received."""
    changed: GradientDistances | None = None
    """The distance between the update that was sent and the gradient without protections."""
    known: GradientDistances | None = None
    """The distance between the gradient that the attacker works with and the gradient without protections."""
    epsilon: PrivacyBound | None = None
    """The privacy budget of what this client has sent, where a protection promises one."""


class AttackMethod(EventPart):
    """Facts about how the attack works."""

    steps: int | None
    """The most steps that the attack makes; null if it computes its answer at once."""
    attack: str
    """The title of the attack."""
    loss_name: str
    """What the attack minimizes."""
    way: str = ""
    """What the attack does, in a sentence."""


class AttackerKnowledge(EventPart):
    """Facts about what the attacker knows, by assumption or about the model."""

    labels_granted: bool
    """Whether the attacker is given the labels."""
    weights: str
    """The state of training of the attacked network, in words."""
    batch_norm: bool
    """Whether the attacked network has BatchNorm layers."""
    answers: tuple[str, ...] = ()
    """What the attacker does about each protection, in their order."""


class RunEnvironment(EventPart):
    """Facts about where the run is computed, and how long it is expected to take."""

    device: str
    """The device that computes the run, in words."""
    versions: dict[str, str]
    """What the last digits of the result depend on: the version of each package, and how the gradient of a guess is differentiated."""
    estimate: Maybe = None
    """The estimated duration in seconds, made before the run began."""


class Judging(EventPart):
    """Facts about what the guesses are compared with."""

    baselines: dict[str, BaselineScores]
    """The scores of pictures that do not depend on the update, such as a gray picture."""
    lineup: LineupFacts | None = None
    """The line-up in which a guess has to find its original."""
    lpips: LpipsFacts | None = None
    """The network behind the LPIPS score."""
