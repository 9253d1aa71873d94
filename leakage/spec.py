"""An Experiment as plain data: what a page sends, a file holds and a link repeats. Codec, checks, limits, digest. No torch."""

import hashlib
import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from leakage.catalog import Catalog, CatalogError

VERSION: Literal[1] = 1
MAX_BATCH = 128
SIZES = (28, 32, 64, 224)  # picture sides in pixels
MAX_PIXELS = MAX_BATCH * 64 * 64  # of all pictures of an experiment together
MAX_SECONDS = 3600  # wall clock of one run


class SpecError(ValueError):
    """An experiment that cannot be run; the message names the field, what is allowed and what was given."""


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Picture(_Data):
    """One private picture: where it is from, its id there, and its class (None: the class it has there)."""

    source: Literal["gallery", "upload", "mnist", "cifar10", "cifar100"] = "gallery"
    id: str = Field(max_length=80)
    label: int | None = Field(default=None, ge=0, le=999)


class Part(_Data):
    """One plug-in with the fields that differ from its defaults."""

    id: str = Field(max_length=60)
    fields: dict[str, bool | int | float | str] = Field(default_factory=dict)


class Assumptions(_Data):
    """What the attacker is granted beyond the update, the weights, the batch size and the shape of a picture."""

    labels: bool = False  # False: recovered from the update, or optimised with the pictures
    defense: bool = True  # True: the attacker knows the protection and imitates it ("adaptive"); False: it replays plain FedSGD ("naive")


class Experiment(_Data):
    """One question: these pictures, this client, this protection, this attacker, this seed."""

    version: Literal[1] = VERSION
    pictures: tuple[Picture, ...] = Field(default=(Picture(id="astronaut"),), min_length=1, max_length=MAX_BATCH)
    size: Literal[28, 32, 64, 224] = 32
    channels: Literal[1, 3] = 3
    model: Part = Part(id="lenet")
    batch_norm: Literal["eval", "batch"] = "eval"  # BatchNorm uses its stored statistics, or those of the batch, as in training
    protocol: Part = Part(id="fedsgd")
    defenses: tuple[Part, ...] = Field(default=(), max_length=4)
    attack: Part = Part(id="idlg")
    assume: Assumptions = Assumptions()
    seed: int = Field(default=1, ge=0, le=2**31 - 1)
    max_seconds: int = Field(default=900, ge=1, le=MAX_SECONDS)

    @property
    def num_classes(self) -> int:
        """How many classes the model tells apart: 100 when a CIFAR-100 picture is among them, else 10."""
        return 100 if any(picture.source == "cifar100" for picture in self.pictures) else 10

    @property
    def has_uploads(self) -> bool:
        return any(picture.source == "upload" for picture in self.pictures)

    def parts(self) -> list[tuple[str, Part]]:
        """Every plug-in of the experiment with its kind."""
        return [("model", self.model), ("protocol", self.protocol), *(("defense", d) for d in self.defenses), ("attack", self.attack)]

    def resolve(self, catalog: Catalog) -> "Experiment":
        """The same experiment with every field of every plug-in spelled out. Raises SpecError."""

        def spelled(kind: str, part: Part) -> Part:
            return Part(id=part.id, fields=catalog.get(kind, part.id).resolve(part.fields))

        try:
            for picture in self.pictures:
                if picture.label is not None and picture.label >= self.num_classes:
                    raise SpecError(f"pictures.label: allowed is 0 to {self.num_classes - 1}, given was {picture.label}.")
                if picture.source == "upload" and picture.label is None:
                    raise SpecError("pictures.label: an upload needs a class, given was none.")
            most = MAX_PIXELS // self.size**2
            if len(self.pictures) > most:
                raise SpecError(
                    f"pictures: of {self.size} x {self.size} pixels allowed are at most {most}, given were {len(self.pictures)}."
                )
            model = catalog.get("model", self.model.id)
            if self.size < model.smallest:
                raise SpecError(f"size: {model.title} needs pictures of at least {model.smallest} pixels, given was {self.size}.")
            return self.model_copy(
                update={
                    "model": spelled("model", self.model),
                    "protocol": spelled("protocol", self.protocol),
                    "defenses": tuple(spelled("defense", part) for part in self.defenses),
                    "attack": spelled("attack", self.attack),
                }
            )
        except CatalogError as error:
            raise SpecError(str(error)) from None

    def digest(self) -> str:
        """Equal for equal (resolved) experiments."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:32]


def parse(text: str | bytes | dict[str, Any]) -> Experiment:
    """An Experiment from JSON. Raises SpecError naming the first field that is wrong, what is allowed and what was given."""
    try:
        raw = text if isinstance(text, dict) else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError(f"This is not an experiment file: expected JSON, and {error}.") from None
    if not isinstance(raw, dict):
        raise SpecError(f"This is not an experiment file: expected an object {{...}}, given was a {type(raw).__name__}.")
    if raw.get("version", VERSION) != VERSION:
        raise SpecError(f"version: allowed is {VERSION}, given was {raw['version']!r}. Update this program to read newer files.")
    try:
        return Experiment.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        steps = [str(step) for step in first["loc"]]
        where = ".".join(steps)
        if "fields" in steps[:-1]:  # the type that pydantic tried last would follow
            where = ".".join(steps[: steps.index("fields") + 2])
            raise SpecError(f"{where}: allowed is a number, a word, true or false, given was {first['input']!r}.") from None
        if first["type"] == "extra_forbidden":
            raise SpecError(
                f"{where}: this version has no such field, given was {first['input']!r}. Update this program or remove the field."
            ) from None
        raise SpecError(f"{where}: {first['msg'].lower()}; given was {first['input']!r}.") from None
