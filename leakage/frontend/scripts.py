"""The JavaScript modules of the components, as our route serves them: each version in a folder of its own, which browsers may keep."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from posixpath import dirname, join, normpath

FOLDER = Path(__file__).resolve().parent.parent / "ui" / "components"
ROUTE = "/api/scripts"
STUB = "stub.js"  # the script that Streamlit itself gets
IMPORT = re.compile(r"^import [^;']*'([^']+)';$", re.MULTILINE)
RETRY = re.compile(r"~\d{1,4}$")  # stub.js asks for the same folder under another name after a failure


@dataclass(frozen=True)
class Scripts:
    """All modules by their names below a folder, and a hash over names and contents."""

    files: dict[str, bytes]
    version: str

    def folder(self, base: str) -> str:
        """The address below which they lie, without the host. `base`: the prefix of our routes, such as `/gle`, or nothing."""
        return f"{base}{ROUTE}/{self.version}"

    def find(self, version: str, name: str) -> bytes | None:
        """One module of this version; None for anything else."""
        return self.files.get(name) if RETRY.sub("", version) == self.version else None

    def closure(self, name: str) -> list[str]:
        """A module, and after it all that it imports, however many imports away. Raises KeyError when one is not there."""
        found = [name]
        for one in found:
            asked = (join(dirname(one), named) for named in IMPORT.findall(self.files[one].decode()))
            found += dict.fromkeys(named for path in asked if (named := normpath(path)) not in found)
        return found


def read(folder: Path) -> Scripts:
    """The scripts in a folder, without the stub."""
    paths = sorted(path for path in folder.rglob("*.js") if path.name != STUB)
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return Scripts(files, digest.hexdigest()[:16])


@cache
def scripts() -> Scripts:
    """Ours, read once per process: what a page was told of stays what it gets, also while files are replaced."""
    return read(FOLDER)


def stub(base: str, name: str) -> str:
    """The script of a component for Streamlit, which imports the module `name` and all that it needs from our route."""
    text = (FOLDER / STUB).read_text(encoding="utf-8")
    return text.replace("__FOLDER__", scripts().folder(base)).replace("__NAMES__", " ".join(scripts().closure(name)))
