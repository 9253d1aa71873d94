"""The import contracts in pyproject.toml hold and find planted faults; and tests of what import-linter cannot see."""

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from leakage.settings import ROOT

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
HEAVY = {"torch", "torchvision", "safetensors", "lpips", "opacus", "ray", "skimage", "sklearn", "scipy"}
PAGES = ["app.py", *(f"pages/{file.name}" for file in sorted((ROOT / "pages").glob("*.py")))]
LIGHT = ("ui", "runs", "results", "frontend", "spec", "networks", "data")  # what a page may use: contracts keep torch out of all of it


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """What `make check` says of the imports below `folder`."""
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"]
    wide = {**os.environ, "COLUMNS": "300", "NO_COLOR": "1"}
    return subprocess.run(command, cwd=folder, env=wide, capture_output=True, text=True, timeout=240, check=False)


def imports(file: Path) -> Iterator[str]:
    """The full name of every import of a file, at any depth."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name}:{node.lineno}: a page is no package"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_the_contracts_hold() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout
    assert f"Contracts: {len(CONTRACTS)} kept, 0 broken." in done.stdout


def test_there_are_few_enough_contracts_to_read() -> None:
    assert len(CONTRACTS) <= 20


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Of the folders of `ui` only this is asked: their siblings may know each other."""
    graph = grimp.build_graph("leakage", cache_dir=None)
    TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}).prepare()  # raises CycleError


# ---------------------------------------------------------------- planted violations are found

PLANTED = {
    "an attack that imports its judge": ({"attacks/idlg.py": "from ..evaluation import metrics"}, "Attacks never import evaluation"),
    "an attack that reaches its judge through a helper": (
        {"attacks/_rows.py": "from leakage.engine import fresh", "engine/fresh.py": "import leakage.evaluation.metrics"},
        "Attacks never import evaluation",
    ),
    "the engine asking the store": ({"engine/labels.py": "import leakage.runs.store as shelf"}, "The engine and its plug-ins take objects"),
    "an attack that fetches its generator itself": (
        {"attacks/ggl.py": "from leakage.data.generators import find_card"},
        "The engine and its plug-ins take objects",
    ),
    "the engine that fetches a trained attacker itself": (
        {"engine/inverter.py": "import leakage.data.inverters"},
        "The engine and its plug-ins take objects",
    ),
    "inside a function": (
        {"evaluation/play.py": "def f():\n    from leakage.spec.experiment import Experiment"},
        "Evaluation and the API are libraries",
    ),
    "torch three imports away from a page": (
        {"spec/syntax.py": "from leakage.networks import fresh", "networks/fresh.py": "from torch import nn"},
        "The web process and the dispatcher import no torch",
    ),
    "streamlit in the service": ({"runs/service.py": "import streamlit as st"}, "Only ui imports streamlit"),
    "a widget that calls the engine": (
        {"ui/lab/threat_model_table.py": "import leakage.engine.core"},
        "Only the workers turn an Experiment",
    ),
    "another door to the database": ({"workers/dispatcher.py": "from sqlite3 import connect"}, "Only runs.connections opens the database"),
    "an adapter that asks for the settings": (
        {"adapters/flower.py": "def f():\n    from leakage.settings import settings"},
        "Adapters run in a client's process",
    ),
    "a folder that nobody placed": ({"utils/__init__.py": ""}, "A folder imports only folders below it"),
}


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.long
def test_a_planted_violation_is_found(name: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "leakage", tmp_path / "leakage", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    planted, sentence = PLANTED[name]
    for file, text in planted.items():
        path = tmp_path / "leakage" / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{text}\n{path.read_text() if path.exists() else ''}")
    done = lint(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith(sentence) and " BROKEN" in line], done.stdout


# ---------------------------------------------------------------- what import-linter cannot see


@pytest.mark.parametrize("page", PAGES)
def test_a_page_imports_widgets_and_plain_data(page: str) -> None:
    """Pages and app.py are scripts outside the package."""
    ours = tuple(f"leakage.{folder}." for folder in (*LIGHT, *(("web", "settings") if page == "app.py" else ())))
    for name in imports(ROOT / page):
        assert name.startswith((*ours, "streamlit")) or name.split(".")[0] in sys.stdlib_module_names, name


@pytest.mark.long
def test_nothing_imports_a_page() -> None:
    for file in [*ROOT.glob("leakage/**/*.py"), *(ROOT / page for page in PAGES)]:
        assert not any(name.split(".")[0] in ("pages", "app") for name in imports(file)), file


FILES = {"io", "os", "pathlib", "pickle", "safetensors", "shutil", "sqlite3", "tempfile"}
READERS = ("open", "torch.load", "torch.hub.load", "np.load", "load_file", "read_bytes", "read_text", "find_spec")


def reading(text: str) -> list[str]:
    """What in a source text reads a file: what it imports of FILES, and calls of READERS."""
    nodes = list(ast.walk(ast.parse(text)))
    imported = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    imported += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    calls = [ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)]
    return [
        *(name for name in imported if name.split(".")[0] in FILES),
        *(call for call in calls if call in READERS or call.rpartition(".")[2] in READERS),
    ]


@pytest.mark.parametrize("file", sorted((ROOT / "leakage" / "attacks").glob("*.py")), ids=lambda file: file.stem)
def test_no_attack_reads_a_file(file: Path) -> None:
    assert reading(file.read_text()) == []


def test_an_attack_that_reads_a_file_is_found() -> None:
    for line in ("import os", "from pathlib import Path", "torch.load(f)", "open('x')", "FOLDER.read_bytes()", "find_spec('faces')"):
        assert len(reading(f"import torch\nfrom torch import nn\n{line}\n")) == 1, line


def test_only_the_plugins_and_what_fetches_data_sets_are_imported_by_a_computed_name() -> None:
    found = set()
    for file in ROOT.glob("leakage/**/*.py"):
        calls = [ast.unparse(node.func) for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
        if any(call.endswith(("import_module", "__import__")) or call in ("exec", "eval") for call in calls):
            found.add(str(file.relative_to(ROOT / "leakage")))
    assert found == {"engine/loading.py", "data/fetch.py", "auditing/config.py"}  # the last: functions that an audit file names


@pytest.mark.long
def test_the_web_process_holds_no_torch_when_all_its_modules_are_loaded() -> None:
    """Contracts see what our files import; this sees what the packages that they import bring along."""
    files = [file for folder in (*LIGHT, "web") for file in (ROOT / "leakage" / folder).rglob("*.py")]
    modules = [".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for file in files]
    script = f"import importlib, sys; [importlib.import_module(name) for name in {modules}]; print(*sorted({HEAVY} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
    assert len(modules) > 50
