"""Files inside installed packages, found without the import of the package, which can take seconds."""

from importlib.util import find_spec
from pathlib import Path

from leakage.data.errors import PictureError


def package_file(package: str, file: str) -> Path:
    """Return the path of a file inside an installed package. Raises PictureError if it is missing."""
    spec = find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or ():
        if (Path(folder) / file).is_file():
            return Path(folder) / file
    raise PictureError(f"The gallery needs {file} of the package {package}, which is missing: run `pip install -r requirements.txt`.")
