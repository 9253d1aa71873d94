"""The check of recorded updates that were uploaded: a separate process with limited time and memory reads them. No torch."""

import os
import subprocess
import sys
import threading
from pathlib import Path

from leakage.data.errors import UpdateFileError
from leakage.settings import PACKAGE

REFUSED = 3  # exit status of the reader with a sentence on stdout
PATIENCE = 60.0  # seconds: the reader may use 30 seconds of processor time, and waits for others on a busy machine
AT_ONCE = threading.BoundedSemaphore(1)  # two files of 200 MB each are in memory at a time


def check_update(folder: Path) -> bytes:
    """Check the files of a recorded update in a separate process (`leakage.adapters.update_reader`), and return its card as JSON.

    Args:
        folder: the folder with the files.

    Raises:
        UpdateFileError: the update is not allowed, or takes too much time or memory; the message is a sentence for pages.
    """
    command = [sys.executable, "-m", "leakage.adapters.update_reader", str(folder)]
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # each thread of numpy reserves memory
    try:
        with AT_ONCE:
            done = subprocess.run(command, capture_output=True, cwd=PACKAGE.parent, timeout=PATIENCE, env=alone, check=False)
    except OSError as error:
        raise UpdateFileError(f"The update could not be checked, because this machine is too busy ({error}). Try again.") from None
    except subprocess.TimeoutExpired:
        raise UpdateFileError(f"The update could not be read in {PATIENCE:.0f} seconds. Record a smaller network.") from None
    if done.returncode == REFUSED:
        raise UpdateFileError(done.stdout.decode())
    if done.returncode:
        raise UpdateFileError("The update takes more time or memory to read than an update of 200 MB does. Save it again.")
    return done.stdout
