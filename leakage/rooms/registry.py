"""All rooms of a server: in memory, found by their codes, and closed after three hours."""

import secrets
import time
from collections.abc import Callable

from leakage.rooms.outline import Outline
from leakage.rooms.room import Room
from leakage.rooms.room_errors import NO_ROOM, TOO_MANY, WRONG_KEY, RoomError

LETTERS = "BCDFGHJKLMNPQRSTVWXZ3479"  # no vowels, which make words, and no signs that look alike
LENGTH = 5
MAX_ROOMS = 20
LONGEST = 3 * 3600.0  # seconds awake: the clock of a sleeping computer stands still


class Rooms:
    """The open rooms. `clock` gives seconds of a clock that stands still while the computer sleeps."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock, self.open = clock, dict[str, Room]()
        self.closed = list[Callable[[Room], None]]()  # called with every room that is closed

    def begin(self, outline: Outline, beat: int) -> tuple[Room, str]:
        """Open a room at a beat of a lesson; return it and the teacher's key. Raises RoomError if there are MAX_ROOMS already."""
        code = next(code for _ in iter(int, 1) if (code := "".join(secrets.choice(LETTERS) for _ in range(LENGTH))) not in self.open)
        key = secrets.token_urlsafe(18)
        return self._add(Room(code, key, outline, beat=beat, now=self.clock())), key

    def begin_again(self, code: str, key: str, outline: Outline, beat: int) -> tuple[Room, bool]:
        """Return the open room of this code and key, or open it again after the server was started again; and whether it is new.

        Raises:
            RoomError: if another room has this code, the code is none, or there are MAX_ROOMS already.
        """
        if room := self.get(code):
            if not room.is_key(key):
                raise RoomError(WRONG_KEY, 403)
            return room, False
        if len(code) != LENGTH or set(code) - set(LETTERS) or len(key) < 16:
            raise RoomError(NO_ROOM, 422)
        return self._add(Room(code, key, outline, beat=beat, now=self.clock())), True

    def get(self, code: str) -> Room | None:
        """Return the open room of a code, in small or capital letters; None if there is none."""
        self.close_old()
        return self.open.get(code.upper())

    def close(self, room: Room) -> None:
        """Close a room: tell its listeners, and forget it."""
        self.open.pop(room.code, None)
        room.closed = True
        room.changed()
        for call in self.closed:
            call(room)

    def close_old(self) -> None:
        """Close the rooms that have been open for LONGEST."""
        for room in [room for room in self.open.values() if self.clock() - room.began > LONGEST]:
            self.close(room)

    def end_streams(self) -> None:
        """Wake the listeners of all rooms, because the server ends."""
        for room in self.open.values():
            room.changed()

    def _add(self, room: Room) -> Room:
        self.close_old()
        if len(self.open) >= MAX_ROOMS:
            raise RoomError(TOO_MANY.format(MAX_ROOMS), 429)
        self.open[room.code] = room
        return room
