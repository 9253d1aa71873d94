"""The JavaScript modules of the components, and how the server sends them: each version in a folder that browsers may cache."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from posixpath import dirname, join, normpath

from leakage.frontend.script_text import compact

FOLDER = Path(__file__).resolve().parent.parent / "ui" / "components"
ROUTE = "/api/scripts"
STUB = "stub.js"  # the script that Streamlit sends
IMPORT = re.compile(r"^import [^;']*'([^']+)';$", re.MULTILINE)
RETRY = re.compile(r"~\d{1,4}$")  # stub.js asks for the same folder under another name after a failure


@dataclass(frozen=True)
class Scripts:
    """All JavaScript modules, by their paths below a folder."""

    files: dict[str, bytes]
    """The modules as they are written, with their comments."""

    @cached_property
    def sent(self) -> dict[str, bytes]:
        """The modules as a browser gets them, without comments and needless spaces."""
        return {name: compact(content.decode()).encode() for name, content in self.files.items()}

    @cached_property
    def version(self) -> str:
        """A hash over the paths and contents that are sent."""
        digest = hashlib.sha256()
        for name, content in self.sent.items():
            digest.update(f"{name} {len(content)}\n".encode() + content)
        return digest.hexdigest()[:16]

    def folder(self, base: str) -> str:
        """Return the address of the modules' folder, without the host. `base` is the prefix of all routes, such as `/gle`, or empty."""
        return f"{base}{ROUTE}/{self.version}"

    def find(self, version: str, name: str) -> bytes | None:
        """Return a module as it is sent; None if `version` is not that of these scripts, or if there is no such module."""
        return self.sent.get(name) if RETRY.sub("", version) == self.version else None

    def closure(self, name: str) -> list[str]:
        """Return the name of a module and of all modules that it imports, directly or not; raise KeyError if a module is missing."""
        found = [name]
        for module in found:
            imported = (join(dirname(module), path) for path in IMPORT.findall(self.files[module].decode()))
            found += dict.fromkeys(path for relative in imported if (path := normpath(relative)) not in found)
        return found


def read(folder: Path) -> Scripts:
    """Read all .js files in a folder and its subfolders, except stub.js, which Streamlit sends."""
    paths = sorted(path for path in folder.rglob("*.js") if path.name != STUB)
    return Scripts({path.relative_to(folder).as_posix(): path.read_bytes() for path in paths})


@cache
def scripts() -> Scripts:
    """Return the scripts of this program, read once per process, so that a page gets the version it was built for while files change."""
    return read(FOLDER)


def stub(base: str, name: str) -> str:
    """Return the script of a component for Streamlit, which imports the module `name` and all that it needs from the server."""
    text = (FOLDER / STUB).read_text(encoding="utf-8")
    return text.replace("__FOLDER__", scripts().folder(base)).replace("__NAMES__", " ".join(scripts().closure(name)))
