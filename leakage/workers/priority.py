"""Low priority for computations: where cores are short, the pages and their server come first.

Linux divides the cores among sessions, all alike, and only inside a session by niceness, unless its autogroups are switched off or a
container divides the cores. The dispatcher and the compiler of steps lead sessions of their own, so these are given a niceness too.
"""

import os
from contextlib import suppress
from pathlib import Path

AUTOGROUP = Path("/proc/self/autogroup")  # the session of this process


def lower_session_priority(niceness: int) -> None:
    """Give the session of this process a niceness, 1 to 19, if this process leads it; elsewhere than on Linux do nothing."""
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # no autogroups
            AUTOGROUP.write_text(str(niceness))
