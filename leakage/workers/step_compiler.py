"""The process that compiles steps of attacks while no run waits (`compile_step`)."""

import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress

from leakage.runs.backoff import Backoff
from leakage.settings import FORMULA, Settings

IDLE = 20.0  # seconds without a run after which compiling begins
LOOK = 300.0  # seconds until the next look for a step, where none waited
LONGEST = 300.0  # seconds that compiling one step may take
NOTHING_LEFT = 3  # its exit status
log = logging.getLogger(__name__)


class StepCompiler:
    """Compiles one step after the other in a separate process while the machine is idle; a run that arrives ends the process at once."""

    def __init__(self, config: Settings) -> None:
        self.config, self.backoff = config, Backoff()
        self.process: subprocess.Popen[bytes] | None = None
        self.busy = self.began = time.monotonic()
        self.looks = 0.0  # when to look for a step again
        self.enabled = config.compile and config.step == FORMULA and not config.ray
        if self.enabled and not shutil.which(os.environ.get("CXX", "g++")):
            log.info("no C++ compiler (g++) is installed: attacks run without compiled steps, at most half as fast on small networks")
            self.enabled = False

    def step(self, *, idle: bool) -> None:
        """Start the process when the machine has been idle for a while, end it when a run arrives or it takes too long."""
        now = time.monotonic()
        if not idle:
            self.busy = now
        if self.process:
            self._watch(self.process, idle=idle, seconds=now - self.began)
        elif self.enabled and now - self.busy > IDLE and now > self.looks and self.backoff.may_try:
            self.began = now
            with self.config.log_file("workers.log").open("ab") as output:
                command = [sys.executable, "-m", "leakage.workers.compile_step"]
                environment = {**os.environ, "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
                self.process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)

    def _watch(self, process: subprocess.Popen[bytes], *, idle: bool, seconds: float) -> None:
        status = process.poll()
        if status is None and idle and seconds <= LONGEST:
            return
        self.end()
        if status == NOTHING_LEFT:
            self.looks = time.monotonic() + LOOK
        elif not idle:  # not its fault: the try does not count
            for path in self.config.programs.glob("*.tries"):
                path.unlink(missing_ok=True)
        elif status != 0:
            log.warning("compiling a step failed (status %s, after %.0f s): runs go on without it", status, seconds)
            self.backoff.failed()

    def end(self) -> None:
        """End the process, and the compiler that it may have started."""
        if self.process:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None
