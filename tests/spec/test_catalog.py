"""The plug-ins as data: written, read back, stale after a change; and the command line, which needs no page."""

import ast
import io
import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_problems import CATALOG

import leakage.attacks
from leakage.__main__ import main, plugins_page
from leakage.data.images import read as read_picture
from leakage.engine.loading import load
from leakage.settings import ROOT
from leakage.spec import catalog
from leakage.spec.catalog import CatalogError, Field
from leakage.spec.experiment import parse
from leakage.workers import plugin_catalog

# ---------------------------------------------------------------- the catalog


def test_every_file_of_a_plugin_folder_is_in_the_catalog_under_its_name() -> None:
    for kind, folder in catalog.KINDS.items():
        expected = sorted(file.stem for file in (ROOT / "leakage" / folder).glob("[!_]*.py"))
        assert [entry.id for entry in CATALOG.of(kind)] == expected
    assert {"dlg", "idlg", "inverting_gradients"} <= {entry.id for entry in CATALOG.attacks}


def test_an_entry_says_what_the_class_declares() -> None:
    entry = CATALOG.attacks.get("inverting_gradients")
    fields = {field.name: field for field in entry.fields}
    assert list(fields)[:6] == ["steps", "step_size", "tv_weight", "starts", "signed", "soft"]
    assert (fields["steps"].type, fields["steps"].default, fields["steps"].low, fields["steps"].high) == ("int", 4800, 1, 24000)
    assert (fields["signed"].type, fields["signed"].default, fields["signed"].low) == ("bool", True, None)
    (activation,) = (field for field in CATALOG.models.get("mlp").fields if field.name == "activation")
    assert (activation.type, activation.options, activation.high) == ("str", ("relu", "leaky_relu", "sigmoid", "tanh"), None)
    assert entry.presets["quick look"] == {"steps": 1000}
    assert entry.doc.startswith("argmin over x in the box")


def test_a_written_catalog_is_read_back_equal(tmp_path: Path) -> None:
    file = tmp_path / "below" / "catalog.json"
    written = plugin_catalog.write(file)
    assert catalog.read(file) == written == CATALOG
    assert list(file.parent.iterdir()) == [file]  # no unfinished file is left beside it


def test_reading_answers_none_when_there_is_nothing_to_read(tmp_path: Path) -> None:
    assert catalog.read(tmp_path / "catalog.json") is None
    (tmp_path / "catalog.json").write_text('{"version": "cut sh')
    assert catalog.read(tmp_path / "catalog.json") is None


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package, in place of it."""
    shutil.copytree(ROOT / "leakage", tmp_path / "leakage", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(catalog, "PACKAGE", tmp_path / "leakage")
    return tmp_path / "leakage"


@pytest.mark.parametrize("file", ["attacks/dlg.py", "engine/core.py", "models/new.py"])
def test_a_catalog_is_stale_when_a_file_of_the_engine_or_of_a_plugin_changes(package: Path, file: str) -> None:
    written = plugin_catalog.write(package / "catalog.json")
    assert catalog.read(package / "catalog.json") == written
    edit(package / file)
    assert catalog.read(package / "catalog.json") is None


def edit(file: Path) -> None:
    with file.open("a") as changed:
        changed.write("\n# changed\n")


SOURCES = (
    *("attacks/dlg.py", "attacks/_lbfgs.py", "defenses/pruning.py", "models/lenet.py", "protocols/fedavg.py", "protocols/new.py"),
    *("engine/core.py", "engine/observe.py", "evaluation/play.py", "evaluation/metrics.py", "networks/grammar.py", "data/images.py"),
    *("spec/experiment.py", "spec/fields.py", "workers/adapter.py", "workers/attack_job.py", "workers/private_pictures.py"),
)
OTHERS = (
    *("results/comparison.py", "ui/common/forms.py", "ui/lab/result.py", "web/routes.py", "workers/dispatcher.py", "runs/store.py"),
    *("spec/threat_model.py", "spec/words.py", "spec/prepared.py", "settings.py", "__main__.py"),
)


@pytest.mark.parametrize(("file", "moves"), [*((file, True) for file in SOURCES), *((file, False) for file in OTHERS)], ids=str)
@pytest.mark.long
def test_the_version_moves_with_what_can_change_a_result_and_with_nothing_else(package: Path, file: str, moves: bool) -> None:
    before = catalog.version()
    edit(package / file)
    assert (catalog.version() != before) == moves


PLAY = """
import sys
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.workers.adapter import play

