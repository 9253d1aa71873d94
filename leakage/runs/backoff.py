"""When what keeps failing is tried again: ever more seldom, until it works."""

import time

FIRST, MOST = 1.0, 60.0  # seconds
STEADY = 10.0  # what has lived for so many seconds works


class Backoff:
    """Twice as long a pause after each failure in a row, MOST at the longest."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """It is another one now: the next try may be made at once."""
        self.pause, self.due, self.works = FIRST, 0.0, False

    def worked(self) -> None:
        """What was started does what it should."""
        self.works = True

    def failed(self) -> float:
        """It has failed: seconds until the next try."""
        pause, self.pause = self.pause, min(2 * self.pause, MOST)
        self.due, self.works = time.monotonic() + pause, False
        return pause

    def ended(self, lived: float) -> None:
        """It has ended after so many seconds: after it had worked, or before."""
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
