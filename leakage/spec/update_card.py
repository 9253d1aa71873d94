"""The card beside a recorded update: what is known, guessed or unknown of the client that sent it. No torch."""

from collections.abc import Iterator
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field, model_validator

from leakage.spec.part import Base, Part

FILE = "card.json"
Value = TypeVar("Value")
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Share = Annotated[float, Field(ge=0, le=1000)]


class Entry(Base, Generic[Value]):
    """What is known of one setting of the client."""

    value: Value | None = None
    """The value; None: unknown."""
    guessed: bool = False
    """Whether the value is a guess. A guessed value is tried, and printed as a guess."""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, given: Any) -> Any:
        """Read a value, or {"guess": value}, as an entry."""
        if isinstance(given, cls) or given == {} or (isinstance(given, dict) and "value" in given):
            return given
        return {"value": given["guess"], "guessed": True} if isinstance(given, dict) and set(given) == {"guess"} else {"value": given}

    @property
    def state(self) -> Literal["known", "guessed", "unknown"]:
        """How much is known: "known", "guessed" or "unknown"."""
        if self.value is None:
            return "unknown"
        return "guessed" if self.guessed else "known"


class UpdateCard(Base):
    """What is known of a client beside its update. In JSON a field is a value, {"guess": value}, or left out if it is unknown.

    >>> card = UpdateCard.model_validate({"rate": 0.01, "epochs": {"guess": 2}})
    >>> card.rate.state, card.epochs.state, card.pictures.state
    ('known', 'guessed', 'unknown')
    """

    format: Literal[1] = 1
    framework: str = Field(default="", max_length=60)
    """The program that wrote the update, such as "flower 1.42.0"."""
    network: Entry[Part] = Entry()
    """The network, as a model plug-in."""
    input: Entry[tuple[int, int, int]] = Entry()
    """The shape of a picture, (C, H, W)."""
    normalization: Entry[tuple[tuple[float, ...], tuple[float, ...]]] = Entry()
    """The mean and the standard deviation of each channel, by which the client normalizes its pictures."""
    classes: Entry[Count] = Entry()
    protocol: Entry[Part] = Entry()
    """How the client trains and what it sends, as a protocol plug-in, in place of optimizer, rate and the numbers of steps."""
    optimizer: Entry[Literal["SGD", "SGD with Nesterov momentum", "Adam", "AdamW"]] = Entry()
    rate: Entry[Share] = Entry()
    """The local learning rate."""
    momentum: Entry[Share] = Entry()
    weight_decay: Entry[Share] = Entry()
    epochs: Entry[Count] = Entry()
    steps: Entry[Count] = Entry()
    """The number of local steps."""
    mini_batch: Entry[Count] = Entry()
    """Pictures in one mini-batch."""
    accumulation: Entry[Count] = Entry()
    """Mini-batches in one local step."""
    pictures: Entry[Count] = Entry()
    """How many pictures the client has ("num-examples")."""
    batch_norm: Entry[Literal["eval", "batch"]] = Entry()
    """The statistics that BatchNorm uses in training: the stored ones, or those of the batch."""
    round: Entry[Count] = Entry()
    labels: Entry[tuple[int, ...]] = Entry()
    protections: tuple[Part, ...] = ()
    """Known protections, as plug-ins."""

    def entries(self) -> Iterator[tuple[str, "Entry[Any]"]]:
        """Yield the fields that may be known, guessed or unknown, with their names."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, Entry):
                yield name, value
