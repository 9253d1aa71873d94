"""A recorded update from its folder: weights before and after, a difference or a gradient, and the card. No torch.

`python -m leakage.adapters.update_reader FOLDER` checks a folder in a process with limited time and memory, which does nothing else.
"""

import contextlib
import os
import resource
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import ValidationError

from leakage.data.array_files import KINDS, MAX_BYTES, OTHER, Numbers, read_arrays
from leakage.data.errors import UpdateFileError
from leakage.spec.update_card import FILE, UpdateCard

ARCHIVE = "update.zip"
PARTS = ("before", "after", "difference", "gradient")
MAX_CARD = 64 * 1024  # bytes
CPU_SECONDS, MEMORY = 30, 3 * 2**30  # of the checking process: two files of 200 MB, twice in memory, beside numpy
REFUSED = 3  # exit status if the update is not allowed; the sentence is then on stdout
EXPECTED = (
    "Expected are two files, before and after (the weights that the client received and those that it sent), or one, difference or "
    f"gradient; each {' or '.join(KINDS)}. card.json may say more."
)


@dataclass(frozen=True, eq=False)
class RecordedUpdate:
    """A recorded update, as its files have it."""

    before: Numbers | None
    """The weights and buffers that the client received."""
    after: Numbers | None
    """Those after its training."""
    difference: Numbers | None
    """What was sent, where it is a difference of weights."""
    gradient: Numbers | None
    """What was sent, where it is a gradient."""
    card: UpdateCard

    @property
    def width(self) -> str:
        """The narrowest floating-point type of what was sent."""
        sent = self.after or self.difference or self.gradient
        return sent.width if sent else ""


def read_update(folder: Path) -> RecordedUpdate:
    """Read a recorded update.

    Args:
        folder: the folder of the files, or of the single file update.zip with all of them. Other files in it are not read.

    Raises:
        UpdateFileError: a file is missing, damaged, of another kind or too large. The message is a sentence that says what to do.
    """
    if not folder.exists():
        raise UpdateFileError(f"There is no {folder}. {EXPECTED}")
    if not folder.is_dir():
        raise UpdateFileError(f"{folder.name} is a file; expected is a folder. {EXPECTED}")
    if (folder / ARCHIVE).exists():
        with TemporaryDirectory() as unpacked:  # its owner alone may read it
            unpack_update(folder / ARCHIVE, Path(unpacked))
            return read_update(Path(unpacked))
    found = {part: _file_of(folder, part) for part in PARTS}
    if not (found["difference"] or found["gradient"] or (found["before"] and found["after"])):
        present = ", ".join(path.name for path in found.values() if path) or "none of these files"
        raise UpdateFileError(f"The update has {present}. {EXPECTED}")
    if sum(bool(found[part]) for part in ("after", "difference", "gradient")) > 1:
        raise UpdateFileError(f"The update has more than one of after, difference and gradient. {EXPECTED}")
    numbers = {part: read_arrays(path) if path else None for part, path in found.items()}
    return RecordedUpdate(**numbers, card=read_card(folder / FILE))


def read_card(path: Path) -> UpdateCard:
    """Read the card of an update; without a file nothing is known. Raises UpdateFileError."""
    if not path.exists():
        return UpdateCard()
    if path.stat().st_size > MAX_CARD:
        raise UpdateFileError(f"{FILE} has over {MAX_CARD // 1024} kB. Leave out what docs/import_updates.md does not name.")
    try:
        return UpdateCard.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where, given = ".".join(str(part) for part in first["loc"] if part != "value"), str(first.get("input"))[:60]
        if first["type"] == "extra_forbidden":
            raise UpdateFileError(f"{FILE}: {where}: there is no such field. See docs/import_updates.md.") from None
        raise UpdateFileError(f"{FILE}: {where}: {first['msg'][:200]}; given was {given}. See docs/import_updates.md.") from None


def unpack_update(archive: Path, folder: Path) -> None:
    """Write the files of a recorded update from a .zip into a folder; other files in it are left out. Raises UpdateFileError.

    Args:
        archive: the .zip; the files may lie in one folder of it.
        folder: an existing, empty folder.
    """
    allowed = {f"{part}{kind}" for part in PARTS for kind in KINDS} | {FILE}
    try:
        with zipfile.ZipFile(archive) as opened:
            members = [member for member in opened.infolist() if Path(member.filename).name in allowed]
            names = [Path(member.filename).name for member in members]
            if len(set(names)) < len(names):
                raise UpdateFileError(f"{archive.name} has several updates. Choose the files of one of them.")
            for name, member in zip(names, members, strict=True):
                if member.file_size > MAX_BYTES:
                    raise UpdateFileError(f"{name} in {archive.name} has over {MAX_BYTES // 2**20} MB. Choose a smaller one.")
                with opened.open(member) as stream, (folder / name).open("wb") as file:
                    while part := stream.read(2**20):
                        file.write(part)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError) as error:
        raise UpdateFileError(
            f"{archive.name} is no .zip that can be read ({' '.join(str(error).split())[:100]}). Pack it again."
        ) from None


def _file_of(folder: Path, part: str) -> Path | None:
    """Return the file of a part of the update; None if there is none. Raises UpdateFileError where it cannot be read, or there are two."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.stem == part)
    known = [path for path in files if path.suffix in KINDS]
    if len(known) > 1:
        raise UpdateFileError(f"The update has {known[0].name} and {known[1].name}. Keep one of them.")
    if files and not known:
        read_arrays(files[0])  # a pickle says what it is
        raise UpdateFileError(OTHER.format(files[0].name, EXPECTED))
    return known[0] if known else None


def main() -> int:
    """Check the folder that the command names, write a sentence to stdout where it is refused, and return the exit status."""
    for kind, most in ((resource.RLIMIT_CPU, CPU_SECONDS), (resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0)):
        allowed = resource.getrlimit(kind)[1]
        limit = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
        with contextlib.suppress(ValueError, OSError):  # macOS cannot limit the address space
            resource.setrlimit(kind, (limit, limit))
    try:
        read_update(Path(sys.argv[1]))
    except UpdateFileError as error:
        sys.stdout.write(str(error))
        return REFUSED
    return 0


if __name__ == "__main__":
    os.nice(5)  # pages have priority
    sys.exit(main())
