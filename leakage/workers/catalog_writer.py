"""The process that writes the catalog of plug-ins: the dispatcher itself imports no plug-in."""

import logging
import subprocess
import sys
from contextlib import suppress

from leakage.runs.backoff import Backoff
from leakage.settings import PREPARED_CATALOG, Settings
from leakage.spec import catalog

# Run in a separate process: plug-ins import torch, half a gigabyte that the dispatcher would never free, and plug-ins may be broken.
WRITE = "import pathlib, sys; from leakage.workers import plugin_catalog; plugin_catalog.write(pathlib.Path(sys.argv[1]))"
log = logging.getLogger(__name__)


class CatalogWriter:
    """Puts the catalog of plug-ins into the home, if there is none: the catalog of the set-up, else one that a separate process writes.

    After a failure the process is started again, with ever longer pauses.
    """

    def __init__(self, config: Settings) -> None:
        self.config, self.backoff = config, Backoff()
        self.missing = catalog.read(config.catalog) is None and not self.take_prepared()
        self.process: subprocess.Popen[bytes] | None = None

    def take_prepared(self) -> bool:
        """Put the catalog of the set-up into the home, and return whether that was possible."""
        if prepared := catalog.read(PREPARED_CATALOG):
            with suppress(OSError):  # the process will say what is in the way
                catalog.put(self.config.catalog, catalog.text(prepared))
                catalog.fault_file(self.config.catalog).unlink(missing_ok=True)
                return True
        return False

    def step(self) -> None:
        """Start the process that writes the catalog if the catalog is missing and the pause is over, or note how the process has ended."""
        if self.process and self.process.poll() is not None:
            self.missing = self.process.returncode != 0
            if self.missing:
                again = f"the next try is in {self.backoff.failed():.0f} s, or at once when a file is corrected"
                log.error("the plug-ins cannot be listed (see above): %s", again)
            self.process = None
        elif self.missing and not self.process and self.backoff.may_try:
            self.process = subprocess.Popen([sys.executable, "-c", WRITE, self.config.catalog])

    def write_and_wait(self) -> None:
        """Write the catalog, if there is none, and wait until it is written: workers need it."""
        self.step()
        if self.process:
            self.process.wait()
            self.step()
