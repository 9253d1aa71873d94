"""Write the API's documentation from its docstrings, as web pages: python scripts/api_docs.py [docs/api]."""

import sys
from pathlib import Path

import pdoc

ENGINE = ("core", "protocol", "model", "observation", "strategy", "plugin")
PARTS = ("leakage.api", "leakage.auditing", *(f"leakage.engine.{name}" for name in ENGINE), "leakage.spec.declarations")
HERE = Path(__file__).parent.parent


def write(folder: Path) -> None:
    """Write a page for every part, and an index."""
    pdoc.render.configure(docformat="google", footer_text="Gradient Leakage Explorer")
    pdoc.pdoc(*PARTS, output_directory=folder)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "docs" / "api"
    write(target)
    print(f"Open {target / 'index.html'} in a browser.")
