"""Sentences on the audit of a recorded update, for the page and for the end of its run. They are limited to what was seen."""

from collections.abc import Sequence

from leakage.runs.event_parts import FindingFacts
from leakage.spec.audit_task import AuditTask
from leakage.spec.catalog import Catalog
from leakage.spec.words import counted

ANSWERED, INAPPLICABLE, UNTRIED, FAILED = "answered", "does not apply", "not tried", "failed"
NO_PROOF = (
    "Unless an attack has checked its pictures by an equation, none of this is a proof. A picture that explains the update need not be the "
    "client's picture; where attacks find nothing, another attack may find more."
)
NOTHING_TRIED = "No attack was tried, so nothing is known about pictures in this update."
LIKE_RANDOM = 0.5  # fraction of the distance of random pictures from which on an answer explains little
WHOLE = 0.01  # relative distance below which an answer explains the update, and not only part of it
WORKS, ALIKE = 3.0, 15.0  # dB above grey at planted pictures from which on an attack works here; dB from which on answers agree


def conclude(findings: Sequence[FindingFacts]) -> str:
    """Return the conclusion of an audit in a sentence or two: how many attacks were tried, and how many gave pictures that fit."""
    tried = [finding for finding in findings if finding.state in (ANSWERED, FAILED)]
    if not tried:
        return NOTHING_TRIED
    proved = [finding for finding in tried if finding.proved]
    fitting = [finding for finding in tried if finding.state == ANSWERED and explains(finding)]
    parts = [f"{counted(len(tried), 'attempt')}: {len(fitting)} gave pictures that explain the update, or part of it."]
    if proved:
        parts.append(f"{counted(len(proved), 'attempt')} checked the pictures by an equation.")
    if (untried := sum(finding.state in (UNTRIED, INAPPLICABLE) for finding in findings)) > 0:
        parts.append(f"{untried} could not be tried.")
    return " ".join(parts)


def explains(finding: FindingFacts) -> bool:
    """Return whether the update of the found pictures is clearly closer to the received one than that of random pictures."""
    return finding.distance is not None and finding.distance < LIKE_RANDOM * (finding.random_distance or 1.0)


def mark(finding: FindingFacts) -> str:
    """Return the word beside an attack that was tried, on how much of the update its pictures explain."""
    if finding.state == FAILED:
        return "failed"
    if finding.proved:
        return "checked exactly"
    if not explains(finding):
        return "explains little"
    return "explains the update" if finding.distance is not None and finding.distance < WHOLE else "explains part of the update"


def describe_distance(finding: FindingFacts) -> str:
    """Say how far the update of the found pictures is from the received one; "" if it was not measured."""
    if finding.distance is None:
        return ""
    beside = f" (random pictures: {percent(finding.random_distance)})" if finding.random_distance is not None else ""
    return f"The update of these pictures differs from the received one by {percent(finding.distance)}{beside}."


def describe_agreement(finding: FindingFacts) -> str:
    """Say whether different random starts gave the same pictures; "" if there was only one start."""
    if finding.agreement is None:
        return ""
    word = "agree" if finding.agreement >= ALIKE else "disagree"
    return f"Different random starts {word} (on average {finding.agreement:.1f} dB between their pictures)."


def describe_calibration(finding: FindingFacts) -> str:
    """Say how close the same attack comes to public pictures, whose truth is known; "" if that was not tried."""
    scores = [score for score in finding.planted if score is not None]
    if not scores:
        return ""
    ends = list(dict.fromkeys(f"{score:.1f}" for score in (min(scores), max(scores))))
    listed = f"{' to '.join(ends)} dB"
    if finding.planted_grey is None:
        return f"Calibration: on public pictures in the same setting, this attack reaches {listed}."
    grey = f"a grey picture {finding.planted_grey:.1f} dB"
    works = sum(scores) / len(scores) >= finding.planted_grey + WORKS
    word = "So the attack works in this setting." if works else "So the attack hardly works in this setting: its pictures mean little."
    return f"Calibration: on public pictures in the same setting, this attack reaches {listed}, {grey}. {word}"


def percent(value: float) -> str:
    """Return a fraction as a percentage with two digits.

    >>> percent(0.00312), percent(0.27), percent(1.4), percent(5e-7)
    ('0.31 %', '27 %', '140 %', 'less than 0.01 %')
    """
    if value < 1e-4:
        return "less than 0.01 %" if value else "0 %"
    return f"{100 * value:.0f} %" if value >= 0.1 else f"{100 * value:.2g} %"


def audit_title(task: AuditTask, known: Catalog) -> str:
    """Return the title of an audit: the network, and how many pictures are in the update if that is given."""
    entry, pictures = known.models.find(task.model.id), task.card.pictures.value
    of = f", {counted(pictures, 'picture')}" if pictures else ""
    return f"Audit of a recorded update of {entry.short if entry else task.model.id}{of}"
