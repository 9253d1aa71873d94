"""Thresholds of an audit, such as "recognizable > 0": they decide whether a build fails."""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from leakage.auditing.audit_outcome import Outcome
from leakage.spec.words import PARTLY, RECOGNIZABLE, SINGLED_OUT

COUNTED: dict[str, Callable[[Outcome], float]] = {
    "recognizable": lambda audit: audit.conclusion.people.get(RECOGNIZABLE, 0),
    "singled_out": lambda audit: audit.conclusion.people.get(SINGLED_OUT, 0),
    "partly": lambda audit: audit.conclusion.people.get(PARTLY, 0),
    "leaks": lambda audit: audit.conclusion.recognized,
    "psnr": lambda audit: max((value for finding in audit.findings for value in finding.psnr), default=0.0),
}
COMPARED = {">": operator.gt, ">=": operator.ge}
FORM = re.compile(r"\s*(\w+)\s*(>=?)\s*(\d+(?:\.\d+)?)\s*")


@dataclass(frozen=True)
class Threshold:
    """A figure of an audit and the value at which it fails."""

    text: str
    """The threshold as it was written."""
    figure: str
    """The name of the figure, one of COUNTED."""
    compared: str
    """">" or ">="."""
    value: float
    """The value with which the figure is compared."""

    @staticmethod
    def parse(text: str) -> "Threshold":
        """Return a threshold that is written as "recognizable > 0". Raises ValueError.

        >>> Threshold.parse("psnr >= 20").value
        20.0
        """
        match = FORM.fullmatch(text)
        if match is None or match[1] not in COUNTED:
            raise ValueError(
                f'--fail-if {text!r} is no threshold. Expected is a figure, > or >=, and a number, as "recognizable > 0". The figures '
                f"are {', '.join(COUNTED)}: numbers of pictures, and the highest PSNR in dB."
            )
        return Threshold(text.strip(), match[1], match[2], float(match[3]))

    def passed(self, audit: Outcome) -> bool:
        """Return whether the figure of an audit is above the value, so that a build should fail."""
        return bool(COMPARED[self.compared](COUNTED[self.figure](audit), self.value))
