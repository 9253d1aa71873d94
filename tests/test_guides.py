"""The guides: CONTRIBUTING fits one screen and is true of the code, the example of a plug-in runs, every decision has its file."""

import dataclasses
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import leakage
from leakage.engine import core
from leakage.evaluation.baselines import Baselines
from leakage.evaluation.lineup import Lineup
from leakage.evaluation.perceptual import Perceptual
from leakage.evaluation.play import PreparedAttack, Private
from leakage.evaluation.pools import Origin
from leakage.evaluation.referee import Frame
from leakage.evaluation.verdict import Reference
from leakage.settings import ROOT
from leakage.spec.update_card import UpdateCard

MAP = (ROOT / "CONTRIBUTING.md").read_text()
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
DOCS = ROOT / "docs"
GUIDES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(
        DOCS / name
        for name in (
            "audit.md",
            "class-server.md",
            "import_updates.md",
            "installation.md",
            "pages.md",
            "python_api.md",
            "scaling.md",
            "updates.md",
            "write_a_plugin.md",
            "decisions/README.md",
        )
    ),
    *DECISIONS,
]
FOLDER_GUIDES = sorted((ROOT / "leakage").rglob("README.md"))  # what is in a folder, and in which order to read it


def code_words(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", text))


def paths(text: str) -> set[str]:
    """Every path of this project that a text names in code or links to."""
    named = {word for word in code_words(text) if re.fullmatch(r"[\w.-]+(/[\w.-]+)*/?", word) and ("/" in word or "." in word)}
    top = {path.name for path in ROOT.iterdir()}
    return {word for word in named if word.split("/")[0] in top}


@pytest.mark.parametrize("guide", [*GUIDES, *FOLDER_GUIDES], ids=lambda guide: str(guide.relative_to(ROOT)))
def test_every_path_and_link_of_a_guide_exists(guide: Path) -> None:
    text = guide.read_text()
    assert [path for path in paths(text) if not (ROOT / path).exists()] == []
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("https://")]
    assert [link for link in links if not (guide.parent / link).exists()] == []


@pytest.mark.parametrize("guide", FOLDER_GUIDES, ids=lambda guide: guide.parent.name)
def test_a_folders_guide_is_short_and_every_file_that_it_names_exists(guide: Path) -> None:
    text = guide.read_text()
    assert len(text.splitlines()) <= 60
    files = {word for word in code_words(text) if re.fullmatch(r"[\w/-]+\.(py|md|js|css|json|html|toml)", word)}
    assert files
    assert sorted(file for file in files if not (guide.parent / file).exists() and not (ROOT / file).exists()) == []


@pytest.mark.parametrize(
    ("prefix", "described"),
    [
        ("seen", "Observation"),
        ("batch", "Batch"),
        ("received", "Transcript"),
        ("replay", "Replay"),
        ("granted", "Granted"),
        ("knowledge", "ProtectionKnowledge"),
        ("round", "Round"),
        ("handed", "Handed"),
        ("snapshot", "Snapshot"),
    ],
)
def test_the_guide_to_the_engine_describes_every_property_that_plugins_are_handed(prefix: str, described: str) -> None:
    named = code_words((ROOT / "leakage" / "engine" / "README.md").read_text())
    properties = {field.name for field in dataclasses.fields(getattr(core, described))}
    if described == "Observation":
        properties = {"model", "device", "dtype", "scale", "secret"}  # its groups have rows of their own
    assert {name.removeprefix(f"{prefix}.") for name in named if re.fullmatch(rf"{prefix}\.\w+", name)} == properties


@pytest.mark.parametrize(
    "described",
    [Baselines, Frame, Lineup, Origin, Perceptual, Private, Reference, PreparedAttack],
    ids=lambda described: described.__name__,
)
def test_the_guide_to_the_evaluation_describes_every_field(described: type) -> None:
    rows = (ROOT / "leakage" / "evaluation" / "README.md").read_text().splitlines()
    (row,) = (row for row in rows if row.startswith(f"| `{described.__name__}` |"))
    assert set(inspect.get_annotations(described)) <= code_words(row)


