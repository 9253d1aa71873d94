"""A plug-in is one new file: a copy of the project with nine new files, five of them from the guide, knows all of them."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from leakage.settings import ROOT
from leakage.spec.fields import KINDS

ATTACK = '''"""Steepest descent on the direction of the gradient."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from leakage.engine.core import Attack, Observation, Snapshot, param
from leakage.engine.labels import recover
from leakage.engine.matching import cosine_distance, normal_start


@dataclass(frozen=True, kw_only=True)
class Steepest(Attack):
    """argmin over x of 1 - cos(g(x, y), g*), by Adam."""

    title = "Guess and compare (steepest)"
    short = "Steepest"
    plain = "Changes a noisy picture until its gradient points the same way."
    hint = "Planted by a test."
    source = "https://example.org/steepest"
    reads_labels = True

    steps: int = param(100, 1, 1000, "Optimiser steps.")
    speed: float = param(0.1, 0.001, 1, "Step size in units of a pixel.")

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        labels = recover(seen).labels if seen.granted.labels is None else seen.granted.labels
        distance, x = cosine_distance(seen.update, seen.knowledge.entry_weights), normal_start(seen, rng).requires_grad_()
        optimiser = torch.optim.Adam([x], lr=self.speed)
        for step in range(1, self.steps + 1):
            loss = distance(seen.replay.single(x, labels))
            yield Snapshot(step=step, x=x.detach(), y=labels, loss=loss.detach())
            (x.grad,) = torch.autograd.grad(loss, x)
            optimiser.step()
'''
DEFENSE = '''"""Clip the gradient's norm."""

from dataclasses import dataclass

import torch

from leakage.engine.core import Client, Defense, StepRng, ClientState, Params, Update, param


@dataclass(frozen=True, kw_only=True)
class Shortening(Defense):
    """g~ = g * min(1, bound / ||g||)."""

    title = "Shortening"
    plain = "The phone shortens a gradient that is too long."
    hint = "Planted by a test."
    source = "https://example.org/shortening"

    bound: float = param(0.5, 0.001, 100, "Longest gradient that is sent.")

    def defend(self, client: Client, model: torch.nn.Module, step_rng: StepRng) -> Client:
        def send(weights: Params, x: torch.Tensor, y: torch.Tensor, state: ClientState) -> Update:
            update, state = client(weights, x, y, state)
            norm = torch.cat([g.flatten() for g in update.values()]).norm()
            return {name: g * (self.bound / norm).clamp(max=1) for name, g in update.items()}, state

        return send

    def surrogate(self, client: Client, received: Params) -> Client:
        return self.defend(client, torch.nn.Identity(), lambda step: torch.Generator())
'''
PROTOCOL = '''"""Send how the weights changed in one step."""

from dataclasses import dataclass

from leakage.engine.core import Client, StepRng, Params, Protocol, Round, param


@dataclass(frozen=True, kw_only=True)
class OneStep(Protocol):
    """w1 - w0 = -rate * g."""

    title = "One step"
    plain = "The phone sends by how much its weights changed."
    hint = "Planted by a test."
    source = "https://example.org/step"

    rate: float = param(0.1, 0.001, 1, "Learning rate.")

    def client(self, gradient: Client, step_rng: StepRng | None = None) -> Client:
        def send(weights, x, y, state):
            update, state = gradient(weights, x, y, state)
            return {name: -self.rate * g for name, g in update.items()}, state

        return send

    def to_gradient(self, update: Params, seen: Round) -> Params:
        return {name: -g / self.rate for name, g in update.items()}

    def server_update(self, seen: Round) -> Params:
        return {name: weight + seen.update[name] for name, weight in seen.weights.items()}
'''
MODEL = '''"""No hidden layer at all."""

from dataclasses import dataclass

from torch import nn

from leakage.engine.core import Model, flag


@dataclass(frozen=True, kw_only=True)
class Straight(Model):
    """logits = W x + b."""

    title = "Small network (linear)"
    plain = "A class is a weighted sum of the pixels."
    hint = "Planted by a test."
    source = "https://example.org/linear"

    bias: bool = flag(True, "Whether each class has a constant of its own.")

    def build(self, image_shape: tuple[int, int, int], num_classes: int) -> nn.Module:
        channels, height, width = image_shape
        return nn.Sequential(nn.Flatten(), nn.Linear(channels * height * width, num_classes, bias=self.bias))
