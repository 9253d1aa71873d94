"""A dispatcher is kept at work beside the web server, unless a newer program has its own on the same home."""

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

WATCH = 2.0  # seconds between looks at the dispatcher
LEAVING = 0.5  # ... at one that was asked to leave
YIELD = 10.0  # ... without a dispatcher until one starts where a newer program was at work: it may be replacing its own
log = logging.getLogger(__name__)


class DispatcherWatch:
    """Starts a dispatcher when there is none, and asks one of an older program to leave.

    superseded   what the pages say while a newer program is at work on this home, else nothing
    """

    def __init__(self, config: Settings, stream: Stream) -> None:
        self.config, self.stream, self.superseded = config, stream, ""
        self.process: subprocess.Popen[bytes] | None = None
        self.born, self.version = 0.0, ""  # when the last one was started, and of which version
        self.yields_until = 0.0
        self.starts, self.looks = Backoff(), Backoff()

    async def keep(self) -> None:
        """Look again and again, whatever goes wrong: a full disk, no more processes, a file that is being written."""
        while True:
            try:
                pause = self.look()
                self.looks.reset()
            except (StoreError, OSError) as error:
                pause = max(WATCH, self.looks.failed())
                told = in_plain_words(error, self.config.home) or error
                log.warning("the dispatcher cannot be looked after; the next look is in %.0f s: %s", pause, told)
            except Exception:
                pause = max(WATCH, self.looks.failed())
                log.exception("the dispatcher cannot be looked after; the next look is in %.0f s", pause)
            await asyncio.sleep(pause)

    def look(self) -> float:
        """One look; seconds until the next."""
        holder, version = lock_holder(self.config), catalog.version()
        if holder is None:
            if time.monotonic() > self.yields_until:
                self.say("")
                self.start(version)
        elif holder.program is None or holder.program.version == version:
            self.say("")
            if not self.starts.works and catalog.read(self.config.catalog):
                self.starts.worked()
        elif Program.here().replaces(holder.program):
            if self.process and self.process.poll() is not None:
                self.process = None  # the lock was taken before it came: no fault of its
            with contextlib.suppress(ProcessLookupError):  # it has left by itself
                os.kill(holder.pid, signal.SIGTERM)
            return LEAVING
        else:
            self.yields_until = time.monotonic() + YIELD
            self.say(NEWER.format(holder.program.number, holder.program.root, self.config.home))
        return WATCH

    def say(self, superseded: str) -> None:
        """Note whether a newer program is at work; a change is logged, once."""
        if superseded and not self.superseded:
            log.warning("%s", superseded)
        self.superseded = superseded
        self.stream.leads = not superseded

    def start(self, version: str) -> None:
        """Start one, unless one is just beginning. Those that end at once are started ever more seldom, until a file is changed."""
        if self.process:
            if self.process.poll() is None:
                return
            self.process = None
            self.starts.ended(time.monotonic() - self.born)
            if not self.starts.may_try:
                log.warning(
                    "the dispatcher has ended; see %s. The next starts in %.0f s", self.config.home / "dispatch.log", self.starts.left
                )
        if version != self.version:
            self.starts.reset()
        if self.starts.may_try:
            self.born, self.version = time.monotonic(), version
            self.process = start_dispatcher(self.config)


def start_dispatcher(config: Settings) -> subprocess.Popen[bytes]:
    """A process of its own, in a session of its own: it outlives this server."""
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