tiny = Part(id="mlp", fields={"width": 8, "depth": 1})
sum_of_two = Part(id="secure_aggregation", fields={"clients": 2})
asked = Experiment(
    pictures=(Picture(id="digit-3"), Picture(id="digit-5")), size=28, channels=1, model=tiny, protocol=Part(id="fedavg"),
    aggregation=sum_of_two, defenses=(Part(id="pruning"),), attack=Part(id="inverting_gradients", fields={"steps": 2}),
)
*_, last = play(asked)
assert last.final
print(*(f"{name}={module.__file__}" for name, module in sys.modules.items() if name.split(".")[0] == "leakage"), sep="\\n")
"""
UNHASHED = {  # loaded to run an experiment, without influence on its result
    "__init__.py": "says what the package is, and hands out the API's names to who asks for them",
    "settings.py": "where things lie on this machine",
    "spec/__init__.py": "says what the folder is for",
    "spec/words.py": "how choices and verdicts are called",
    "workers/__init__.py": "says what the folder is for",
}


@pytest.mark.long
def test_whatever_plays_an_experiment_is_hashed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PLAY],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = {Path(line.split("=", 1)[1]).relative_to(ROOT / "leakage").as_posix() for line in done.stdout.splitlines() if "=" in line}
    hashed = {file.relative_to(catalog.PACKAGE).as_posix() for pattern in catalog.SOURCES for file in catalog.PACKAGE.glob(pattern)}
    assert {"engine/observe.py", "attacks/inverting_gradients.py", "defenses/pruning.py", "workers/adapter.py"} <= loaded & hashed
    assert loaded - hashed == set(UNHASHED)
    texts = {name: (ROOT / "leakage" / name).read_text() for name in UNHASHED if name.endswith("/__init__.py")}
    assert all(isinstance(node, ast.Expr) for text in texts.values() for node in ast.parse(text).body)  # a docstring and no more


@pytest.mark.parametrize(
    ("text", "count"), [('"""Empty."""\n', 0), ("from leakage.attacks.dlg import DLG\nclass A(DLG): ...\nclass B(DLG): ...\n", 2)]
)
def test_a_plugin_file_holds_exactly_one_plugin(text: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"holds_{count}"
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(leakage.attacks, "__path__", [*leakage.attacks.__path__, str(tmp_path)])
    with pytest.raises(CatalogError, match=f"{name}.py must define exactly one Attack; found {count}"):
        load("attack", name)


def test_a_field_gives_its_value_in_its_own_type() -> None:
    whole = Field("n", "int", 1, "A number.", 0, 10)
    real = Field("x", "float", 1.0, "A number.", 0, 10)
    assert [type(field.check(value, "here")) for field, value in ((whole, 3.0), (whole, 3), (real, 3), (real, 0.5))] == [
        int,
        int,
        float,
        float,
    ]
    for value in (-1, 11, float("nan"), float("inf"), "3", True, None, [3]):
        with pytest.raises(CatalogError, match=r"here\.x: allowed is a number from 0 to 10, given was"):
            real.check(value, "here")


# ---------------------------------------------------------------- the command line

QUESTION = {
    "pictures": [{"id": "digit-3"}],
    "size": 28,
    "channels": 1,
    "model": {"id": "mlp", "fields": {"width": 32, "depth": 1, "activation": "sigmoid"}},
    "attack": {"id": "idlg", "fields": {"steps": 20, "restarts": 2}},
}


@pytest.mark.long
def test_an_experiment_file_becomes_frames_metrics_and_a_final_picture(tmp_path: Path) -> None:
    (tmp_path / "experiment.json").write_text(json.dumps(QUESTION))
    command = [sys.executable, "-W", "error", "-m", "leakage", "run", "experiment.json", "--out", "results/one"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    out = tmp_path / "results" / "one"
    metrics = json.loads((out / "metrics.json").read_text(), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert parse(metrics["experiment"]) == parse(QUESTION).resolve(CATALOG)
    assert metrics["answer"]["labels"] == [7]
    assert metrics["answer"]["scores"]["psnr"] > 30
    assert metrics["baselines"]["grey"]["psnr"] < 15
    assert metrics["verdict"]["word"] == "recognizable"
    assert metrics["frames"][0]["step"] == 1
    assert {f"{frame['step']:06d}.png" for frame in metrics["frames"]} == {file.name for file in (out / "frames").iterdir()}
    with Image.open(io.BytesIO((out / "final.png").read_bytes())) as image:
        final = np.array(image).astype(int)
    assert abs(final - read_picture("gallery", "digit-3", 28, 1)[:, :, 0]).max() < 40  # of 255, every pixel; PSNR says the rest
    assert f"PSNR {metrics['answer']['scores']['psnr']:.1f} dB" in done.stderr


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"attack": {"id": "telepathy"}}', "attack: 'telepathy' is not known here"),
        ('{"pictures": [{"source": "upload", "id": "a", "label": 1}]}', "uploads live only on the page that received them"),
        ('{"pictures": [{"id": "nobody"}]}', "The gallery has no picture 'nobody'"),
        ("not json", "This is not an experiment file"),
        (None, "there is no such file or folder. Check its name."),
    ],
)
def test_a_bad_file_ends_with_1_and_a_sentence(text: str | None, sentence: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "experiment.json"
    if text is not None:
        file.write_text(text)
    with caplog.at_level(logging.ERROR, logger="leakage"):
        assert main(["run", str(file), "--out", str(tmp_path / "out")]) == 1
    assert sentence in caplog.text
    assert "Traceback" not in caplog.text


def test_the_page_of_plugins_is_current_and_names_every_field() -> None:
    page = plugins_page(CATALOG)
    for entry in CATALOG.entries:
        assert f"### {entry.title} (`{entry.id}`)" in page
        assert entry.source in page
        for field in entry.fields:
            assert any(
                line.startswith(f"| `{field.name}` | {field.default} |") and line.endswith(f"| {field.help} |")
                for line in page.splitlines()
            )
    assert (ROOT / "docs" / "plugins.md").read_text() == page, "run `make docs`"


def test_a_file_that_is_deleted_while_the_version_is_computed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    listed, before = catalog.sources(), catalog.version()
    monkeypatch.setattr(catalog, "sources", lambda: [*listed, catalog.PACKAGE / "attacks/deleted.py"])
    assert catalog.version() == before


def test_the_version_moves_with_the_card_of_trained_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = tmp_path / "assets" / "checkpoints" / "mine" / "card.json"
    card.parent.mkdir(parents=True)
    monkeypatch.setattr(catalog, "ROOT", tmp_path)
    versions = [catalog.version()]
    for text in ("one", "two"):
        card.write_text(text)
        versions.append(catalog.version())
    assert len(set(versions)) == 3
