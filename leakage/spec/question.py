"""The question of the page Ask as plain data: whose pictures, how they are sent and protected, who attacks; and its experiments."""

import re
from collections.abc import Sequence
from typing import Literal, get_args

from pydantic import Field

from leakage.spec.aliases import also_as_before
from leakage.spec.experiment import Assumptions, Base, Channels, Experiment, Part, Picture, SpecError, parse_as
from leakage.spec.prepared import prepared

Who = Literal["faces", "documents", "scans", "xrays", "digits", "own"]
Called = Literal["phones", "clinics", "sites"]
Clients = Literal[1, 2, 4, 8, 12]
Count = Literal[1, 2, 4, 8]
Minutes = Literal[1, 5, 30]
Attacker = Literal["knows", "still", "naive"]
CALLED: tuple[Called, ...] = get_args(Called)
CLIENTS: tuple[Clients, ...] = get_args(Clients)
COUNTS: tuple[Count, ...] = get_args(Count)
MINUTES: tuple[Minutes, ...] = get_args(Minutes)
GROUPS: dict[int, int] = {1: 1, 5: 3, 30: 6}  # minutes -> groups of other people, and other seeds, that are tried
LAST_SEED = 2**31 - 1
MOST = 16  # pictures in what the server sees
MOST_ROUNDS = 100_000
ATTACKERS: dict[Attacker, str] = {
    "knows": "The people who run the server. They know how the phones protect themselves.",
    "still": "The same people, and the server cheats: it sends one model again and again, and averages what comes back.",
    "naive": "Somebody at the server who does not know the protection.",
}
STEPS = {"one": "One step, then it sends (FedSGD)", "several": "Several steps by itself, then it sends (FedAvg)"}


class Question(Base):
    """What somebody wants to know who decides on federated learning.

    Args:
        called: what takes part, in the reader's words.
        clients: whose updates are added up before the server sees them; 1: one by itself.
        colluding: how many of them work with the server, which subtracts what they sent.
        each: pictures on every phone.
        rounds: how many times each phone sends an update; the privacy budget is stated for so many.
        channels: of own pictures: 1 where all are grey.
        epsilon: the privacy budget by which the protection was asked for; None: it was chosen by its strength.
    """

    who: Who = "faces"
    channels: Channels = 3
    called: Called = "phones"
    clients: Clients = Field(default=1, validation_alias=also_as_before("clients"))
    colluding: int = Field(default=0, ge=0, le=11)
    each: Count = 1
    steps: Literal["one", "several"] = "one"
    rounds: int = Field(default=1, ge=1, le=MOST_ROUNDS)
    defenses: tuple[Part, ...] = Field(default=(), max_length=4)
    epsilon: float | None = Field(default=None, gt=0, le=200)
    attacker: Attacker = "knows"
    minutes: Minutes = 5
    seed: int = Field(default=1, ge=0, le=LAST_SEED)

    @property
    def honest(self) -> int:
        """Phones whose updates are in the sum that the server is left with."""
        return max(1, self.clients - self.colluding)

    @property
    def uploads(self) -> int:
        """How many of one phone the server has in the end: as many as were asked about, and all that it watches."""
        return max(self.rounds, prepared().ask.watched) if self.attacker == "still" else self.rounds

    @property
    def pictures(self) -> int:
        """How many are in what the server sees."""
        return self.honest * self.each


def in_words_of(question: Question, text: str) -> str:
    """A text about phones in the words of the question.

    >>> in_words_of(Question(called="clinics"), "Phones send updates; a phone waits.")
    'Clinics send updates; a clinic waits.'
    """

    def put(found: re.Match[str]) -> str:
        word = question.called[:-1]
        return (word.capitalize() if found[1] == "P" else word) + found[2]

    return re.sub(r"\b([Pp])hone(s?)\b", put, text)


def groups(question: Question, own: Sequence[Picture] = ()) -> list[Experiment]:
    """The scenario for every group of people that is tried, each with pictures, weights and randomness of its own; without its attack.

    Args:
        question: what is asked.
        own: pictures that were uploaded, for a question about these.

    Raises:
        SpecError: where there are not enough pictures, or too many in one update.
    """
    asked, total = prepared().ask, question.pictures
    pool = own if question.who == "own" else _pool(question.who, total)
    if words := _refusal(question, total, len(pool)):
        raise SpecError(in_words_of(question, words))
    still = (
        {"protocol": asked.stands_still, "rounds": asked.watched, "attacked_round": asked.watched} if question.attacker == "still" else {}
    )
    if still and question.steps == "several":
        raise SpecError("A server that stands still is tried with one step only. Choose one step, or another attacker.")
    base = Experiment(
        channels=asked.kinds[question.who].channels if question.who != "own" else question.channels,
        protocol=asked.several if question.steps == "several" else Experiment().protocol,
        aggregation=_added_up(question.honest),
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


def _refusal(question: Question, total: int, here: int) -> str:
    """Why so many pictures cannot be asked about; "" where they can."""
    if question.colluding >= question.clients:
        return f"Of {question.clients} phones at most {question.clients - 1} can work with the server; given were {question.colluding}."
    if total > MOST:
        return f"{question.honest} phones with {question.each} pictures each are {total} pictures. At most {MOST} are tried here."
    if here < total:
        return f"{total} different pictures are needed, {here} are here. Upload more, or choose fewer phones or pictures."
    return ""


def _pool(kind: str, total: int) -> list[Picture]:
    """The pictures of a kind; where one update takes more than there are, those of other kinds follow."""
    kinds = prepared().ask.kinds
    own = list(kinds[kind].pictures)
    others = [id for name, other in kinds.items() if name != kind for id in other.pictures]
    return [Picture(id=id) for id in (own if len(own) >= total else [*own, *others])]


def strangers(question: Question) -> int:
    """How many of the pictures of one update are of other kinds, as there are too few of the one asked about."""
    return 0 if question.who == "own" else max(0, question.pictures - len(prepared().ask.kinds[question.who].pictures))


def _added_up(clients: int) -> Part | None:
    part = prepared().ask.added_up
    return part.model_copy(update={"fields": {**part.fields, "clients": clients}}) if clients > 1 else None


def parse_question(text: str | bytes | dict[str, object]) -> Question:
    """A Question from JSON. Raises SpecError."""
    return parse_as(text, Question, "a question")
