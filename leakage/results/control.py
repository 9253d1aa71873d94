"""The control of an answer: the same pictures without protection, attacked in the same way."""

from dataclasses import dataclass

HARDLY = "This test can hardly show that the protection helps: without it {} recognized{}."


@dataclass(frozen=True)
class Control:
    """The results of the control runs, which attack the same pictures without protection."""

    seen: int
    """The number of pictures that were recognizable or singled out without protection."""
    total: int
    """The number of pictures in the runs that came to an answer."""
    open: int
    """The number of controls that still wait or run."""
    cut: int
    """The number of controls without a final answer."""
    attacks: tuple[str, ...]
    """The names of the attacks of the controls."""
    how: str = ""
    """The reason for the verdict of the control that came nearest."""

    @property
    def words(self) -> str:
        """How many pictures were recognized, and by which attacks."""
        if not self.total:
            if self.open:
                return "The result without protection is not known yet"
            return "The test without protection (control) did not come to its end: nothing is known, and the protection cannot be judged"
        words = f"{self.seen} of {self.total} recognized, by {' and '.join(self.attacks)}"
        if self.open:
            return f"{words}, so far: {self.open} of its runs {'has' if self.open == 1 else 'have'} not ended"
        return f"{words}; {self.cut} more of its runs came to no answer" if self.cut else words

    def in_headline(self, recognized: int) -> str:
        """Return the sentence for a headline on a protection behind which `recognized` pictures were recognized."""
        return self.doubt(recognized) or f"Without the protection {self.seen} of {self.total} were recognized."

    def doubt(self, recognized: int) -> str:
        """Return why the control casts doubt on a protection behind which `recognized` pictures were recognized; "" if it does not."""
        if self.open or not self.total or self.seen > recognized:
            return ""
        if not self.seen:
            return HARDLY.format("nothing was", " either")
        return HARDLY.format(f"{self.seen} of {self.total} were", ", no more")
