"""The outcome of an audit: its findings, and what may be concluded from them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from leakage.auditing.card import AuditCard
from leakage.auditing.finding import FAILED, UNTRIED, Finding
from leakage.auditing.protection_effects import ProtectionEffect
from leakage.auditing.sample import Sample
from leakage.spec.conclusion import ASSUME_LEAK, ASSUME_SEEN, LEAK, PROVES_NOTHING, Conclusion, count_worst
from leakage.spec.words import CUT_SHORT, INAPPLICABLE, REFUSED, VERDICTS, counted

NOTHING_SHOWN, UNKNOWN = "nothing shown", "nothing known"
ORDER = (*VERDICTS, CUT_SHORT)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an audit found. `Audit` explains the fields, and adds how they are saved."""

    findings: tuple[Finding, ...]
    sample: Sample
    notices: tuple[str, ...]
    card: AuditCard
    settings: Mapping[str, Any]
    effects: tuple[ProtectionEffect, ...]
    seconds: float

    @cached_property
    def conclusion(self) -> Conclusion:
        """The worst verdict of every picture that was in an attacked update."""
        return _conclusion(self.findings)

    @property
    def by_size(self) -> dict[int, Conclusion]:
        """The number of pictures in an update -> the conclusion from such updates; sizes without an answer are left out."""
        sizes = sorted({len(finding.pictures) for finding in self.tried})
        return {size: _conclusion(finding for finding in self.findings if len(finding.pictures) == size) for size in sizes}

    @property
    def word(self) -> str:
        """LEAK, NOTHING_SHOWN, REFUSED if the client sent nothing, or UNKNOWN if no attack came to an answer."""
        if self.conclusion.recognized:
            return LEAK
        if self.findings and all(finding.word == REFUSED for finding in self.findings):
            return REFUSED
        return NOTHING_SHOWN if any(finding.tried for finding in self.findings) else UNKNOWN

    @property
    def headline(self) -> str:
        """The outcome in a few sentences."""
        if self.word == LEAK:
            return f"Leaks. {self.conclusion.seen}"
        if self.word == REFUSED:
            return f"The client refused the model, and sent nothing. {self.findings[0].why}"
        if self.word == UNKNOWN:
            return "No attack came to an answer, so nothing is known."
        return f"{PROVES_NOTHING} {self.conclusion.seen}"

    @property
    def decision(self) -> str:
        """What a decision should assume; empty if nothing is known."""
        return {LEAK: ASSUME_SEEN, NOTHING_SHOWN: ASSUME_LEAK}.get(self.word, "")

    @property
    def tried(self) -> tuple[Finding, ...]:
        """The findings of attacks that came to an answer, or showed something before they were stopped."""
        return tuple(finding for finding in self.findings if finding.tried)

    @property
    def untried(self) -> tuple[str, ...]:
        """Sentences on the attacks that were not tried, do not apply here, or failed, each with its reason."""
        groups: dict[tuple[str, str, str], list[int]] = {}
        reasons: dict[tuple[str, int], str] = {}  # of several updates of one size without time, the time of one is enough
        for finding in self.findings:
            if finding.word in (INAPPLICABLE, UNTRIED, FAILED, CUT_SHORT, REFUSED):
                size = len(finding.pictures)
                why = reasons.setdefault((finding.title, size), finding.why) if finding.word == UNTRIED else finding.why
                groups.setdefault((finding.title, finding.word, why), []).append(size)
        return tuple(f"{title}, {_updates(sizes)}: {word}. {why}".rstrip() for (title, word, why), sizes in groups.items())

    def __str__(self) -> str:
        lines = [self.headline, self.decision, "", self.card.client, self.sample.origin, *self.notices, ""]
        lines += [str(finding) for finding in self.tried]
        lines += ["", "Not tried, or without an answer:", *self.untried] if self.untried else []
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Audit({self.word}: {len(self.tried)} of {len(self.findings)} attempts came to an answer, {self.seconds:.0f} s)"


def _conclusion(findings: Iterable[Finding]) -> Conclusion:
    worst: dict[int, str] = {}
    for finding in findings:
        for picture, word in zip(finding.pictures, finding.each, strict=False):
            worst[picture] = min(worst.get(picture, word), word, key=ORDER.index)
    return Conclusion(people=count_worst(worst.values()))


def sorted_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort findings, the worst for privacy first."""
    return tuple(sorted(findings, key=lambda finding: finding.severity))


def _updates(sizes: list[int]) -> str:
    """Describe the updates of an attack by the numbers of pictures in them: "updates of 1 and 8 pictures"."""
    different = sorted(set(sizes))
    if len(different) == 1:
        return f"update of {counted(different[0], 'picture')}"
    return f"updates of {', '.join(map(str, different[:-1]))} and {different[-1]} pictures"
