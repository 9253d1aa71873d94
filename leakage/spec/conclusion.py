"""What attacks on some pictures permit to conclude, in the words that the page Ask and an audit share. No torch."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from leakage.spec.words import CUT_SHORT, INAPPLICABLE, LEAKS, MEANING, PARTLY, RECOGNIZABLE, REFUSED, SINGLED_OUT, VERDICTS, counted

SEVERITY = (*VERDICTS, CUT_SHORT, INAPPLICABLE, REFUSED)  # worst first
LEAK = "leaks"
PROVES_NOTHING = "No picture was recognized, and that proves nothing."
ASSUME_SEEN = "Decide as if the people running the server had such pictures: sending updates in this way does not keep them private."
ASSUME_LEAK = "Decide as if it may leak: a failed attack proves nothing."

UNPUBLISHED = (
    "Attacks that nobody has published, or that this program does not have, and attackers that learned from other pictures of the same "
    "people."
)


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """How many pictures attacks have shown, and how well."""

    people: Mapping[str, int]
    """For each word of a verdict, worst first, the number of pictures for which it was the worst."""

    @property
    def total(self) -> int:
        """The number of pictures that were attacked."""
        return sum(self.people.values())

    @property
    def recognized(self) -> int:
        """The number of pictures that were recognizable or singled out."""
        return sum(self.people.get(word, 0) for word in LEAKS)

    @property
    def meaning(self) -> str:
        """The meaning of the worst verdict."""
        return next((MEANING[word] for word in self.people if word in VERDICTS), "")

    @property
    def seen(self) -> str:
        """A sentence on how many pictures were shown, and how well."""
        counts = [f"{count} {word}" for word, count in self.people.items() if word in (RECOGNIZABLE, SINGLED_OUT, PARTLY)]
        unknown, unsent = self.people.get(CUT_SHORT, 0), self.people.get(REFUSED, 0)
        words = f"Of {counted(self.total - unknown - unsent, 'picture')}: {', '.join(counts) if counts else 'none shown by these attacks'}"
        words += f"; {unknown} more not tried to the end" if unknown else ""
        return f"{words}; the phone refused {unsent} more." if unsent else f"{words}."


def count_worst(words: Iterable[str]) -> dict[str, int]:
    """Return how often each word of a verdict occurs, the worst word first.

    >>> count_worst(["partly", "recognizable", "partly"])
    {'recognizable': 1, 'partly': 2}
    """
    given = list(words)
    return {word: count for word in SEVERITY if (count := given.count(word))}
