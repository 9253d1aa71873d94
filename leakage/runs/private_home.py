"""The home folder belongs to one user of the machine: others can neither list it nor read what is in it."""

import errno
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from leakage.runs.broken_home import in_plain_words
from leakage.settings import Settings

log = logging.getLogger(__name__)


def keep_private(config: Settings) -> None:
    """Close the home (0700) and the files in it (0600), and make whatever this process and its children write theirs alone.

    Raises BrokenHomeError where the home cannot be made or entered.
    """
    os.umask(0o077)
    try:
        config.home.mkdir(parents=True, exist_ok=True)
        ours = [config.home, *_ours(config)]
    except OSError as error:
        raise in_plain_words(error, config.home) or error from None
    for path in ours:
        try:
            path.chmod(0o700 if path.is_dir() else 0o600)
        except FileNotFoundError:  # a worker's temporary file
            continue
        except OSError as error:
            if error.errno == errno.EROFS:  # nobody writes there; what needs to says so
                return
            log.warning("others on this machine may be able to read %s, which belongs to somebody else: %s", path, error)


def _ours(config: Settings) -> Iterator[Path]:
    """Yield what this program writes there; data sets may lie in the home as well, and no link is followed."""
    for path in config.home.iterdir():
        if path.is_file() and not path.is_symlink():
            yield path
    if config.checkpoints.is_dir():
        yield config.checkpoints
        yield from (path for path in config.checkpoints.rglob("*") if not path.is_symlink())
