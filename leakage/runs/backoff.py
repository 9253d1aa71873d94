"""Exponential backoff: after each failure in a row, the pause before the next try is longer."""

import time

FIRST, MOST = 1.0, 60.0  # seconds of the first pause, and of the longest
STEADY = 10.0  # seconds of life after which a process counts as working


class Backoff:
    """The pause before the next try of something that failed: it doubles with each failure in a row, up to MOST seconds."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget earlier failures, so that the next try may begin at once."""
        self.pause, self.due, self.works = FIRST, 0.0, False

    def worked(self) -> None:
        """Note that the process that was started works, so that its end does not count as a failure."""
        self.works = True

    def failed(self) -> float:
        """Note a failure; return the seconds until the next try."""
        pause, self.pause = self.pause, min(2 * self.pause, MOST)
        self.due, self.works = time.monotonic() + pause, False
        return pause

    def ended(self, lived: float) -> None:
        """Note that a process ended after it lived so many seconds: a failure, unless it had worked or lived STEADY seconds."""
        if self.works or lived >= STEADY:
            self.reset()
        else:
            self.failed()

    @property
    def may_try(self) -> bool:
        """Whether the pause is over."""
        return self.remaining <= 0

    @property
    def remaining(self) -> float:
        """The seconds until the pause is over; negative after it."""
        return self.due - time.monotonic()