def test_the_map_fits_one_screen() -> None:
    assert len(MAP.splitlines()) <= 60
    assert max(len(line) for line in MAP.splitlines()) <= 240


def test_the_map_names_every_folder_and_every_loose_file() -> None:
    named = paths(MAP)
    folders = {f"leakage/{path.name}/" for path in (ROOT / "leakage").iterdir() if (path / "__init__.py").exists()}
    files = {f"leakage/{path.name}" for path in (ROOT / "leakage").glob("*.py")} - {"leakage/__init__.py"}
    ui = {f"{path.name}/" for path in (ROOT / "leakage" / "ui").iterdir() if (path / "__init__.py").exists()}
    assert folders | files <= named
    assert ui <= code_words(MAP)
    assert {"app.py", "pages/", "assets/", "docs/", "benchmarks/", "tests/"} <= named


@pytest.mark.parametrize(
    ("question", "file", "proof"),
    [
        ("how a frame is scored", "leakage/evaluation/referee.py", "class Frame"),
        ("the order of the queue", "leakage/runs/fair_order.py", "def in_order"),
        ("the noise", "leakage/defenses/gaussian_noise.py", "torch.randn"),
        ("the schema", "leakage/runs/migrations.py", "CREATE TABLE"),
        ("a lesson", "assets/lessons/01-gradient.json", '"beats"'),
        ("a preset", "assets/prepared.json", "{"),
        ("a page", "app.py", "st.Page("),
    ],
)
def test_a_newcomer_finds_in_the_map(question: str, file: str, proof: str) -> None:
    (line,) = [line for line in MAP.splitlines() if question in line and f"`{file}`" in line]
    assert line.startswith("| ")
    assert proof in (ROOT / file).read_text()


def methods(kind: type) -> set[str]:
    """What a base class implements, or leaves to its plug-ins."""
    return {name for name, value in vars(kind).items() if not name.startswith("_") and (callable(value) or isinstance(value, property))}


@pytest.mark.parametrize("kind", [core.Attack, core.Defense, core.Protocol, core.Model, core.Server, core.Check])
def test_the_table_of_plugins_agrees_with_the_base_classes(kind: type) -> None:
    (row,) = [line for line in MAP.splitlines() if line.startswith("|") and f"| `{kind.__name__}` |" in line]
    name, _, must, may = (cell.strip() for cell in row.strip("|").split("|"))
    assert name == kind.__name__.lower()
    code = {name: inspect.getsource(value) for name, value in vars(kind).items() if name in methods(kind) and callable(value)}
    required = {name for name, lines in code.items() if "raise NotImplementedError" in lines}
    optional_pair = {"run_batched"} & required  # asked for only where `batchable` says so
    assert code_words(must) == required - optional_pair
    assert code_words(must) | code_words(may) == methods(kind)


@pytest.mark.long
def test_the_example_of_a_plugin_runs_as_it_stands() -> None:
    block, *_ = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "write_a_plugin.md").read_text(), re.DOTALL)
    module = ModuleType("leakage.attacks.grey")
    sys.modules[module.__name__] = module  # where dataclasses look a class up
    try:
        exec(block, module.__dict__)
        grey = module.Grey()
        assert grey.id == "grey"
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 5))
            x, y = torch.rand(1, 3, 8, 8), torch.tensor([3])
            result = leakage.attack(model, x, y, attack=grey)
            bright = leakage.attack(model, x, y, attack=module.Grey(brightness=1.0))
        assert result.labels == [3]
        assert torch.equal(result.reconstruction, torch.full((1, 3, 8, 8), 0.5))
        assert torch.equal(bright.reconstruction, torch.ones(1, 3, 8, 8))
        assert result.scores["psnr"] == pytest.approx(result.baselines["grey"]["psnr"])
        with pytest.raises(ValueError, match=r"Grey\.brightness: allowed is a number from 0 to 1, given was 2"):
            module.Grey(brightness=2)
    finally:
        del sys.modules[module.__name__]


