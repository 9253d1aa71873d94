"""The permissions of the home folder: other users of the machine can neither list it nor read the files in it."""

import errno
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from leakage.runs.broken_home import in_plain_words
from leakage.settings import Settings

log = logging.getLogger(__name__)


def keep_private(config: Settings) -> None:
    """Set the permissions of the home (0700) and its files (0600), and the umask of this process, so that only this user can read them.

    Raises:
        BrokenHomeError: the home cannot be created or opened.
    """
    os.umask(0o077)
    try:
        config.home.mkdir(parents=True, exist_ok=True)
        paths = [config.home, *_private_paths(config)]
    except OSError as error:
        raise in_plain_words(error, config.home) or error from None
    for path in paths:
        try:
            path.chmod(0o700 if path.is_dir() else 0o600)
        except FileNotFoundError:  # a worker's temporary file
            continue
        except OSError as error:
            if error.errno == errno.EROFS:  # a read-only file system: later writes report it
                return
            log.warning("other users of this machine may be able to read %s, which belongs to another user: %s", path, error)


def _private_paths(config: Settings) -> Iterator[Path]:
    """Yield the files and folders that this program writes into the home, without data sets and without links."""
    for path in config.home.iterdir():
        if path.is_file() and not path.is_symlink():
            yield path
    for folder in (config.checkpoints, config.updates):
        if folder.is_dir():
            yield folder
            yield from (path for path in folder.rglob("*") if not path.is_symlink())
