"""The question of the page Ask as plain data: whose pictures, how they are sent and protected, who attacks; and its experiments."""

from collections.abc import Sequence
from typing import Literal, get_args

from pydantic import Field

from leakage.spec.experiment import Assumptions, Base, Experiment, Part, Picture, SpecError, parse_as
from leakage.spec.prepared import prepared

Who = Literal["faces", "documents", "scans", "digits", "own"]
Count = Literal[1, 2, 4, 8]
Minutes = Literal[1, 5, 30]
COUNTS: tuple[Count, ...] = get_args(Count)
MINUTES: tuple[Minutes, ...] = get_args(Minutes)
GROUPS: dict[int, int] = {1: 1, 5: 3, 30: 6}  # minutes -> groups of other people, and other seeds, that are tried
LAST_SEED = 2**31 - 1
MOST = 8  # pictures in what the server sees
ATTACKERS = {
    "knows": "Whoever runs the server, and knows how the phones protect themselves",
    "still": "The same, and the server cheats: it sends one model again and again, and averages what comes back",
    "naive": "Somebody at the server who does not know of the protection",
}
STEPS = {"one": "One step, then it sends (FedSGD)", "several": "Several steps by itself, then it sends (FedAvg)"}


class Question(Base):
    """What somebody wants to know who decides on federated learning."""

    who: Who = "faces"
    phones: Count = 1  # whose updates are added up before the server sees them
    each: Count = 1  # pictures on every phone
    steps: Literal["one", "several"] = "one"
    defenses: tuple[Part, ...] = Field(default=(), max_length=4)
    attacker: Literal["knows", "still", "naive"] = "knows"
    minutes: Minutes = 5
    seed: int = Field(default=1, ge=0, le=LAST_SEED)

    @property
    def pictures(self) -> int:
        """How many are in what the server sees."""
        return self.phones * self.each


def groups(question: Question, own: Sequence[Picture] = ()) -> list[Experiment]:
    """The scenario for every group of people that is tried, each with pictures, weights and chance of its own; without its attack.

    own     pictures that were uploaded, for a question about these

    Raises SpecError where there are not enough pictures, or too many in one update.
    """
    asked, total = prepared().ask, question.pictures
    pool = own if question.who == "own" else [Picture(id=id) for id in asked.kinds[question.who].pictures]
    if total > MOST:
        raise SpecError(f"{question.phones} phones with {question.each} pictures each are {total} pictures. At most {MOST} are tried here.")
    if len(pool) < total:
        raise SpecError(f"{total} different pictures are needed, {len(pool)} are here. Upload more, or choose fewer phones or pictures.")
    still = (
        {"protocol": asked.stands_still, "rounds": asked.watched, "attacked_round": asked.watched} if question.attacker == "still" else {}
    )
    if still and question.steps == "several":
        raise SpecError("A server that stands still is tried with one step only. Choose one step, or another attacker.")
    base = Experiment(
        channels=asked.kinds[question.who].channels if question.who != "own" else Experiment().channels,
        protocol=asked.several if question.steps == "several" else Experiment().protocol,
        aggregation=_added_up(question.phones),
        defenses=question.defenses,
        assume=Assumptions(adaptive=question.attacker != "naive"),
        max_seconds=60 * question.minutes,
    ).model_copy(update=still)
    count = GROUPS[question.minutes] if total < len(pool) or question.who != "own" else 1
    return [
        base.model_copy(
            update={"pictures": tuple(pool[(group * total + place) % len(pool)] for place in range(total)), "seed": question.seed + group}
        )
        for group in range(count)
    ]


def _added_up(phones: int) -> Part | None:
    part = prepared().ask.added_up
    return part.model_copy(update={"fields": {**part.fields, "clients": phones}}) if phones > 1 else None


def parse_question(text: str | bytes | dict[str, object]) -> Question:
    """A Question from JSON. Raises SpecError."""
    return parse_as(text, Question, "a question")
