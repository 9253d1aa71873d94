"""A limit on guessed codes of rooms, like that on passwords. The same wrong code again is no new guess.

After a restart of the server all phones of a class ask for a room that is not open yet; they must not lock each other out.
"""

from collections import OrderedDict

from leakage.web.throttle import MAX_ADDRESSES, MINUTE, Throttle


class CodeThrottle:
    """The wrong codes of the last minute. Times are seconds of any monotonic clock."""

    def __init__(self) -> None:
        self.guesses, self.codes = Throttle(), OrderedDict[str, float]()

    def record(self, address: str, code: str, now: float) -> None:
        """Record that an address sent a wrong code, unless somebody has sent the same code within a minute."""
        if self.codes.get(code, now - MINUTE) <= now - MINUTE:
            self.guesses.record(address, now)
        self.codes[code] = now
        self.codes.move_to_end(code)
        while len(self.codes) > MAX_ADDRESSES or next(iter(self.codes.values())) <= now - MINUTE:
            self.codes.popitem(last=False)

    def seconds_to_wait(self, address: str, now: float) -> int:
        """Return the whole seconds until an address may try a code again; 0 if it may now."""
        return self.guesses.seconds_to_wait(address, now)
