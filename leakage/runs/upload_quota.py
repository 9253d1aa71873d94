"""Limits on the uploads that the web process keeps in memory: a file that no page asked for is refused, and the rest has a quota.

Streamlit's own route takes any number of files under any names for a session, and keeps them in memory until the session ends.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

MB = 2**20
SESSION_MB = 40  # largest size of the files of one session, with those that are being sent
ALL_MB = 512  # largest size of the files of all sessions together
FILE_MB = 10  # largest size of a file, as .streamlit/config.toml says
FRAME = 64 * 1024  # bytes that a form adds to its file
EXPECTED = 300  # files that a session may have asked for and not sent
UNASKED = "No page of this session has asked for this file. Choose it again."
NO_LENGTH = "A file needs its length (the header Content-Length), so that it is known whether there is room for it."
TOO_LARGE = f"A file may have {FILE_MB} MB. Send a smaller copy."
SESSION_FULL = f"This page may hold files of {SESSION_MB} MB together. Remove some, or reload the page, then send this one again."
ALL_FULL = f"All visitors together hold files of {ALL_MB} MB. Try again in a few minutes."


class UploadQuota:
    """The files that each session has asked for, is sending and has sent, in bytes; the upload route reports them here."""

    def __init__(self) -> None:
        self.expected = defaultdict[str, dict[str, None]](dict)
        self.held = defaultdict[str, dict[str, int]](dict)
        self.coming = defaultdict[str, int](int)

    def expect(self, session: str, files: Iterable[str]) -> None:
        """Note that a page of this session has asked for these files."""
        expected = self.expected[session]
        expected.update(dict.fromkeys(files))
        for old in list(expected)[:-EXPECTED]:
            del expected[old]

    def hold(self, session: str, file: str, size: int) -> None:
        """Note that a file has arrived and is kept."""
        self.expected[session].pop(file, None)
        self.held[session][file] = size

    @contextmanager
    def on_its_way(self, session: str, size: int) -> Iterator[None]:
        """Count `size` bytes as being sent while the block runs."""
        self.coming[session] += size
        try:
            yield
        finally:
            self.coming[session] -= size
            if not self.coming[session]:
                del self.coming[session]

    def drop(self, session: str, file: str) -> None:
        """Note that a file is no longer kept."""
        self.held[session].pop(file, None)

    def drop_session(self, session: str) -> None:
        """Forget a session that has ended, with all its files."""
        for kept in (self.expected, self.held):
            kept.pop(session, None)

    def of(self, session: str) -> int:
        """Return the bytes of a session's files, arrived or being sent."""
        return sum(self.held.get(session, {}).values()) + self.coming.get(session, 0)

    def refusal(self, session: str, file: str, length: str) -> tuple[int, str] | None:
        """Return the HTTP status and the sentence with which a file is refused; None if it may be sent. `length`: its Content-Length."""
        if file not in self.expected.get(session, {}):
            return 403, UNASKED
        if not length.isdigit():
            return 411, NO_LENGTH
        size = int(length)
        if size > FILE_MB * MB + FRAME:
            return 413, TOO_LARGE
        if self.of(session) + size > SESSION_MB * MB:
            return 413, SESSION_FULL
        if sum(map(self.of, {*self.held, *self.coming})) + size > ALL_MB * MB:
            return 503, ALL_FULL
        return None


QUOTA = UploadQuota()  # of this process
