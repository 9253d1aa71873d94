"""Who may import whom: an allow-list over the syntax trees, relative and inner imports included; and no torch beside the pages."""

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from leakage.settings import ROOT

FOLDERS = ("attacks", "defenses", "protocols", "models", "ui")  # a room each; elsewhere every file is one
ALLOWED = {  # room -> the rooms it may import (a folder may import itself)
    # the web server
    "app": "runs.server ui settings",
    "pages": "ui assumed runs.service runs.store comparison_file spec tasks catalog datasets network rank",
    "ui": "assumed runs.service runs.store comparison measured price spec tasks catalog checkpoints datasets pictures network syntax "
    "success templates rank effort",
    "runs.server": "runs.archive runs.dispatch runs.service runs.stream catalog settings",
    "runs.stream": "runs.database runs.service comparison report report_comparison",
    "runs.service": "runs.database runs.store spec tasks catalog checkpoints backbones settings",
    "runs.archive": "runs.store",
    "runs.store": "runs.database runs.tables runs.thin",
    "runs.tables": "",
    "runs.thin": "",
    "runs.database": "",
    "report": "runs.store pictures",
    "report_comparison": "runs.store arms catalog report report_html",
    "report_html": "arms assumed catalog comparison comparison_file report",
    "arms": "runs.store catalog comparison report spec",
    "assumed": "catalog spec",
    "measured": "catalog comparison price settings spec",
    "comparison": "runs.store assumed catalog datasets pictures price spec",
    "comparison_file": "comparison spec",
    "price": "runs.store catalog settings spec tasks",
    # plain data
    "spec": "catalog checkpoints syntax",
    "tasks": "catalog effort network spec",
    "checkpoints": "datasets settings",
    "catalog": "syntax",
    "settings": "",
    "pictures": "datasets readers",
    "datasets": "readers",
    "readers": "",
    "backbones": "datasets",
    "success": "",
    "privacy": "",
    "network": "",
    "syntax": "network",
    "templates": "network",
    "exact": "network",
    "rank": "exact network",
    "effort": "exact network",
    "fetch": "backbones pictures",
    # processes of their own
    "__main__": "engine.play engine.train engine.trainer runs.archive runs.service runs.attack runs.store runs.worker "
    "fetch pictures settings spec tasks success syntax catalog checkpoints",
    "runs.dispatch": "runs.database runs.service runs.store catalog settings",
    # the bridge to the engine
    "runs.worker": "engine.play engine.timing runs.attack runs.database runs.job runs.ranks runs.service runs.store runs.training "
    "settings spec tasks catalog",
    "runs.attack": "engine.play engine.timing runs.job runs.service runs.store pictures privacy settings spec catalog checkpoints",
    "runs.job": "runs.database runs.pulse runs.service runs.store",
    "runs.training": "engine.train engine.trainer runs.store settings tasks",
    "runs.pulse": "runs.database runs.store",
    "runs.ranks": "engine.measured_rank runs.store tasks",
    # the mathematics; plug-ins come to `play` and `timing` through the catalog
    "engine.play": "engine.core engine.client engine.data engine.metrics engine.observe engine.received engine.referee "
    "engine.setting engine.standards spec",
    "engine.observe": "engine.core engine.chain engine.client engine.setting engine.statistics engine.trained spec",
    "engine.setting": "engine.core engine.client engine.trained spec catalog",
    "engine.statistics": "engine.core",
    "engine.trainer": "engine.core engine.train engine.trained checkpoints settings tasks catalog",
    "engine.train": "engine.client engine.core engine.phone engine.setting engine.trained checkpoints pictures spec tasks",
    "engine.phone": "engine.client engine.core engine.setting tasks",
    "engine.trained": "engine.core checkpoints spec catalog",
    "engine.referee": "engine.core engine.lineup engine.metrics engine.pairing engine.standards engine.verdict engine.views",
    "engine.views": "",
    "engine.standards": "engine.core engine.lineup engine.metrics engine.perceptual spec",
    "engine.lineup": "engine.core engine.metrics engine.perceptual pictures spec",
    "engine.perceptual": "backbones",
    "engine.verdict": "",
    "engine.timing": "engine.client engine.core engine.matching catalog",
    "engine.data": "pictures spec",
    "engine.client": "engine.core",
    "engine.labels": "engine.core",
    "engine.matching": "engine.core",
    "engine.lanes": "engine.client engine.core",
    "engine.metrics": "engine.core",
    "engine.received": "engine.core",
    "engine.pairing": "",
    "engine.chain": "engine.core",
    "engine.equations": "",
    "engine.measured_rank": "engine.equations effort network",
    "engine.core": "engine.normalise engine.plugin",
    "engine.normalise": "",
    "engine.plugin": "syntax",
    # never metrics, play, data: the truth is there
    "attacks": "engine.lanes engine.matching engine.labels engine.statistics engine.chain engine.equations engine.core",
    "defenses": "engine.core engine.client",
    "protocols": "engine.core engine.client",
    "models": "engine.core engine.client network templates",
}
PROMISED = {(room, "engine.client") for room in ("protocols", "models")}  # to authors of plug-ins; not used yet
WEB = ("app", "pages", "ui", "runs.server", "report")  # what the web process starts from
HEAVY = ("torch", "torchvision", "safetensors", "lpips", "opacus", "ray", "skimage", "sklearn", "scipy")  # what must not get there
FOREIGN = {  # package -> the rooms that may import it
    "streamlit": "app pages ui",
    "sqlite3": "runs.database",
    **dict.fromkeys(HEAVY, "__main__ runs.attack runs.job runs.worker runs.training runs.pulse attacks defenses protocols models engine."),
    "opacus": "privacy",
}
DYNAMIC = "catalog fetch"  # may import by a name that is computed: plug-ins, torchvision's data sets


