"""A recorded update from its folder: weights before and after, a difference or a gradient, and the card. No torch.

`python -m leakage.adapters.update_reader FOLDER` checks a folder in a process with limited time and memory, which does nothing else.
"""

import os
import sys
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from pydantic import ValidationError

from leakage.data.array_files import ADAPTERS, KINDS, MAX_BYTES, OTHER, PICKLED, SINGLE, Numbers, read_arrays, read_opened
from leakage.data.errors import BROKEN, UpdateFileError
from leakage.data.process_limits import limit_process
from leakage.spec.update_card import FILE, UpdateCard

ARCHIVE = "update.zip"
PARTS = ("before", "after", "difference", "gradient")
MAX_CARD = 64 * 1024  # bytes
MAX_MEMBERS = 1000  # of a .zip
PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".bin")
CPU_SECONDS, MEMORY = 30, 3 * 2**30  # of the checking process: two files of 200 MB, twice in memory, beside numpy
REFUSED = 3  # exit status if the update is not allowed; the sentence is then on stdout
CARD_TOO_LARGE = f"{FILE} has over {MAX_CARD // 1024} kB. Leave out what docs/import_updates.md does not name."
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
        return _read_archive(folder / ARCHIVE)
    paths = {path.name: path for path in folder.iterdir() if path.is_file()}
    chosen = _chosen(paths)
    numbers = {part: read_arrays(paths[name]) if name else None for part, name in chosen.items()}
    return RecordedUpdate(**numbers, card=read_card(folder / FILE))


def _read_archive(path: Path) -> RecordedUpdate:
    """Read an update from a .zip, whose files may lie in one folder of it. Nothing is unpacked to disk. Raises UpdateFileError."""
    try:
        with zipfile.ZipFile(path) as archive:
            if len(archive.infolist()) > MAX_MEMBERS:
                raise UpdateFileError(f"{ARCHIVE} has over {MAX_MEMBERS} files. Pack the files of one update alone.")
            found = [member for member in archive.infolist() if Path(member.filename).stem in PARTS or Path(member.filename).name == FILE]
            members = {Path(member.filename).name: member for member in found}
            if len(members) < len(found) or sum(member.file_size for member in found) > 2 * MAX_BYTES + MAX_CARD:
                raise UpdateFileError(f"{ARCHIVE} has several updates. Pack the files of one of them.")
            if FILE in members and members[FILE].file_size > MAX_CARD:
                raise UpdateFileError(CARD_TOO_LARGE)
            chosen = _chosen(members)
            numbers = {
                part: read_opened(name, BytesIO(archive.read(members[name])), members[name].file_size) if name else None
                for part, name in chosen.items()
            }
            card = parse_card(archive.read(members[FILE])) if FILE in members else UpdateCard()
    except UpdateFileError:
        raise
    except (*BROKEN, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise UpdateFileError(f"{ARCHIVE} cannot be read ({' '.join(str(error).split())[:100]}). Pack it again.") from None
    return RecordedUpdate(**numbers, card=card)


def read_card(path: Path) -> UpdateCard:
    """Read the card of an update; without a file nothing is known. Raises UpdateFileError."""
    if not path.exists():
        return UpdateCard()
    if path.stat().st_size > MAX_CARD:
        raise UpdateFileError(CARD_TOO_LARGE)
    return parse_card(path.read_bytes())


def parse_card(text: bytes) -> UpdateCard:
    """Read a card from JSON. Raises UpdateFileError."""
    try:
        return UpdateCard.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where, given = ".".join(str(part) for part in first["loc"] if part != "value"), str(first.get("input"))[:60]
        if first["type"] == "extra_forbidden":
            raise UpdateFileError(f"{FILE}: {where}: there is no such field. See docs/import_updates.md.") from None
        raise UpdateFileError(f"{FILE}: {where}: {first['msg'][:200]}; given was {given}. See docs/import_updates.md.") from None


def _chosen(names: Iterable[str]) -> dict[str, str]:
    """Return the name of the file of each part of an update, "" where there is none. Raises UpdateFileError where it is incomplete."""
    found = {part: _name_of(sorted(names), part) for part in PARTS}
    if not (found["difference"] or found["gradient"] or (found["before"] and found["after"])):
        present = ", ".join(filter(None, found.values())) or "none of these files"
        raise UpdateFileError(f"The update has {present}. {EXPECTED}")
    if sum(bool(found[part]) for part in ("after", "difference", "gradient")) > 1:
        raise UpdateFileError(f"The update has more than one of after, difference and gradient. {EXPECTED}")
    return found


def _name_of(names: Sequence[str], part: str) -> str:
    """Return the name of the file of a part; "" if there is none. Raises UpdateFileError where it is of another kind, or there are two."""
    files = [name for name in names if Path(name).stem == part]
    known = [name for name in files if Path(name).suffix in KINDS]
    if len(known) > 1:
        raise UpdateFileError(f"The update has {known[0]} and {known[1]}. Keep one of them.")
    if files and not known:
        if Path(files[0]).suffix in PICKLES:
            raise UpdateFileError(PICKLED.format(files[0]))
        raise UpdateFileError(SINGLE.format(files[0]) if Path(files[0]).suffix == ".npy" else OTHER.format(files[0], ADAPTERS))
    return known[0] if known else ""


def main() -> int:
    """Check the folder that the command names, write its card (JSON) or why it is refused to stdout, and return the exit status."""
    limit_process(CPU_SECONDS, MEMORY)
    try:
        card = read_update(Path(sys.argv[1])).card
    except UpdateFileError as error:
        sys.stdout.write(str(error))
        return REFUSED
    sys.stdout.write(card.model_dump_json(exclude_defaults=True))
    return 0


if __name__ == "__main__":
    os.nice(5)  # pages have priority
    sys.exit(main())
