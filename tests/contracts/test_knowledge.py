"""No page names a plug-in by its id: texts about a plug-in are in the plug-in, prepared experiments in assets/prepared.json."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_problems import CATALOG

from leakage.settings import ROOT
from leakage.spec.catalog import AttackEntry, DefenseEntry, ProtocolEntry
from leakage.spec.prepared import prepared
from leakage.spec.tasks import InverterTraining

FOLDERS = ("pages", "leakage/ui", "leakage/web", "leakage/results")
FILES = [ROOT / "app.py", ROOT / "leakage/runs/service.py", *(file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py")))]
IDS = {entry.id for entry in CATALOG.entries}
KEYED = re.compile(r"[\w.:;=&?/,+@-]+")  # an address, or the key of a widget: no blanks


def named(text: str) -> Iterator[tuple[int, str]]:
    """The ids of plug-ins among the string constants of a source text, with their lines: alone, or in a key or an address.

    Docstrings may name them: they are for readers.
    """
    tree = ast.parse(text)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    first = [node.body[0] for node in ast.walk(tree) if isinstance(node, documented) and node.body]
    docstrings = {id(node.value) for node in first if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings and KEYED.fullmatch(node.value):
            yield from ((node.lineno, word) for word in re.findall(r"\w+", node.value) if word in IDS)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_page_knows_a_plugin_by_its_id(file: Path) -> None:
    found = [f"line {line}: {word}" for line, word in named(file.read_text())]
    assert not found, "let the plug-in say it (leakage/engine/core.py), or prepare it in assets/prepared.json"


def test_a_planted_id_is_found() -> None:
    for line in (
        'if experiment.protocol.id == "fedsgd": pass',
        'LOOKS = {("gaussian_noise", "scale"): 1}',
        'link = f"/?{model}&attack=inverting_gradients"',
        'key = "dlg_admm.repair_state"',
        'match name:\n    case "lenet": pass',
    ):
        assert len(list(named(f'"""A file about lenet."""\n{line}\n'))) == 1, line
    assert not list(named('"""lenet"""\n\ndef f():\n    """lenet"""\n    return "LeNet learns MNIST", "a lenet here", "lenets"\n'))


# ---------------------------------------------------------------- what is prepared


def test_every_prepared_experiment_can_be_run() -> None:
    data = prepared()
    deployed = data.compare.deployed
    filtered = [deployed.experiment.model_copy(update={"defenses": (part,)}) for part in deployed.presets.values()]
    for experiment in [data.compare.experiment, *filtered, *(one for preset in data.presets for one in preset.pair)]:
        experiment.resolve(CATALOG)
    names = [preset.name for preset in data.presets]
    assert len(set(names)) == len(names)


def test_whatever_else_is_prepared_names_plugins_that_are_here() -> None:
    data = prepared()
    parts = [
        ("model", data.verify.network),
        ("attack", data.verify.equations),
        ("attack", data.verify.jointly),
        *(("attack", one.attack) for one in data.verify.searches),
    ]
    for name in type(data.what_ifs).model_fields:
        change = getattr(data.what_ifs, name).change
        parts += [(kind, part) for kind in ("model", "protocol", "attack") if (part := getattr(change, kind))]
        parts += [("protocol", change.aggregation)] * bool(change.aggregation) + [("defense", part) for part in change.defenses or ()]
    for kind, part in parts:
        CATALOG.of(kind).get(part.id).resolve(part.fields)
    attacks = [*data.compare.attacks, data.compare.accuracy_cost_attack, data.training.attack, *data.training.attack_of.values()]
    assert {entry.id for entry in CATALOG.attacks} >= set(attacks)
    assert {entry.id for entry in CATALOG.models} >= set(data.training.attack_of)
    for fields in data.training.attackers.values():
        InverterTraining.model_validate(fields)
    assert {"none", *(entry.id for entry in CATALOG.defenses)} >= {*data.compare.protections, data.compare.answered}
    protection, _, number = data.compare.swept.partition(".")
    assert number in [field.name for field in CATALOG.defenses.get(protection).fields]
    activations = [field.options for field in CATALOG.models.get(data.verify.network.id).fields if field.name == "activation"]
    assert {one.activation for one in data.verify.searches} <= set(activations[0])


@pytest.mark.parametrize("entry", list(CATALOG.attacks), ids=lambda entry: entry.id)
def test_the_mistakes_of_an_attack_are_switches_that_it_has(entry: AttackEntry) -> None:
    fields = {field.name: field for field in entry.fields}
    assert all(fields[name].type == "bool" for name in entry.mistakes)


@pytest.mark.parametrize("entry", list(CATALOG.defenses), ids=lambda entry: entry.id)
def test_the_published_strength_of_a_defense_is_a_number_that_it_has(entry: DefenseEntry) -> None:
    fields = {field.name: field for field in entry.fields}
    if entry.published and entry.published.field:
        field, (begins, sure) = fields[entry.published.field], entry.published.ends
        assert field.low <= begins < sure <= field.high


@pytest.mark.parametrize("entry", list(CATALOG.protocols), ids=lambda entry: entry.id)
def test_the_words_for_what_a_protocol_sends_can_be_filled_in(entry: ProtocolEntry) -> None:
    assert set(re.findall(r"{(\w*)}", entry.travels.imitated)) <= {"steps"}
    assert not entry.sends_gradient or entry.travels.imitated


def test_words_about_attackers_know_no_plugin_by_its_id() -> None:
    for name in ("threat_model", "words"):
        assert list(named((ROOT / f"leakage/spec/{name}.py").read_text())) == []


COMPUTED = ("leakage/ui/components/attack/", "leakage/ui/components/own/own_choices.js")  # a browser's own attacks, which have no catalog
SHOWN = [
    file
    for folder in FOLDERS
    for end in ("jinja", "html", "js", "css")
    for file in sorted((ROOT / folder).rglob(f"*.{end}"))
    if not file.relative_to(ROOT).as_posix().startswith(COMPUTED)
]


def ids_in(text: str) -> list[str]:
    """The ids of plug-ins that stand in a text as words of their own."""
    return [id for id in IDS if re.search(rf"(?<![\w-]){id}(?![\w-])", text)]


@pytest.mark.parametrize("file", SHOWN, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_template_and_no_script_names_a_plugin_by_its_id(file: Path) -> None:
    assert ids_in(file.read_text()) == []


def test_an_id_in_an_address_of_a_template_is_seen() -> None:
    assert ids_in('<a href="/?run={{ line.runs }}&amp;attack=inverting_gradients">') == ["inverting_gradients"]
    assert ids_in("an attack-idlg of its own") == []
