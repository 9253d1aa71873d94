"""A limit on wrong passwords: 10 a minute from each address, and only 1 a minute once all addresses together have sent 60."""

import math
from collections import OrderedDict, deque

MINUTE = 60.0
PER_ADDRESS = 10  # not fewer, because a whole class often shares one address
IN_ALL = 60
MAX_ADDRESSES = 10_000  # addresses for which wrong passwords are remembered


class Throttle:
    """The wrong passwords of the last minute, by address. Times are seconds of any monotonic clock.

    An address without a wrong password in the last minute never has to wait, however many come from other addresses.
    """

    def __init__(self, *, per_address: int = PER_ADDRESS, in_all: int = IN_ALL) -> None:
        self.per_address, self.in_all = per_address, in_all
        self.wrong = OrderedDict[str, deque[float]]()  # times of wrong passwords; the latest address is last

    def record(self, address: str, now: float) -> None:
        """Record that an address sent a wrong password."""
        self.wrong.setdefault(address, deque(maxlen=self.per_address)).append(now)
        self.wrong.move_to_end(address)
        while len(self.wrong) > MAX_ADDRESSES or next(iter(self.wrong.values()))[-1] <= now - MINUTE:
            self.wrong.popitem(last=False)

    def seconds_to_wait(self, address: str, now: float) -> int:
        """Return the whole seconds until an address may send a password again; 0 if it may now."""
        recent = [time for time in self.wrong.get(address, ()) if time > now - MINUTE]
        blocking = []
        if len(recent) >= self.per_address:
            blocking.append(recent[0])
        if recent and sum(time > now - MINUTE for times in self.wrong.values() for time in times) >= self.in_all:
            blocking.append(recent[-1])
        return max((math.ceil(time + MINUTE - now) for time in blocking), default=0)
