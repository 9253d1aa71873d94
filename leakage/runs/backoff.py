"""Exponential backoff: what keeps failing is tried again after ever longer pauses."""

import time

FIRST, MOST = 1.0, 60.0  # seconds
STEADY = 10.0  # seconds of life after which a process counts as working


class Backoff:
    """A pause that doubles with each failure in a row, up to MOST."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget earlier failures: the next try may be made at once."""
        self.pause, self.due, self.works = FIRST, 0.0, False

    def worked(self) -> None:
        """Note that what was started works."""
        self.works = True

    def failed(self) -> float:
        """Note a failure; return the seconds until the next try."""
        pause, self.pause = self.pause, min(2 * self.pause, MOST)
        self.due, self.works = time.monotonic() + pause, False
        return pause

    def ended(self, lived: float) -> None:
        """Note an end after so many seconds of life: a failure, unless it had worked."""
        if self.works or lived >= STEADY:
            self.reset()
        else:
            self.failed()

    @property
    def may_try(self) -> bool:
        """Whether the pause is over."""
        return self.left <= 0

    @property
    def left(self) -> float:
        """Seconds that are left of the pause."""
        return self.due - time.monotonic()
