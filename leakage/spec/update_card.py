"""The card beside a recorded update: what is known, guessed or unknown of the client that sent it. No torch."""

from collections.abc import Iterator
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field, model_validator

from leakage.spec.part import Base, Part

FILE = "card.json"
Value = TypeVar("Value")
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Share = Annotated[float, Field(ge=0, le=1000)]
Rate = Annotated[float, Field(gt=0, le=1000)]


class CardEntry(Base, Generic[Value]):
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
    network: CardEntry[Part] = CardEntry()
    """The network, as a model plug-in."""
    input: CardEntry[tuple[int, int, int]] = CardEntry()
    """The shape of a picture, (C, H, W)."""
    normalization: CardEntry[tuple[tuple[float, ...], tuple[float, ...]]] = CardEntry()
    """The mean and the standard deviation of each channel, by which the client normalizes its pictures."""
    classes: CardEntry[Count] = CardEntry()
    protocol: CardEntry[Part] = CardEntry()
    """How the client trains and what it sends, as a protocol plug-in, in place of optimizer, rate and the numbers of steps."""
    optimizer: CardEntry[Literal["SGD", "SGD with Nesterov momentum", "Adam", "AdamW"]] = CardEntry()
    rate: CardEntry[Rate] = CardEntry()
    """The local learning rate."""
    momentum: CardEntry[Share] = CardEntry()
    weight_decay: CardEntry[Share] = CardEntry()
    epochs: CardEntry[Count] = CardEntry()
    steps: CardEntry[Count] = CardEntry()
    """The number of local steps."""
    mini_batch: CardEntry[Count] = CardEntry()
    """Pictures in one mini-batch."""
    accumulation: CardEntry[Count] = CardEntry()
    """Mini-batches in one local step."""
    pictures: CardEntry[Count] = CardEntry()
    """How many pictures the client has ("num-examples")."""
    batch_norm: CardEntry[Literal["eval", "batch"]] = CardEntry()
    """The statistics that BatchNorm uses in training: the stored ones, or those of the batch."""
    round: CardEntry[Count] = CardEntry()
    labels: CardEntry[tuple[int, ...]] = CardEntry()
    protections: tuple[Part, ...] = ()
    """Known protections, as plug-ins."""

    def entries(self) -> Iterator[tuple[str, "CardEntry[Any]"]]:
        """Yield the fields that may be known, guessed or unknown, with their names."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, CardEntry):
                yield name, value
