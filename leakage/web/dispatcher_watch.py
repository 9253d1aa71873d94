"""The watch that keeps a dispatcher running beside the web server, unless a newer version of the program runs one on the same home."""

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
import time

from leakage.runs.backoff import Backoff
from leakage.runs.broken_home import in_plain_words
from leakage.runs.connections import StoreError
from leakage.runs.programs import NEWER, Program, lock_holder
from leakage.settings import ROOT, Settings
from leakage.spec import catalog
from leakage.web.stream import Stream

WATCH = 2.0  # seconds between two checks
LEAVING = 0.5  # seconds until the next check after an older dispatcher was asked to stop
HANDOVER = 10.0  # seconds without a dispatcher of a newer version until this one starts its own: the newer one may be restarting
log = logging.getLogger(__name__)


class DispatcherWatch:
    """Starts a dispatcher if none is running, and stops a dispatcher of an older version of the program."""

    superseded: str
    """The message that every page shows while a newer version of the program is at work on this home folder; empty otherwise."""

    def __init__(self, config: Settings, stream: Stream) -> None:
        self.config, self.stream, self.superseded = config, stream, ""
        self.process: subprocess.Popen[bytes] | None = None
        self.started_at, self.started_version = 0.0, ""  # of `process`: monotonic seconds, version of the catalog
        self.waits_until = 0.0
        self.start_backoff, self.check_backoff = Backoff(), Backoff()
        self.plugin_fault = ""  # logged last

    async def keep(self) -> None:
        """Check the dispatcher for ever, and log every error, such as a full disk, too many processes or a half-written file."""
        while True:
            try:
                pause = self.check()
                self.check_backoff.reset()
            except (StoreError, OSError) as error:
                pause = max(WATCH, self.check_backoff.failed())
                reason = in_plain_words(error, self.config.home) or error
                log.warning("the dispatcher cannot be checked; the next check is in %.0f s: %s", pause, reason)
            except Exception:
                pause = max(WATCH, self.check_backoff.failed())
                log.exception("the dispatcher cannot be checked; the next check is in %.0f s", pause)
            await asyncio.sleep(pause)

    def check(self) -> float:
        """Start or stop a dispatcher if necessary, and return the seconds until the next check."""
        holder, version = lock_holder(self.config), catalog.version()
        if holder is None:
            if time.monotonic() > self.waits_until:
                self.set_superseded("")
                self.start(version)
        elif holder.program is None or holder.program.version == version:
            self.set_superseded("")
            self.log_plugin_fault()
            if not self.start_backoff.works and catalog.read(self.config.catalog):
                self.start_backoff.worked()
        elif Program.here().replaces(holder.program):
            if self.process and self.process.poll() is not None:
                self.process = None  # it ended because the older dispatcher had the lock: that is no failure
            with contextlib.suppress(ProcessLookupError):  # the older dispatcher has already ended
                os.kill(holder.pid, signal.SIGTERM)
            return LEAVING
        else:
            self.waits_until = time.monotonic() + HANDOVER
            self.set_superseded(NEWER.format(holder.program.number, holder.program.root, self.config.home))
        return WATCH

    def set_superseded(self, message: str) -> None:
        """Set the message that pages show while a newer program uses this home (empty: none does); log it if none was set before."""
        if message and not self.superseded:
            log.warning("%s", message)
        self.superseded = message
        self.stream.dispatcher_is_ours = not message

    def log_plugin_fault(self) -> None:
        """Log the dispatcher's message on a plug-in that it cannot read, once for each change of the message."""
        fault = catalog.read_fault(self.config.catalog)
        if fault and fault != self.plugin_fault:
            log.error("%s", fault)
        self.plugin_fault = fault

    def start(self, version: str) -> None:
        """Start a dispatcher, unless the last one is still starting or failed a short time ago.

        The pause grows with every dispatcher that ends at once. A change of the program's files, and so of `version`, ends the pause.
        """
        if self.process:
            if self.process.poll() is None:
                return
            self.process = None
            self.start_backoff.ended(time.monotonic() - self.started_at)
            if not self.start_backoff.may_try:
                log_file, left = self.config.home / "dispatch.log", self.start_backoff.remaining
                log.warning("the dispatcher has ended; see %s. The next starts in %.0f s", log_file, left)
        if version != self.started_version:
            self.start_backoff.reset()
        if self.start_backoff.may_try:
            self.started_at, self.started_version = time.monotonic(), version
            self.process = start_dispatcher(self.config)


def start_dispatcher(config: Settings) -> subprocess.Popen[bytes]:
    """Start a dispatcher as a process in a separate session, so that it outlives this server, and return the process."""
    config.home.mkdir(parents=True, exist_ok=True)
    with config.log_file("dispatch.log").open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "leakage.workers.dispatcher"],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