'''
GUIDE = (ROOT / "docs" / "write_a_plugin.md").read_text()
IN_GUIDE = {  # what the guide shows whole: where it says that it is to be saved -> the code
    f"{folder}/{name}": code
    for name, folder, code in re.findall(r"`(\w+\.py)` in\s`leakage/(\w+)/`.*?```python\n(.*?)```", GUIDE, re.DOTALL)
}
NEW = {
    "attacks/steepest.py": ATTACK,
    "defenses/shortening.py": DEFENSE,
    "protocols/one_step.py": PROTOCOL,
    "models/straight.py": MODEL,
    **IN_GUIDE,
}
GUIDE_PLUGINS = ("attacks/grey", "attacks/near_mean", "checks/far_weights", "defenses/fading_noise", "servers/random_weights")
READERS = ("names", "prose", "absolute_sentences")  # they read the files of plug-ins, and all other files of the project
PROVED = ("attacks", "defenses", "protocols", "servers", "checks", "truth", "house", "settings")
CONTRACTS = [*(f"tests/contracts/test_{name}.py" for name in (*PROVED, *READERS)), "tests/models/test_models.py"]
COPIED = ("assets", "benchmarks", "docs", "leakage", "pages", "scripts", "tests", ".streamlit")
QUESTION = {
    "pictures": [{"id": "digit-3"}],
    "size": 28,
    "channels": 1,
    "model": {"id": "straight", "fields": {"bias": True}},
    "protocol": {"id": "one_step", "fields": {"rate": 0.25}},
    "defenses": [{"id": "shortening", "fields": {"bound": 0.5}}],
    "server": {"id": "random_weights", "fields": {"limit": 0.25}},
    "checks": [{"id": "far_weights", "fields": {"threshold": 0.5}}],
    "refuse": False,
    "attack": {"id": "steepest", "fields": {"steps": 50, "speed": 0.05}},
}
FOUND = {kind: QUESTION[folder][0] if folder in QUESTION else QUESTION[kind] for kind, folder in KINDS.items()}  # one of each kind
PAGE = """
from pathlib import Path
from leakage.spec import catalog
from leakage.ui.common import forms

known = catalog.read(Path("catalog.json"))
for kind in forms.DEFAULTS:
    forms.choose(known, kind, kind)
"""
LOOK = """
import json, sys
from streamlit.testing.v1 import AppTest

at = AppTest.from_string(sys.argv[1], default_timeout=240).run()
assert not at.exception, at.exception
print(json.dumps({box.key: box.options for box in at.selectbox}))
"""  # the menus of the Lab with their items


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with nine more files."""
    root = tmp_path_factory.mktemp("project")
    for folder in COPIED:
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in [*ROOT.glob("*.md"), *ROOT.glob("*.py"), *ROOT.glob("*.json"), ROOT / "pyproject.toml"]:
        shutil.copy(file, root)
    for name, text in NEW.items():
        (root / "leakage" / name).write_text(text)
    return root


def python(project: Path, *arguments: str) -> str:
    """What Python says in the copy; the call must succeed."""
    alone = {"OMP_NUM_THREADS": "1", "PYTHONPATH": "", "PYTEST_DEBUG_TEMPROOT": str(project.parent)}  # pytest removes older folders there
    environment = {**os.environ, **alone}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=project, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_planted_attack_is_as_short_as_one_should_be() -> None:
    assert len(ATTACK.splitlines()) < 40


@pytest.mark.long
def test_new_plugins_are_in_the_catalog_in_menus_in_the_schema_and_in_the_written_page(project: Path) -> None:
    python(project, "-c", "import pathlib; from leakage.workers import plugin_catalog; plugin_catalog.write(pathlib.Path('catalog.json'))")
    written = json.loads((project / "catalog.json").read_text())
    entries = {(kind, entry["id"]): entry for kind, folder in KINDS.items() for entry in written[folder]}
    for kind, used in FOUND.items():
        assert [field["name"] for field in entries[kind, used["id"]]["fields"]] == list(used["fields"])
    menus = json.loads(python(project, "-c", LOOK, PAGE))
    offered = {kind for kind, used in FOUND.items() if entries[kind, used["id"]]["title"] in menus.get(kind, [])}
    assert offered >= set(KINDS) - {"check"}
    python(project, "-m", "leakage", "docs")
    page = (project / "docs" / "plugins.md").read_text()
    assert "| `speed` | 0.1 | 0.001 to 1 | Step size in units of a pixel. |" in page
    parts = json.loads((project / "docs" / "schema" / "experiment.json").read_text())["$defs"]
    for kind, used in FOUND.items():
        assert f"(`{used['id']}`)\n" in page
        assert used["id"] in [one["properties"]["id"]["const"] for one in parts[f"{kind}_plugin"]["oneOf"]]


@pytest.mark.long
def test_an_experiment_of_new_plugins_runs_from_a_file(project: Path) -> None:
    (project / "experiment.json").write_text(json.dumps(QUESTION))
    python(project, "-m", "leakage", "run", "experiment.json", "--out", "out")
    metrics = json.loads((project / "out" / "metrics.json").read_text())
    asked = ("model", "protocol", "defenses", "server", "checks", "refuse", "attack")
    assert {name: metrics["experiment"][name] for name in asked} == {name: QUESTION[name] for name in asked}
    assert metrics["answer"]["step"] == 50
    assert metrics["answer"]["labels"] == [7]
    assert metrics["answer"]["loss"] < 0.5 * metrics["frames"][0]["loss"]
    assert (project / "out" / "final.png").exists()


@pytest.mark.long
def test_the_experiment_of_the_guide_runs_with_the_plugins_of_the_guide(project: Path) -> None:
    (block,) = re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL)
    (project / "experiment.json").write_text(json.dumps({**json.loads(block), "assume": {"strategy": "leave out"}}))
    python(project, "-m", "leakage", "run", "experiment.json", "--out", "of_the_guide")
    metrics = json.loads((project / "of_the_guide" / "metrics.json").read_text())
    assert metrics["answer"]["labels"] == [7]
    assert metrics["answer"]["loss"] < 0.5 * metrics["frames"][0]["loss"]


@pytest.mark.parametrize("part", ["not slow and not grid", pytest.param("grid", marks=pytest.mark.grid)])
@pytest.mark.long
def test_new_plugins_are_collected_by_the_contract_tests_and_keep_the_contract(project: Path, part: str) -> None:
    ids = [Path(name).stem for name in NEW if name != "protocols/one_step.py"]
    planted = " or ".join([*ids, "every_absolute_sentence", "(one_step and not trains_one_step)"])
    said = python(project, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "-m", part, "-k", planted, *CONTRACTS)
    assert sorted(IN_GUIDE) == [f"{name}.py" for name in GUIDE_PLUGINS]
    once = (
        r"contracts/test_attacks\.py::test_an_attack_depends_on_its_generator_alone\[steepest\]",
        r"contracts/test_attacks\.py::test_labels_that_are_not_granted_are_found\[3-steepest\]",
        r"contracts/test_attacks\.py::test_granted_labels_are_used_as_they_are\[grey\]",
        r"contracts/test_attacks\.py::test_labels_that_are_not_granted_are_found\[3-near_mean\]",
        r"contracts/test_attacks\.py::test_entries_of_weight_0_may_be_any_numbers_for_an_attack_that_compares_gradients\[near_mean\]",
        r"contracts/test_settings\.py::test_who_reads_labels_says_so\[near_mean\]",
        r"contracts/test_prose\.py::test_prose_is_plain\[leakage/defenses/fading_noise\.py\]",
        r"contracts/test_names\.py::test_names_are_the_fields_own\[leakage/attacks/grey\.py\]",
        r"contracts/test_absolute_sentences\.py::test_every_absolute_sentence_is_listed_with_what_backs_it",
        r"contracts/test_house\.py::test_a_plugin_is_documented_for_a_student_and_for_a_beginner_and_names_its_paper\[attack-grey\]",
        r"contracts/test_defenses\.py::test_a_defended_client_is_pure_and_differentiable\[fading_noise\]",
        r"contracts/test_defenses\.py::test_an_honest_client_called_again_sends_the_same\[fedavg-fading_noise\]",
        r"contracts/test_servers\.py::test_a_server_changes_what_it_claims_to_change\[random_weights-one-phone\]",
        r"contracts/test_servers\.py::test_replaying_the_truth_gives_the_update\[random_weights-a-sum-of-four-fedavg\]",
        r"contracts/test_checks\.py::test_a_check_says_the_same_twice_and_alters_nothing\[far_weights-imprint\]",
        r"contracts/test_truth\.py::test_the_secret_of_a_server_is_reached_from_no_client_and_from_no_truth\[random_weights-3\]",
        r"contracts/test_house\.py::test_a_plugins_fields_are_flat_with_a_default_inside_the_range_and_a_sentence\[check-far_weights\]",
        r"contracts/test_prose\.py::test_prose_is_plain\[leakage/servers/random_weights\.py\]",
        r"models/test_models\.py::test_every_model_takes_every_size_and_colour_with_every_normalisation\[64-3-straight\]",
        r"contracts/test_house\.py::test_a_plugins_fields_are_flat_with_a_default_inside_the_range_and_a_sentence\[attack-steepest\]",
    )
    pairs = (  # of two new ones, in whichever case of the product
        r"contracts/test_defenses\.py::test_an_attacker_that_knows_the_protection_replays_the_truth_to_the_update\[.*shortening-.*one_step\]",
        r"contracts/test_protocols\.py::test_replaying_the_truth_gives_the_update\[one_step-straight-.*\]",
        r"contracts/test_truth\.py::test_no_attack_can_reach_the_pictures_nor_labels_that_were_not_granted\[shortening-.*-one_step-.*\]",
        r"contracts/test_truth\.py::test_no_attack_can_reach_the_pictures_nor_labels_that_were_not_granted\[.*-one_step-steepest\]",
    )
    apart = (  # of a new attack and a new protection: each meets the protocols above, and both meet in the grid
        r"contracts/test_truth\.py::test_no_attack_can_reach_the_pictures_nor_labels_that_were_not_granted\[shortening-.*-steepest\]",
    )
    for line in apart + pairs if part == "grid" else once + pairs:
        assert re.search(f"^PASSED tests/{line}$", said, re.MULTILINE), line
