"""The progress of an audit: each finding goes to the log, to a function of the caller, and to a bar by tqdm."""

import importlib.util
import logging
from collections.abc import Callable
from typing import Any

from leakage.auditing.finding import Finding

NO_BAR = "progress=True draws its bar with tqdm, which is not installed. Install tqdm, or give a function of a Finding as on_finding."
log = logging.getLogger("leakage.audit")


class AuditProgress:
    """Tells of every finding as soon as it is there.

    Args:
        on_finding: a function of a Finding; None for none
        bar: whether tqdm draws a bar

    Raises:
        ValueError: a bar is asked for, and tqdm is not installed.
    """

    def __init__(self, on_finding: Callable[[Finding], object] | None, *, bar: bool) -> None:
        if bar and importlib.util.find_spec("tqdm") is None:
            raise ValueError(NO_BAR)
        self.on_finding, self.bar = on_finding, bar
        self.drawn: Any = None

    def begin(self, attempts: int) -> None:
        """Begin the bar."""
        if self.bar:
            from tqdm.auto import tqdm  # type: ignore[import-untyped]  # its types are a package of their own

            self.drawn = tqdm(total=attempts, unit="attack")

    def note(self, sentence: str) -> None:
        """Write a sentence to the log."""
        log.info("%s", sentence)

    def tell_finding(self, finding: Finding) -> None:
        """Tell of a finding."""
        log.info("%s", finding)
        if self.on_finding:
            self.on_finding(finding)
        if self.drawn is not None:
            self.drawn.set_postfix_str(f"{finding.title}: {finding.word}")
            self.drawn.update()

    def end(self) -> None:
        """End the bar."""
        if self.drawn is not None:
            self.drawn.close()
