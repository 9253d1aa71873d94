"""The control of an answer: the same pictures without protection, attacked in the same way."""

from dataclasses import dataclass

HARDLY = "This test can hardly show that the protection helps: without it {} recognized{}."


@dataclass(frozen=True)
class Control:
    """What the controls came to.

    Args:
        seen: how many pictures were recognizable or singled out without protection.
        total: how many there are of the runs that came to an answer.
        open: controls that still wait or run.
        cut: controls that did not come to an answer.
        attacks: by which attacks, in words.
        how: how the verdict of the one that came nearest was found, in words.
    """

    seen: int
    total: int
    open: int
    cut: int
    attacks: tuple[str, ...]
    how: str = ""

    @property
    def words(self) -> str:
        """How many were recognized, and by what."""
        if not self.total:
            return "Not known yet" if self.open else "Time ran out on it: nothing is known, and the protection cannot be judged"
        words = f"{self.seen} of {self.total} recognized, by {' and '.join(self.attacks)}"
        if self.open:
            return f"{words}, so far: {self.open} of its runs {'has' if self.open == 1 else 'have'} not ended"
        return f"{words}; {self.cut} more of its runs came to no answer" if self.cut else words

    def in_headline(self, recognized: int) -> str:
        """What a headline says of it, beside a protection behind which so many were recognized."""
        return self.doubt(recognized) or f"Without the protection {self.seen} of {self.total} were recognized."

    def doubt(self, recognized: int) -> str:
        """What it says of a protection behind which so many were recognized; "" where it shows that the attack works without it."""
        if self.open or not self.total or self.seen > recognized:
            return ""
        if not self.seen:
            return HARDLY.format("nothing was", " either")
        return HARDLY.format(f"{self.seen} of {self.total} were", ", no more")
