"""How often a wrong password may be tried, from one address and from all together."""

import math
from collections import deque

MINUTE = 60.0
PER_ADDRESS = 10  # a class often shares one address
IN_ALL = 60


class Throttle:
    """Remembers the wrong tries of the last minute. Times are seconds of any clock that only goes on."""

    def __init__(self, *, per_address: int = PER_ADDRESS, in_all: int = IN_ALL) -> None:
        self.per_address, self.in_all = per_address, in_all
        self.tries: deque[tuple[float, str]] = deque(maxlen=in_all)

    def note(self, address: str, now: float) -> None:
        """A wrong try."""
        self.tries.append((now, address))

    def wait(self, address: str, now: float) -> int:
        """Whole seconds until this address may try again; 0: now."""
        recent = [(when, who) for when, who in self.tries if when > now - MINUTE]
        here = [when for when, who in recent if who == address]
        ends = []
        if len(here) >= self.per_address:
            ends.append(here[-self.per_address])
        if len(recent) >= self.in_all:
            ends.append(recent[0][0])
        return max((math.ceil(when + MINUTE - now) for when in ends), default=0)
