"""The question of the page Ask as plain data: pictures, training, protection and attacker; and the experiments that answer it."""

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
Attacker = Literal["knows", "still", "changes", "naive"]
CALLED: tuple[Called, ...] = get_args(Called)
CLIENTS: tuple[Clients, ...] = get_args(Clients)
COUNTS: tuple[Count, ...] = get_args(Count)
MINUTES: tuple[Minutes, ...] = get_args(Minutes)
GROUPS: dict[int, int] = {1: 1, 5: 3, 30: 6}  # minutes -> how many groups of people, each with its own seed, are tried
LAST_SEED = 2**31 - 1
MOST = 16  # the most pictures in one sum
MOST_ROUNDS = 100_000
ATTACKERS: dict[Attacker, str] = {
    "knows": "The people running the server. They know how the phones protect themselves.",
    "still": "The people running the server, which cheats: it sends one model again and again, and averages what comes back.",
    "changes": "The people running the server, which cheats: it changes the model that it sends, so that single pictures can be read off.",
    "naive": "The people running the server. They do not know the protection.",
}
STEPS = {"one": "One step, then it sends (FedSGD)", "several": "Several steps by itself, then it sends (FedAvg)"}


class Question(Base):
    """A question about a planned federated training: its pictures, clients, protection and attacker."""

    who: Who = "faces"
    channels: Channels = 3
    """The channels of uploaded pictures: 1 if all are grey."""
    called: Called = "phones"
    """The reader's word for the clients."""
    clients: Clients = Field(default=1, validation_alias=also_as_before("clients"))
    """The number of clients in the sum that the server sees; 1: the server sees a single update."""
    colluding: int = Field(default=0, ge=0, le=11)
    """How many of these clients work with the server, which subtracts their updates."""
    each: Count = 1
    """How many pictures each client has."""
    steps: Literal["one", "several"] = "one"
    rounds: int = Field(default=1, ge=1, le=MOST_ROUNDS)
    """How many updates each client sends; the privacy budget is stated for all of them."""
    defenses: tuple[Part, ...] = Field(default=(), max_length=4)
    epsilon: float | None = Field(default=None, gt=0, le=200)
    """The privacy budget by which the protection was chosen. None: it was chosen by its strength."""
    attacker: Attacker = "knows"
    checks: bool = Field(default=False, exclude_if=lambda given: not given)
    """Whether the clients check the model that they receive, and send nothing if a check trips; for an attacker that changes the model."""
    minutes: Minutes = 5
    seed: int = Field(default=1, ge=0, le=LAST_SEED)

    @property
    def honest(self) -> int:
        """The number of clients in the sum after the server has subtracted the updates of the colluding clients."""
        return max(1, self.clients - self.colluding)

    @property
    def checked(self) -> tuple[Part, ...]:
        """The checks of the clients; none unless the attacker changes the model."""
        return prepared().ask.checks if self.checks and self.attacker == "changes" else ()

    @property
    def uploads(self) -> int:
        """How many updates of one client the server receives: as many as the question says, and at least as many as it watches."""
        return max(self.rounds, prepared().ask.watched) if self.attacker == "still" else self.rounds

    @property
    def pictures(self) -> int:
        """How many pictures are in the sum that the server sees."""
        return self.honest * self.each


def in_words_of(question: Question, text: str) -> str:
    """Return a text about phones with the question's word for the clients in place of "phone".

    >>> in_words_of(Question(called="clinics"), "Phones send updates; a phone waits.")
    'Clinics send updates; a clinic waits.'
    """

    def replacement(match: re.Match[str]) -> str:
        word = question.called[:-1]
        return (word.capitalize() if match[1] == "P" else word) + match[2]

    return re.sub(r"\b([Pp])hone(s?)\b", replacement, text)


def groups(question: Question, uploads: Sequence[Picture] = ()) -> list[Experiment]:
    """Return an experiment for each group of pictures, each with another seed; the attack is not chosen yet.

    Args:
        question: the question.
        uploads: the uploaded pictures, for a question about uploaded pictures.

    Raises:
        SpecError: if there are too few pictures, or too many in one sum.
    """
    choices, total = prepared().ask, question.pictures
    pool = uploads if question.who == "own" else _pool(question.who, total)
    if words := _refusal(question, total, len(pool)):
        raise SpecError(in_words_of(question, words))
    still = question.attacker == "still"
    same_model = {"protocol": choices.stands_still, "rounds": choices.watched, "attacked_round": choices.watched}
    if still and question.steps == "several":
        raise SpecError("A server that stands still is tried with one step only. Choose one step, or another attacker.")
    base = Experiment(
        channels=choices.kinds[question.who].channels if question.who != "own" else question.channels,
        protocol=choices.several if question.steps == "several" else Experiment().protocol,
        aggregation=_added_up(question.honest),
        defenses=question.defenses,
        checks=question.checked,
        assume=Assumptions(adaptive=question.attacker != "naive"),
        max_seconds=60 * question.minutes,
    ).model_copy(update=same_model if still else {})
    count = GROUPS[question.minutes] if total < len(pool) or question.who != "own" else 1
    return [
        base.model_copy(
            update={"pictures": tuple(pool[(group * total + index) % len(pool)] for index in range(total)), "seed": question.seed + group}
        )
        for group in range(count)
    ]


def _refusal(question: Question, total: int, available: int) -> str:
    """Return why the question cannot be answered; "" if it can.

    Args:
        question: the question.
        total: how many pictures the sum of the clients' updates needs.
        available: how many pictures of the visitor or the gallery there are.
    """
    if question.colluding >= question.clients:
        return f"Of {question.clients} phones at most {question.clients - 1} can work with the server; given were {question.colluding}."
    if total > MOST:
        return f"{question.honest} phones with {question.each} pictures each are {total} pictures. At most {MOST} are tried here."
    if available < total:
        return f"{total} different pictures are needed, {available} are here. Upload more, or choose fewer phones or pictures."
    return ""


def _pool(kind: str, total: int) -> list[Picture]:
    """Return the gallery pictures of a kind, followed by those of other kinds if the kind has fewer than `total` pictures."""
    kinds = prepared().ask.kinds
    of_kind = list(kinds[kind].pictures)
    others = [id for name, other in kinds.items() if name != kind for id in other.pictures]
    return [Picture(id=id) for id in (of_kind if len(of_kind) >= total else [*of_kind, *others])]


def strangers(question: Question) -> int:
    """Return how many pictures of one sum are of other kinds than the question's, because there are too few of its kind."""
    return 0 if question.who == "own" else max(0, question.pictures - len(prepared().ask.kinds[question.who].pictures))


def _added_up(clients: int) -> Part | None:
    part = prepared().ask.added_up
    return part.model_copy(update={"fields": {**part.fields, "clients": clients}}) if clients > 1 else None


def parse_question(text: str | bytes | dict[str, object]) -> Question:
    """Return a question about a planned training, read from JSON; raise SpecError naming the first wrong field."""
    return parse_as(text, Question, "a question")
