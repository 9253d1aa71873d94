"""House rules: plug-ins are frozen, flat and documented; every file says what it is, and stays short."""

import ast
import re
from collections import Counter
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest
from small_problems import CATALOG

from leakage.engine.loading import load
from leakage.settings import ROOT
from leakage.spec import catalog
from leakage.spec.words import GROUPS

PLUGINS = pytest.mark.parametrize("entry", CATALOG.entries, ids=lambda entry: f"{entry.kind}-{entry.id}")
OURS = [ROOT / "app.py", *sorted(ROOT.glob("pages/*.py")), *sorted(ROOT.glob("leakage/**/*.py"))]
EVERY_FILE = pytest.mark.parametrize("file", [*OURS, *sorted(ROOT.glob("tests/**/*.py"))], ids=lambda file: str(file.relative_to(ROOT)))


def is_sentence(text: str) -> bool:
    return text == text.strip() and text[:1].upper() == text[:1] and text.endswith((".", "?")) and " " in text


# ---------------------------------------------------------------- plug-ins


@PLUGINS
def test_a_plugin_is_a_frozen_value_with_fields_by_name(entry: catalog.Entry) -> None:
    plugin = load(entry.kind, entry.id)
    value = plugin()
    with pytest.raises(FrozenInstanceError):
        value.anything = 1
    assert value == plugin()
    with pytest.raises(TypeError):
        plugin(*[field.default for field in fields(plugin)], 0)
    if fields(plugin):
        with pytest.raises(TypeError):
            plugin(fields(plugin)[0].default)


@PLUGINS
def test_a_plugins_fields_are_flat_with_a_default_inside_the_range_and_a_sentence(entry: catalog.Entry) -> None:
    for field in entry.fields:
        assert field.type in ("int", "float", "bool", "str"), field.name
        assert is_sentence(field.help), field.help
        assert field.check(field.default, entry.id) == field.default
        assert (field.low is None) == (field.type in ("bool", "str"))
        assert bool(field.options) + bool(field.syntax) == (field.type == "str")


@PLUGINS
def test_a_plugin_is_documented_for_a_student_and_for_a_beginner_and_names_its_paper(entry: catalog.Entry) -> None:
    plugin = load(entry.kind, entry.id)
    assert plugin.__doc__
    assert not plugin.__doc__.startswith(f"{plugin.__name__}(")  # what dataclass writes where there is none
    assert entry.title
    assert len(entry.short) <= 22, "tables, chips and titles of runs have no room for more"
    assert not set(entry.title) & set(",:"), "a title is listed among others, and what it does is told by itself"
    assert not (groups := GROUPS[entry.kind]) or entry in CATALOG.aggregations or entry.title.startswith((*groups, "Your own"))
    assert is_sentence(entry.plain)
    assert is_sentence(entry.hint)
    assert entry.source.startswith("https://")


@PLUGINS
def test_a_plugins_presets_are_settings_that_it_allows(entry: catalog.Entry) -> None:
    for name, preset in entry.presets.items():
        assert name
        assert preset
        assert entry.resolve(preset) == entry.resolve({}) | preset


@pytest.mark.parametrize(
    ("kind", "name", "given", "sentence"),
    [
        ("attack", "dlg", {"steps": 0}, "DLG.steps: allowed is a whole number from 1 to 2000, given was 0."),
        ("attack", "dlg", {"steps": 1.5}, "DLG.steps: allowed is a whole number from 1 to 2000, given was 1.5."),
        (
            "attack",
            "inverting_gradients",
            {"step_size": float("nan")},
            "InvertingGradients.step_size: allowed is a number from 0.0001 to 10, given was nan.",
        ),
        ("attack", "inverting_gradients", {"signed": 1}, "InvertingGradients.signed: allowed is true or false, given was 1."),
        ("defense", "pruning", {"fraction": True}, "Pruning.fraction: allowed is a number from 0 to 0.999, given was True."),
        (
            "model",
            "mlp",
            {"activation": "gelu"},
            "MLP.activation: allowed is 'relu' or 'leaky_relu' or 'sigmoid' or 'tanh', given was 'gelu'.",
        ),
    ],
)
def test_a_plugin_refuses_what_lies_outside_its_fields(kind: str, name: str, given: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        load(kind, name)(**given)


# ---------------------------------------------------------------- files


@EVERY_FILE
@pytest.mark.long
def test_a_file_says_in_its_first_line_what_it_is(file: Path) -> None:
    first = ast.parse(file.read_text()).body[0]
    assert first.lineno == 1
    assert isinstance(first, ast.Expr)
    assert isinstance(first.value, ast.Constant)
    line = str(first.value.value).split("\n")[0]
    assert is_sentence(line) or (line.startswith("`") and line.endswith(".")), line


@pytest.mark.parametrize("file", OURS, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_file_stays_short_enough_to_read(file: Path) -> None:
    limit = 150 if file.parent.name == "pages" else 300
    assert len(file.read_text().splitlines()) <= limit, "split it"


@pytest.mark.parametrize("file", OURS, ids=lambda file: str(file.relative_to(ROOT)))
@pytest.mark.long
def test_nothing_is_printed_and_every_error_is_named(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"line {node.lineno}: use a logger"
        if isinstance(node, ast.ExceptHandler):
            broad = node.type is None or (isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException"))
            again = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None  # cleans up and passes it on
            survives = file.name in (
                "worker.py",
                "dispatcher_watch.py",
                "stream.py",
                "ray_dispatcher.py",
                "ray_worker.py",
                "remote_calls.py",
            )
            assert not broad or again or survives, f"line {node.lineno}: only workers, far ones too, watch and poller survive any error"


# ---------------------------------------------------------------- folders and names

PACKAGE = ROOT / "leakage"
MODULES = [file for file in sorted(PACKAGE.rglob("*.py")) if not file.name.startswith("_")]


def twice(names: list[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def test_a_module_lies_in_the_folder_of_its_topic() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= 4  # with leakage.testing, which tests of others import
    assert len([path for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"]) <= 22


def test_no_two_modules_share_a_name() -> None:
    """So that "look into verdict.py" is all one has to say. What begins with an underscore belongs to its folder."""
    folders = [path for path in PACKAGE.rglob("*") if (path / "__init__.py").exists()]
    assert twice([file.stem for file in MODULES] + [folder.name for folder in folders]) == []


def test_no_two_classes_share_a_name() -> None:
    found = [
        node.name for file in PACKAGE.rglob("*.py") for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ClassDef)
    ]
    assert twice([name for name in found if not name.startswith("_")]) == []


@pytest.mark.parametrize("file", sorted(ROOT.glob("tests/**/*.py")), ids=lambda file: str(file.relative_to(ROOT)))
@pytest.mark.long
def test_a_test_takes_nothing_from_another_test(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        modules += [one.name for one in node.names] if isinstance(node, ast.Import) else []
        assert not any(name.startswith(("test_", "conftest")) for name in modules), "share it in a file of tests/support/"
