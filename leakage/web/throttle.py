"""How often a wrong password may be tried from one address; where many try, from each address once a minute."""

import math
from collections import OrderedDict, deque

MINUTE = 60.0
PER_ADDRESS = 10  # a class often shares one address
IN_ALL = 60
REMEMBERED = 10_000  # addresses


class Throttle:
    """Remembers the wrong tries of the last minute by address. Times are seconds of any clock that only goes on.

    An address that was not wrong lately is never kept waiting, however many wrong tries come from others.
    """

    def __init__(self, *, per_address: int = PER_ADDRESS, in_all: int = IN_ALL) -> None:
        self.per_address, self.in_all = per_address, in_all
        self.tries = OrderedDict[str, deque[float]]()  # who was wrong last stands last

    def note(self, address: str, now: float) -> None:
        """A wrong try."""
        self.tries.setdefault(address, deque(maxlen=self.per_address)).append(now)
        self.tries.move_to_end(address)
        while len(self.tries) > REMEMBERED or next(iter(self.tries.values()))[-1] <= now - MINUTE:
            self.tries.popitem(last=False)

    def wait(self, address: str, now: float) -> int:
        """Whole seconds until this address may try again; 0: now."""
        here = [when for when in self.tries.get(address, ()) if when > now - MINUTE]
        ends = []
        if len(here) >= self.per_address:
            ends.append(here[0])
        if here and sum(when > now - MINUTE for times in self.tries.values() for when in times) >= self.in_all:
            ends.append(here[-1])
        return max((math.ceil(when + MINUTE - now) for when in ends), default=0)
