"""Files inside installed packages, found without importing these: that takes seconds."""

from importlib.util import find_spec
from pathlib import Path

from leakage.data.errors import PictureError


def package_file(package: str, file: str) -> Path:
    """The path of a file inside an installed package. Raises PictureError."""
    spec = find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or ():
        if (Path(folder) / file).is_file():
            return Path(folder) / file
    raise PictureError(f"The gallery needs {file} of the package {package}, which is missing: run `pip install -r requirements.txt`.")
