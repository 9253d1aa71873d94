"""Make the updates in tests/adapters/fixtures again, by the adapters, from real runs of Flower and NVFlare.

In the environment of the frameworks, from the root of the project:

    make .venv/federated/.ready
    PYTHONPATH=.:tests/support FLWR_TELEMETRY_ENABLED=0 .venv/federated/bin/python tests/adapters/make_fixtures.py

| folder | what it is |
|---|---|
| flower | a round of two clients in the simulation of flwr 1.42.0, by the mod |
| nvflare | a round of two clients in the simulator of nvflare 2.9.0, by the filter; the clients send WEIGHT_DIFF |
| nameless | arrays without names, as Flower's NumPyClient sends them: "0", "1", ... in the order of the state_dict, buffers included |
| plain_torch | three steps of SGD with two pictures, by the context manager; the state_dict has the buffers of BatchNorm |
"""

import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import torch
from federated_clients import make_network, read_batch, train
from flwr.app import ArrayRecord
from torch import nn

from leakage.adapters.plain_torch import saved
from leakage.adapters.update_folder import fill_card, write_update

HERE = Path(__file__).parent
FIXTURES = HERE / "fixtures"


def write_nameless(folder: Path) -> None:
    """Write the update of a client that sends a list of arrays."""
    model = make_network("tiny")
    before = as_list(model)
    train(model, *read_batch("tiny", 0, 1), 2)
    write_update(folder, fill_card(f"flower {version('flwr')}", {"pictures": 1, "round": 1}), before=before, after=as_list(model))


def as_list(model: nn.Module) -> dict[str, object]:
    """Return a model's arrays under the names that Flower gives to a list."""
    record = ArrayRecord([value.numpy() for value in model.state_dict().values()])
    return {name: array.numpy() for name, array in record.items()}


def write_plain(folder: Path) -> None:
    """Write the update of a training loop in PyTorch."""
    model = make_network("tiny")
    x, y = read_batch("tiny", 0, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with saved(model, folder, optimizer=optimizer, pictures=2, epochs=3, mini_batch=2):
        train(model, x, y, 3, optimizer)


if __name__ == "__main__":
    shutil.rmtree(FIXTURES, ignore_errors=True)
    for script, folder, *words in (
        ("flower_federation.py", "flower", "--network", "tiny"),
        ("nvflare_federation.py", "nvflare", "--kind", "WEIGHT_DIFF"),
    ):
        subprocess.run([sys.executable, HERE / script, FIXTURES / folder, *words], check=True, timeout=300)
    write_nameless(FIXTURES / "nameless")
    write_plain(FIXTURES / "plain_torch")