# ---------------------------------------------------------------- the checker


def files(root: Path) -> dict[str, Path]:
    """Module name -> file, of everything of ours."""
    found = [root / "app.py", *root.glob("pages/*.py"), *root.glob("leakage/**/*.py")]
    names = {file: ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__") for file in found}
    return {name: file for file, name in names.items()}


def room_of(module: str) -> str:
    parts = module.removeprefix("leakage.").split(".")
    return parts[0] if parts[0] in (*FOLDERS, "pages") else ".".join(parts)


def imports(module: str, file: Path) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of every import at any depth; "?" for one whose name is computed."""
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            start = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{start}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            yield node.lineno, "?"


def edges(root: Path) -> Iterator[tuple[str, int, str, str]]:
    """(importing module, line, room or package that is imported, "ours" or "foreign")."""
    ours = files(root)
    for module, file in ours.items():
        for line, name in imports(module, file):
            if name.split(".")[0] not in ("leakage", "pages", "app"):
                yield module, line, name.split(".")[0], "foreign"
                continue
            while name not in ours and "." in name:  # an object of a module
                name = name.rpartition(".")[0]
            yield module, line, room_of(name), "ours"


def violations(root: Path) -> list[str]:
    """Every import that the tables do not allow."""
    found = []
    for module, line, target, kind in edges(root):
        room = room_of(module)
        if kind == "ours":
            good = target in ALLOWED.get(room, "").split() or (target == room and room in FOLDERS)
        elif target == "?":
            good = room in DYNAMIC.split()
        else:
            good = target not in FOREIGN or any(
                room == one or (one.endswith(".") and room.startswith(one)) for one in FOREIGN[target].split()
            )
        if not good:
            found.append(f"{module}:{line} imports {target}")
    return sorted(found)


def heavy_in_the_web(root: Path) -> list[str]:
    """Heavy packages in any module that the web process loads, however many imports away."""
    all_edges, todo, web = list(edges(root)), list(WEB), set()
    while todo:
        room = todo.pop()
        web.add(room)
        todo += [target for module, _, target, kind in all_edges if kind == "ours" and room_of(module) == room and target not in web]
    return [f"{module}:{line} imports {target}" for module, line, target, _ in all_edges if room_of(module) in web and target in HEAVY]


# ---------------------------------------------------------------- the house as it stands


def test_every_import_is_on_the_list() -> None:
    assert violations(ROOT) == []


def test_every_room_is_on_the_list_and_every_entry_is_used() -> None:
    rooms = {room_of(module) for module, file in files(ROOT).items() if file.name != "__init__.py"}
    assert rooms == set(ALLOWED)
    used = {(room_of(module), target) for module, _, target, kind in edges(ROOT) if kind == "ours"}
    allowed = {(room, target) for room, targets in ALLOWED.items() for target in targets.split()}
    assert allowed - used == PROMISED


def test_nothing_heavy_is_imported_on_the_way_to_a_page() -> None:
    assert heavy_in_the_web(ROOT) == []


def test_the_web_process_holds_no_torch_when_all_its_rooms_are_loaded() -> None:
    rooms = [name for name in files(ROOT) if name.startswith("leakage.ui") or name in ("leakage.runs.server", "leakage.report_comparison")]
    script = f"import importlib, sys; [importlib.import_module(name) for name in {rooms}]; print(*sorted(set({HEAVY}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
    assert len(rooms) > 8


# ---------------------------------------------------------------- planted violations are found


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Our modules, to be spoilt."""
    for name in ("leakage", "pages"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "static"))
    shutil.copy(ROOT / "app.py", tmp_path)
    return tmp_path


