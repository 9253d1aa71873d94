"""The audit of a recorded update as plain data: its files, the network, what is known of the client, and the effort. No torch."""

from typing import Literal

from pydantic import Field, model_validator

from leakage.spec.catalog import Catalog, CatalogError
from leakage.spec.experiment import MAX_SEED, VERSION, check_size, with_defaults
from leakage.spec.part import Base, Part, SpecError
from leakage.spec.refusals import MAX_CLASSES
from leakage.spec.update_card import UpdateCard

FILE_SET = r"^[0-9a-f]{16}/[A-Za-z0-9_-]{16}$"  # the name of a set of files: a hash of its owner, and a random text
MARGIN = 120  # seconds beyond its minutes after which an audit is ended
CHANNELS, SMALLEST, LARGEST = (1, 3), 8, 256
INCOMPLETE = "card: the network needs the size of a picture (input) and the number of classes. Fill in both."
SQUARE = "card.input: allowed are square pictures with 1 or 3 channels and a side of {} to {} pixels, given was {}."


class AuditTask(Base):
    """An audit of an update that a client sent elsewhere: attacks without the truth, by what is known of the client."""

    version: Literal[1] = VERSION
    files: str = Field(pattern=FILE_SET)
    """The set of files with the update."""
    model: Part = Part(id="lenet")
    """The client's network."""
    card: UpdateCard
    """What is known, guessed or unknown of the client; shape of a picture and number of classes are given."""
    minutes: float = Field(default=5, ge=0.1, le=30)
    seed: int = Field(default=1, ge=0, le=MAX_SEED)

    @model_validator(mode="after")
    def _fits(self) -> "AuditTask":
        if self.card.input.value is None or self.card.classes.value is None:
            raise ValueError(INCOMPLETE)
        channels, height, width = self.card.input.value
        if channels not in CHANNELS or height != width or not SMALLEST <= height <= LARGEST:
            raise ValueError(SQUARE.format(SMALLEST, LARGEST, f"{channels} x {height} x {width}"))
        if not 2 <= self.card.classes.value <= MAX_CLASSES:
            raise ValueError(f"card.classes: allowed are 2 to {MAX_CLASSES} classes, given was {self.card.classes.value}.")
        return self

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """The shape of a picture, (C, H, W)."""
        assert self.card.input.value
        return self.card.input.value

    @property
    def num_classes(self) -> int:
        """The number of the network's outputs."""
        assert self.card.classes.value
        return self.card.classes.value

    @property
    def seconds(self) -> float:
        """The expected time of the audit, in seconds."""
        return 60 * self.minutes

    @property
    def max_seconds(self) -> int:
        """The time after which the audit is ended, in seconds."""
        return int(self.seconds) + MARGIN

    def resolve(self, catalog: Catalog) -> "AuditTask":
        """Return the task with the defaults of network and protections filled in; raise SpecError if the network cannot be built."""
        try:
            model = with_defaults(catalog, "model", self.model)
            protections = tuple(with_defaults(catalog, "defense", part) for part in self.card.protections)
        except CatalogError as error:
            raise SpecError(str(error)) from None
        check_size(catalog, model, self.image_shape, self.num_classes)
        return self.model_copy(update={"model": model, "card": self.card.model_copy(update={"protections": protections})})
