"""A declaration of a plug-in is written once, and reaches plug-ins, the catalog, its file and the page of plug-ins."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from leakage.settings import ROOT
from leakage.spec.declarations import DECLARED, explanations
from leakage.spec.fields import KINDS

PLANTED = '    planted: str = "as most"\n    """What this test planted."""\n'
PLACES = {  # kind of plug-in -> the class that gets a declaration
    "attack": "AttackDeclarations",
    "defense": "DefenseDeclarations",
    "protocol": "ProtocolDeclarations",
    "model": "ModelDeclarations",
    "server": "ServerDeclarations",
    "check": "CheckDeclarations",
    "strategy": "StrategyDeclarations",
}
SET = {  # a plug-in that sets it: file, and what is put in place of what
    "attack": ("attacks/dlg.py", "    short = ", '    planted = "set"\n    short = '),
    "defense": ("defenses/soteria.py", "    short = ", '    planted = "set"\n    short = '),
    "protocol": ("protocols/fedavg.py", "    short = ", '    planted = "set"\n    short = '),
    "model": ("models/lenet.py", "    short = ", '    planted = "set"\n    short = '),
    "server": ("servers/traps.py", "    short = ", '    planted = "set"\n    short = '),
    "check": ("checks/new_layers.py", "    short = ", '    planted = "set"\n    short = '),
    "strategy": ("defenses/soteria.py", "AdaptiveStrategy(self.imitation, ", 'AdaptiveStrategy(self.imitation, planted="set", surrogate='),
}
READ = """
import json, sys
from pathlib import Path
from leakage.__main__ import plugins_page
from leakage.spec import catalog
from leakage.workers import plugin_catalog

file = Path(sys.argv[1])
known = plugin_catalog.write(file)
assert catalog.read(file) == known
found = {kind: {entry.id: entry.planted for entry in known.of(kind)} for kind in catalog.KINDS}
found["strategy"] = {entry.id: {name: own.planted for name, own in entry.strategies.items()} for entry in known.defenses}
print(json.dumps({"entries": found, "page": plugins_page(known).count("| `planted` | `'as most'` | What this test planted. |")}))
"""


def edit(file: Path, old: str, new: str) -> None:
    """Put `new` in the first place of `old`, which must be there."""
    text = file.read_text()
    assert old in text, file
    file.write_text(text.replace(old, new, 1))


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """What a copy of the package says, in which every kind got a declaration in one place, and one plug-in of each kind sets it."""
    home = tmp_path_factory.mktemp("planted")
    shutil.copytree(ROOT / "leakage", home / "leakage", ignore=shutil.ignore_patterns("__pycache__"))
    for name in PLACES.values():
        file = home / "leakage/spec/declarations.py"
        body = file.read_text().partition(f"class {name}")[2]
        last = list(explanations(next(owner for owner in DECLARED.values() if owner.__name__ == name)).values())[-1]
        assert f'    """{last}"""\n' in body
        edit(file, f'    """{last}"""\n', f'    """{last}"""\n{PLANTED}')
    for path, old, new in SET.values():
        edit(home / "leakage" / path, old, new)
    command = [sys.executable, "-c", READ, str(home / "catalog.json")]
    environment = {**os.environ, "PYTHONPATH": str(home), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "file": json.loads((home / "catalog.json").read_text())}


@pytest.mark.parametrize("kind", KINDS)
def test_a_declaration_in_one_place_reaches_the_entries_and_the_catalogs_file(read: Mapping[str, Any], kind: str) -> None:
    folder, _, name = SET[kind][0].removesuffix(".py").partition("/")
    expected = {id: "set" if id == name else "as most" for id in read["entries"][kind]}
    assert read["entries"][kind] == expected
    assert {entry["id"]: entry["planted"] for entry in read["file"][folder]} == expected
    assert expected[name] == "set"


def test_a_declaration_of_strategies_in_one_place_reaches_those_of_every_defense(read: Mapping[str, Any]) -> None:
    entries = read["entries"]["strategy"]
    assert entries["soteria"] == {"same columns": "set", "without that layer": "as most"}
    assert {planted for id, own in entries.items() if id != "soteria" for planted in own.values()} == {"as most"}
    written = {entry["id"]: {name: own["planted"] for name, own in entry["strategies"].items()} for entry in read["file"]["defenses"]}
    assert written == entries


def test_a_declaration_in_one_place_reaches_the_page_of_plugins(read: Mapping[str, Any]) -> None:
    assert read["page"] == len(PLACES)


@pytest.mark.parametrize("owner", DECLARED.values(), ids=lambda owner: owner.__name__)
def test_every_declaration_has_a_docstring_of_its_own(owner: type) -> None:
    declared = [name for name in vars(owner)["__annotations__"] if name != "_"]
    assert list(explanations(owner)) == declared
    assert all(text.endswith(".") for text in explanations(owner).values())