PLANTED = {
    "absolute": ("leakage/attacks/dlg.py", "from leakage.engine.play import observe", "leakage.attacks.dlg:1 imports engine.play"),
    "a module from its package": (
        "leakage/attacks/dlg.py",
        "from leakage.engine import metrics",
        "leakage.attacks.dlg:1 imports engine.metrics",
    ),
    "relative": ("leakage/attacks/idlg.py", "from ..engine.metrics import psnr", "leakage.attacks.idlg:1 imports engine.metrics"),
    "relative to the root": ("leakage/defenses/pruning.py", "from .. import spec", "leakage.defenses.pruning:1 imports spec"),
    "relative in a package": ("leakage/runs/__init__.py", "from . import store", "leakage.runs:1 imports runs.store"),
    "under another name": ("leakage/engine/core.py", "import leakage.runs.store as shelf", "leakage.engine.core:1 imports runs.store"),
    "the whole": ("leakage/engine/labels.py", "import leakage", "leakage.engine.labels:1 imports leakage"),
    "inside a function": ("pages/lab.py", "def f():\n    import leakage.engine.core", "pages.lab:2 imports engine.core"),
    "a page": ("leakage/ui/forms.py", "from pages import lab", "leakage.ui.forms:1 imports pages"),
    "torch beside the pages": ("leakage/report.py", "import torch.nn.functional as F", "leakage.report:1 imports torch"),
    "streamlit in the service": ("leakage/runs/service.py", "import streamlit as st", "leakage.runs.service:1 imports streamlit"),
    "sql elsewhere": ("leakage/runs/dispatch.py", "from sqlite3 import connect", "leakage.runs.dispatch:1 imports sqlite3"),
    "a computed name": (
        "leakage/attacks/dlg.py",
        "import importlib\nimportlib.import_module('leakage.engine.data')",
        "leakage.attacks.dlg:2 imports ?",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_violation_is_found(name: str, copy: Path) -> None:
    file, text, sentence = PLANTED[name]
    path, before = copy / file, violations(copy)
    path.write_text(f"{text}\n{path.read_text()}")
    assert set(violations(copy)) - set(before) == {sentence}


def test_torch_three_imports_away_from_a_page_is_found(copy: Path) -> None:
    for file, text in (("leakage/catalog.py", "from leakage import fresh"), ("leakage/fresh.py", '"""New."""\nfrom torch import nn')):
        path = copy / file
        path.write_text(f"{text}\n{path.read_text() if path.exists() else ''}")
    assert heavy_in_the_web(copy) == ["leakage.fresh:2 imports torch"]
