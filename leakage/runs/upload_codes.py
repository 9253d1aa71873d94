"""Codes with which an upload can be deleted, even if its owner has lost the cookie. The store has only a hash of each code."""

import hashlib
import secrets
import time
from dataclasses import dataclass

from leakage.runs.connections import Connection, StoreError, is_full
from leakage.runs.store import Store

LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's alphabet, without letters that are easily confused
ALIKE = str.maketrans("oil", "011")  # letters that people type in place of these digits
GROUPS, EACH = 3, 4  # 60 bits, too many to find a code by trying
TRIES, MINUTE = 10, 60.0  # the wrong codes that an owner may type, within so many seconds
UNREADABLE = "A code has 12 letters and digits in three groups, such as 7k2m-x9qd-04tw. Type it as it stood beside your picture."
UNKNOWN = "No picture here has this code. It may be deleted already; else compare the code with your note, letter by letter."
TOO_MANY = "These were too many wrong codes. Wait a minute and try again."


class CodeError(ValueError):
    """The code that an owner typed to delete an upload deletes nothing; the message says why."""


@dataclass(frozen=True)
class Deleted:
    """The upload that a code has deleted, by id, and the number of deleted runs that used it."""

    upload: str
    runs: int


class UploadCodes:
    """The codes with which uploaded pictures are deleted from a store; it has their hashes only."""

    def __init__(self, store: Store) -> None:
        self.database, self.empty_log = store.database, store.empty_log
        self.wrong: dict[str, list[float]] = {}  # when each owner typed wrong codes

    def issue(self, owner: str, upload: str) -> str:
        """Return a new code that deletes an upload of this owner; "" on a full disk, which has no room for a run with the upload either."""
        code = "".join(secrets.choice(LETTERS) for _ in range(GROUPS * EACH))
        row = (_hash(code), owner, upload, time.time())
        try:
            with self.database.write() as db:
                db.execute("INSERT INTO upload_codes (hash, owner, upload, created) VALUES (?, ?, ?, ?)", row)
        except StoreError as error:
            if is_full(error):
                return ""
            raise
        return "-".join(code[start : start + EACH] for start in range(0, len(code), EACH))

    def delete(self, code: str, owner: str) -> Deleted:
        """Delete the upload of a code, with every run of its uploader that used it.

        Args:
            code: the code as it was typed.
            owner: the owner that typed it; the uploader may be another owner.

        Raises:
            CodeError: the code is not valid, or this owner has typed too many wrong codes.
        """
        now = time.time()
        self.wrong = {other: recent for other, all in self.wrong.items() if (recent := [when for when in all if now - when < MINUTE])}
        if len(self.wrong.get(owner, ())) >= TRIES:
            raise CodeError(TOO_MANY)
        typed = "".join(letter for letter in code.lower().translate(ALIKE) if letter in LETTERS)
        if len(typed) != GROUPS * EACH:
            raise CodeError(UNREADABLE)

        def work(db: Connection) -> Deleted | None:
            row = db.execute("SELECT owner, upload FROM upload_codes WHERE hash = ?", (_hash(typed),)).fetchone()
            if row is None:
                return None
            uploader, upload = row
            runs = "DELETE FROM runs WHERE owner = ? AND id IN (SELECT run FROM files WHERE name = ?)"
            gone = db.execute(runs, (uploader, f"upload:{upload}")).rowcount
            db.execute("DELETE FROM upload_codes WHERE owner = ? AND upload = ?", (uploader, upload))
            return Deleted(upload, gone)

        deleted = self.database.write_using_reserve(work)
        if deleted is None:
            self.wrong.setdefault(owner, []).append(now)
            raise CodeError(UNKNOWN)
        self.empty_log()
        self.database.set_reserve_aside()
        return deleted

    def sweep(self, *, before: float) -> None:
        """Delete codes that were issued before a time, if no run uses their upload."""
        with self.database.write() as db:
            db.execute(
                "DELETE FROM upload_codes WHERE created < ? AND NOT EXISTS (SELECT 1 FROM files JOIN runs ON runs.id = files.run"
                " WHERE files.name = 'upload:' || upload_codes.upload AND runs.owner = upload_codes.owner)",
                (before,),
            )


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
