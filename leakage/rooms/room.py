"""A room: a lesson, the beat that the class is at, the votes on its questions, and the choices in its what-ifs. Beats count from 1."""

import asyncio
import hashlib
import hmac
import json
import secrets
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

from leakage.rooms.outline import Outline
from leakage.rooms.room_errors import (
    ANOTHER_BEAT,
    FULL,
    LOCKED,
    NO_CELL,
    NO_GRID,
    NO_OPTION,
    NO_QUESTION,
    TOO_LATE,
    RoomError,
)

MAX_PHONES = 300
FEWEST = 5  # votes of a round; of fewer only the count is shown
RESTORE = 60.0  # seconds after a room was opened again in which phones may repeat votes of earlier rounds, and after the answer
Listener = Literal["teacher", "student"]


def hashed(text: str) -> str:
    """Return the SHA-256 of a key or of a phone's token, in hexadecimal form: the room keeps no token itself."""
    return hashlib.sha256(text.encode()).hexdigest()


class Room:
    """A class in one room.

    Attributes:
        code: The five letters with which phones join.
        outline: The kinds, options and what-ifs of the lesson's beats.
        beat: The beat that the class is at.
        furthest: The furthest beat that the class has been at.
        unveiled: The question whose answer is shown now; 0 if none.
        answered: The questions whose answers have been shown at some time.
        votes: Question -> the votes of its last round, or of its last two: token (hashed) -> option.
        rounds: Question -> the number of the first of these rounds. A question is voted on again after a discussion.
        dots: Beat with what-ifs -> token (hashed) -> the cell of the grid that this student chose last.
        cleared: Beat with what-ifs -> how often its choices were forgotten.
        runs: Beat -> cell -> id of the run that computes this cell live.
        computing: The runs that the teacher has asked for and that have not ended.
        locked: Whether new phones are refused.
        students: Whether phones may start live runs.
        closed: Whether the room is closed.
        opened: A random name of this opening; another one after the room was opened again.
        bell: Set at the next change; each change makes a new one.
    """

    def __init__(self, code: str, key: str, outline: Outline, *, beat: int, now: float) -> None:
        self.code, self.key, self.outline, self.began = code, hashed(key), outline, now
        self.beat = self.furthest = self.checked_beat(beat)
        self.unveiled, self.answered = 0, set[int]()
        self.phones, self.rounds = set[str](), dict[int, int]()
        self.votes, self.dots = dict[int, list[dict[str, int]]](), dict[int, dict[str, int]]()
        self.cleared, self.runs, self.asked = dict[int, int](), dict[int, dict[int, str]](), dict[str, str]()
        self.computing = set[str]()
        self.locked = self.students = self.closed = self.restored = False
        self.opened, self.bell = secrets.token_hex(8), asyncio.Event()
        self._messages = dict[Listener, str]()

    # ---------------------------------------------------------------- who is here

    def is_key(self, key: str) -> bool:
        """Return whether this is the teacher's key."""
        return hmac.compare_digest(hashed(key), self.key)

    def seat(self, token: str) -> str:
        """Give a student a seat, unless the phone has one; return its hashed token. Raises RoomError if the room is locked or full."""
        student = hashed(token)
        if student not in self.phones:
            if self.locked:
                raise RoomError(LOCKED, 403)
            if len(self.phones) >= MAX_PHONES:
                raise RoomError(FULL.format(MAX_PHONES), 403)
            self.phones.add(student)
            self.changed()
        return student

    # ---------------------------------------------------------------- what phones say

    def vote(self, student: str, beat: int, option: int, round: int, *, now: float) -> None:
        """Count the vote of a student (the hashed token of the phone) in a round of the question `beat`; a later vote replaces it.

        Raises:
            RoomError: if the vote comes too late, or there is no such question or option.
        """
        options = self.outline.options(self.checked_beat(beat))
        if not options:
            raise RoomError(NO_QUESTION.format(beat), 422)
        if not 0 <= option < options:
            raise RoomError(NO_OPTION.format(beat, option, options - 1), 422)
        if beat != self.beat:
            raise RoomError(ANOTHER_BEAT, 409)
        repeats = self.restored and now - self.began < RESTORE
        rounds = self.votes_of(beat)
        index = round - self.rounds.get(beat, 0)
        if not 0 <= index < len(rounds):
            raise RoomError(ANOTHER_BEAT, 409)
        settled = index < len(rounds) - 1 or self.unveiled == beat
        if settled and (not repeats or student in rounds[index]):
            raise RoomError(TOO_LATE, 409)
        rounds[index][student] = option
        self.changed()

    def choose(self, student: str, beat: int, cell: int) -> None:
        """Note the cell that a student (the hashed token of the phone) chose in the what-ifs of `beat`; raise RoomError if it is none."""
        self.checked_cell(beat, cell)
        if beat != self.beat:
            raise RoomError(ANOTHER_BEAT, 409)
        self.dots.setdefault(beat, {})[student] = cell
        self.changed()

    # ---------------------------------------------------------------- what the teacher does

    def lead(self, beat: int) -> None:
        """Take the class to a beat."""
        self.beat = self.checked_beat(beat)
        self.furthest = max(self.furthest, beat)
        self.changed()

    def turn_to(self, outline: Outline, beat: int) -> None:
        """Take the class to a beat of another lesson; phones stay, and what they said in the lesson before is forgotten."""
        self.beat = self.furthest = outline.checked(beat)
        self.outline, self.unveiled, self.restored = outline, 0, False
        for of_lesson in (self.answered, self.rounds, self.votes, self.dots, self.cleared, self.runs):
            of_lesson.clear()
        self.changed()

    def reveal(self, *, shown: bool = True) -> None:
        """Show the answer of the question that the class is at, or hide it again. Raises RoomError if there is no question."""
        if not self.outline.options(self.beat):
            raise RoomError(NO_QUESTION.format(self.beat), 422)
        self.unveiled = self.beat if shown else 0
        if shown:
            self.answered.add(self.beat)
        self.changed()

    def again(self) -> None:
        """Hide the answer and let the class vote again; the votes of the last round stay beside the new ones."""
        self.reveal(shown=False)
        rounds = self.votes_of(self.beat)
        if rounds[-1]:
            self.rounds[self.beat] = self.rounds.get(self.beat, 0) + len(rounds) - 1
            self.votes[self.beat] = [rounds[-1], {}]
        self.changed()

    def let_in(self, new: bool) -> None:
        """Let new phones in, or lock the door."""
        self.locked = not new
        self.changed()

    def let_compute(self, students: bool) -> None:
        """Let phones start live runs, or only the teacher."""
        self.students = students
        self.changed()

    def show_run(self, beat: int, cell: int, run: str) -> None:
        """Show the live run of a cell to the class."""
        self.runs.setdefault(beat, {})[cell] = run
        self.changed()

    def computes(self, run: str, *, now: bool) -> None:
        """Note that the teacher has asked for a run, or that it has ended."""
        (self.computing.add if now else self.computing.discard)(run)
        self.changed()

    def clear(self) -> None:
        """Forget the votes or the chosen what-ifs of the beat that the class is at."""
        if self.beat in self.votes:
            self.rounds[self.beat] = self.rounds.get(self.beat, 0) + len(self.votes.pop(self.beat))
        if self.dots.pop(self.beat, None):
            self.cleared[self.beat] = self.cleared.get(self.beat, 0) + 1
        self.changed()

    def restore(self, *, round: int, second: bool, revealed: bool, students: bool) -> None:
        """Continue after the server was started again.

        Args:
            round: The round of the beat's question.
            second: Whether the round before is the first vote, before a discussion.
            revealed: Whether the answer is shown.
            students: Whether phones may start live runs.
        """
        self.restored, self.students = True, students
        if self.outline.options(self.beat):
            self.rounds[self.beat] = max(0, round - second)
            self.votes[self.beat] = [{} for _ in range(1 + second)]
            if revealed:
                self.reveal()
        self.changed()

    # ---------------------------------------------------------------- what is seen

    def votes_of(self, beat: int) -> list[dict[str, int]]:
        """Return the rounds of votes on a question; the last one goes on."""
        return self.votes.setdefault(beat, [{}])

    def knows_answer(self, beat: int) -> bool:
        """Return whether phones may know the answer of a question: it was shown, or the class has gone on."""
        return beat in self.answered or beat < self.furthest

    @property
    def lesson_version(self) -> str:
        """A text that changes when the lesson is another, or phones may see more of it than before."""
        return f"{self.opened}-{self.outline.id}-{self.furthest}-{len(self.answered)}"

    def state(self, listener: Listener) -> dict[str, Any]:
        """Return all that a listener may know of the room now. Below FEWEST votes of a round nobody sees how they are distributed."""
        return {
            "opened": self.opened,
            "lesson": self.lesson_version,
            "id": self.outline.id,
            "beat": self.beat,
            "furthest": self.furthest,
            "phones": len(self.phones),
            "locked": self.locked,
            "students": self.students,
            "closed": self.closed,
            "vote": self._vote(listener) if self.outline.options(self.beat) else None,
            "dots": Counter(self.dots.get(self.beat, {}).values()) if self.outline.cells(self.beat) else None,
            "cleared": self.cleared.get(self.beat, 0),
            "runs": self.runs.get(self.beat, {}),
            "computing": not self.computing.isdisjoint(self.runs.get(self.beat, {}).values()),
        }

    def message(self, listener: Listener) -> str:
        """Return the state as a server-sent event; computed once for all listeners of a kind after each change."""
        if listener not in self._messages:
            self._messages[listener] = f"data: {json.dumps(self.state(listener), separators=(',', ':'))}\n\n"
        return self._messages[listener]

    def _vote(self, listener: Listener) -> Mapping[str, Any]:
        rounds, revealed = self.votes_of(self.beat), self.unveiled == self.beat
        options = range(self.outline.options(self.beat))
        bars = [[list(votes.values()).count(option) for option in options] if len(votes) >= FEWEST else None for votes in rounds]
        return {
            "round": self.rounds.get(self.beat, 0) + len(rounds) - 1,
            "second": len(rounds) > 1,
            "count": len(rounds[-1]),
            "revealed": revealed,
            "bars": bars if revealed or listener == "teacher" else None,
        }

    # ---------------------------------------------------------------- the rest

    def changed(self) -> None:
        """Tell all listeners that the state is another."""
        self._messages.clear()
        self.bell.set()
        self.bell = asyncio.Event()

    def checked_beat(self, beat: int) -> int:
        """Return `beat`; raise RoomError if the lesson has no such beat."""
        return self.outline.checked(beat)

    def checked_cell(self, beat: int, cell: int) -> str:
        """Return the name of the grid of `beat`; raise RoomError if it has no what-ifs, or no such cell."""
        cells = self.outline.cells(self.checked_beat(beat))
        if not cells:
            raise RoomError(NO_GRID.format(beat), 422)
        if not 0 <= cell < cells:
            raise RoomError(NO_CELL.format(beat, cell, cells - 1), 422)
        return self.outline.grid(beat)