@pytest.mark.long
def test_the_examples_of_recording_an_update_write_the_folders_that_the_guide_describes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (DOCS / "import_updates.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    here = [block for block in blocks if not re.search("^from (flwr|nvflare)", block, re.MULTILINE)]
    assert (len(blocks), len(here)) == (6, 4)  # the other two run in the environment of the frameworks: tests/adapters/test_federations.py
    monkeypatch.chdir(tmp_path)
    torch.save({"w": torch.ones(2)}, "after.pt")
    with torch.random.fork_rng():
        names: dict[str, Any] = {}
        for block in here:
            exec(block, names)
    assert len(names["found"].findings) > 5
    files = set(re.findall(r"^\| `(\w+\.\w+)` \|", text, re.MULTILINE))
    assert (
        {path.name for path in tmp_path.glob("*/*")} < files == {"before.npz", "after.npz", "difference.npz", "gradient.npz", "card.json"}
    )
    card = UpdateCard.model_validate_json((tmp_path / "update" / "card.json").read_text())
    said = (card.optimizer.value, card.rate.value, card.momentum.value, card.steps.value, card.pictures.value)
    assert said == ("SGD", 0.01, 0.9, 4, 8)
    assert torch.equal(load_file("after.safetensors")["w"], torch.ones(2))


def test_the_card_in_the_guide_has_every_field() -> None:
    (block,) = re.findall(r"```json\n(.*?)```", (DOCS / "import_updates.md").read_text(), re.DOTALL)
    card = UpdateCard.model_validate_json(block)
    assert set(card.model_fields_set) == set(UpdateCard.model_fields)
    assert {entry.state for _, entry in card.entries()} == {"known", "guessed"}


# ---------------------------------------------------------------- decisions


def test_the_index_names_every_decision_once_in_its_order() -> None:
    rows = re.findall(
        r"^\| \[(\d{4})\]\((.+?)\) \| (.+?) \| (.+?) \|$", (ROOT / "docs" / "decisions" / "README.md").read_text(), re.MULTILINE
    )
    assert [file for _, file, _, _ in rows] == [file.name for file in DECISIONS]
    assert [number for number, *_ in rows] == [f"{place:04}" for place in range(1, len(rows) + 1)]
    assert len(rows) >= 10
    for (number, _, choice, _), file in zip(rows, DECISIONS, strict=True):
        assert file.read_text().splitlines()[0] == f"# {number}: {choice}"


@pytest.mark.parametrize("file", DECISIONS, ids=lambda file: file.stem)
def test_a_decision_is_short_and_says_how_its_numbers_were_measured(file: Path) -> None:
    text = file.read_text()
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Measurement", "What would change our mind"]
    assert len(text.splitlines()) <= 45
    measured = text.split("## Measurement")[1].split("## What would")[0]
    assert re.search(r"^    \S+", measured, re.MULTILINE), "no command"
    for command in re.findall(r"^    \.venv/bin/(?:python|pytest) (\S+\.py)", measured, re.MULTILINE):
        assert (ROOT / command).exists(), command
    for name in re.findall(r"benchmarks/decisions\.py (\w+)", measured):
        sections = [(ROOT / "benchmarks" / file).read_text() for file in ("decisions.py", "_decisions_engine.py", "_decisions_steps.py")]
        assert any(f"\ndef {name}()" in text for text in sections), name


# ---------------------------------------------------------------- the version


def test_the_changelog_has_the_version_of_the_package_with_a_date() -> None:
    heads = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    cut = [head for head in heads if re.match(r"\d", head)]
    assert heads[: heads.index(cut[0])] in (["What a version number promises"], ["What a version number promises", "Unreleased"])
    assert re.fullmatch(rf"{re.escape(leakage.__version__)} \(\d{{4}}-\d\d-\d\d\)", cut[0])


def test_the_hooks_run_what_make_check_runs() -> None:
    recipe = (ROOT / "Makefile").read_text().split("\ncheck:")[1].split("\n\n")[0]
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    for tool in ("ruff check", "ruff format --check", "mypy", "lint-imports"):
        assert tool in recipe
        assert tool in hooks
