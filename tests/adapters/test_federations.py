"""Federations of two clients in Flower and NVFlare: each client's update is recorded, and is what SGD computes by hand.

The frameworks have an environment of their own, since they need other versions of packages than the project: `make .venv/federated/.ready`.
LEAKAGE_FEDERATED names another folder of it.
"""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from federated_clients import RATE, make_network, read_batch
from torch import nn

import leakage
from leakage.adapters.update_reader import read_update
from leakage.auditing.card_client import card_clients
from leakage.auditing.recorded_client import load_client
from leakage.evaluation.metrics import psnr
from leakage.settings import ROOT
from leakage.spec.update_card import UpdateCard

HERE = Path(__file__).parent
PYTHON = Path(os.environ.get("LEAKAGE_FEDERATED") or Path(sys.prefix, "federated"), "bin", "python")
EPOCHS = 2
ENVIRONMENT = {
    "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests" / "support"))),
    "FLWR_TELEMETRY_ENABLED": "0",
    "OMP_NUM_THREADS": "1",
}
pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not PYTHON.exists(), reason="Flower and NVFlare are not installed: make .venv/federated/.ready"),
]


def federate(script: str, folder: Path, *words: str) -> None:
    """Run a federation, whose clients save their updates into a folder."""
    home = {"FLWR_HOME": str(folder.with_name("flwr")), "HOME": str(folder.parent)}
    done = subprocess.run(
        [PYTHON, HERE / script, folder, *words],
        cwd=folder.parent,
        env=os.environ | ENVIRONMENT | home,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]


def read(folder: Path) -> tuple[UpdateCard, dict[str, dict[str, Any]]]:
    parts = {path.stem: dict(np.load(path, allow_pickle=False)) for path in folder.glob("*.npz")}
    return UpdateCard.model_validate_json((folder / "card.json").read_text()), parts


def assert_is_sgd(kind: str, client: int, pictures: int, before: dict[str, Any], difference: dict[str, Any]) -> None:
    """Compare the difference of two weights with the sum of gradients, times the rate, in float64."""
    model = make_network(kind)
    model.load_state_dict({name: torch.from_numpy(value) for name, value in before.items()})
    x, y = read_batch(kind, client, pictures)
    model.double()
    begin = {name: value.detach().clone() for name, value in model.named_parameters()}
    for _ in range(EPOCHS):
        gradients = torch.autograd.grad(nn.functional.cross_entropy(model(x.double()), y), list(model.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                parameter -= RATE * gradient
    for name, parameter in model.named_parameters():
        moved = (parameter.detach() - begin[name]).numpy()
        last_bit = np.spacing(np.abs(before[name]).max())  # of a float32 weight, to which its difference is rounded in each step
        np.testing.assert_allclose(difference[name], moved, rtol=1e-5, atol=EPOCHS * last_bit)
        assert np.abs(difference[name] - moved).mean() <= 0.01 * np.abs(moved).mean() + 1e-9


def assert_shows_the_picture(folder: Path, client: int) -> None:
    """Attack the update of a client with one picture: its label is read, and an attacker that imitates its two steps shows the picture."""
    x, y = read_batch("lenet", client, 1)
    known = UpdateCard.model_validate({"input": (3, 32, 32), "pictures": 1, "rate": RATE, "epochs": EPOCHS})
    recorded = load_client(replace(read_update(folder), card=known), make_network("lenet"))
    adaptive = card_clients(recorded)[0]
    attack = leakage.plugin("inverting_gradients", steps=1000, schedule="coarse first")
    shape: dict[str, Any] = {"image_shape": (3, 32, 32), "batch_size": 1}
    result = leakage.attack(recorded.model, update=adaptive.update, attack=attack, **shape, **adaptive.arguments)
    assert (adaptive.title, result.labels) == ("adaptive", y.tolist())
    assert float(psnr(result.reconstruction, x)) > float(psnr(torch.full_like(x, 0.5), x)) + 5  # dB


@pytest.mark.parametrize(("pictures", "rounds"), [(1, 1), (4, 2)])
def test_flower_clients_are_recorded(tmp_path: Path, pictures: int, rounds: int) -> None:
    folder = tmp_path / "updates"
    federate("flower_federation.py", folder, "--pictures", str(pictures), "--rounds", str(rounds), "--epochs", str(EPOCHS))
    names = {f"round-{round}-client-{client}" for round in range(1, rounds + 1) for client in (0, 1)}
    assert {path.name for path in folder.iterdir()} == names
    begin = {name: value.numpy() for name, value in make_network("lenet").state_dict().items()}
    for name in sorted(names):
        round, client = int(name.split("-")[1]), int(name.split("-")[3])
        card, parts = read(folder / name)
        assert (card.framework, card.pictures.value, card.round.value) == ("flower 1.42.0", pictures, round)
        assert set(parts) == {"before", "after"}
        difference = {name: value - parts["before"][name] for name, value in parts["after"].items()}
        assert_is_sgd("lenet", client, pictures, parts["before"], difference)
        if pictures == 1:
            assert_shows_the_picture(folder / name, client)
        if round == 1:
            assert all(np.array_equal(parts["before"][name], value) for name, value in begin.items())
        else:  # FedAvg: the mean of what both sent in the round before
            sent = [read(folder / f"round-{round - 1}-client-{number}")[1]["after"] for number in (0, 1)]
            for key, value in parts["before"].items():
                np.testing.assert_allclose(value, (sent[0][key] + sent[1][key]) / 2, rtol=0, atol=1e-6)


def test_nvflare_clients_are_recorded(tmp_path: Path) -> None:
    folder = tmp_path / "updates"
    federate("nvflare_federation.py", folder, "--kind", "WEIGHT_DIFF")
    assert {path.name for path in folder.iterdir()} == {"round-1-client-site-1", "round-1-client-site-2"}
    for client in (0, 1):
        card, parts = read(folder / f"round-1-client-site-{client + 1}")
        assert (card.framework, card.steps.value, card.round.value) == ("nvflare 2.9.0", EPOCHS, 1)
        assert set(parts) == {"before", "difference"}
        assert_is_sgd("tiny", client, 1, parts["before"], parts["difference"])


@pytest.mark.parametrize("framework", ["flwr", "nvflare"])
def test_the_example_of_the_guide_runs(tmp_path: Path, framework: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "import_updates.md").read_text(), re.DOTALL)
    (block,) = (block for block in blocks if re.search(f"^from {framework}", block, re.MULTILINE))
    (tmp_path / "example.py").write_text(block)
    federate(str(tmp_path / "example.py"), tmp_path / "updates")


def test_the_filter_of_nvflare_takes_weights_differences_and_collections_and_changes_nothing(tmp_path: Path) -> None:
    federate("nvflare_objects.py", tmp_path / "updates")
    read_parts = {path.name: read(path) for path in sorted((tmp_path / "updates").iterdir())}
    assert {name: {part: list(arrays["w"]) for part, arrays in parts.items()} for name, (_, parts) in read_parts.items()} == {
        "round-7-client-site-1": {"before": [1, 1], "after": [2, 2]},
        "client-site-1": {"after": [3, 3]},
        "client-site-1-2": {"difference": [1, 1]},
    }
    assert read_parts["round-7-client-site-1"][0].round.value == 7
