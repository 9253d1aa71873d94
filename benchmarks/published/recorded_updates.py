"""Updates of clients that were recorded: what is found without the truth, and whether public pictures predict it.

Three clients train for two steps at the rate 0.01 on one picture: an untrained LeNet, the same with weights sent in float16, and a
ResNet-18 of width 16 in training mode, whose steps are read from its buffers. Five pictures of the gallery are the client's own, each
recorded and audited by itself. Their PSNR is compared with that of five other pictures of the gallery, which each audit plants under the
card and with the label of the update: the medians should lie within 4 dB. The network of Flower's PyTorch quickstart (two convolutions
with pooling) stands beside.

    python benchmarks/published/recorded_updates.py [--steps 1500] [--only lenet]        about an hour on one core
"""

import argparse
import sys
from copy import deepcopy
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch
from _table import save, saved, say, table
from torch import Tensor, nn
from torch.nn import functional as F

import leakage
from leakage.adapters import plain_torch
from leakage.adapters.update_folder import write_update
from leakage.adapters.update_reader import read_update
from leakage.api.arguments import AttackArguments
from leakage.auditing.calibration import measure_planted
from leakage.auditing.card_client import card_clients
from leakage.auditing.protection_effects import planted
from leakage.auditing.recorded_client import load_client
from leakage.evaluation.metrics import psnr
from leakage.spec.experiment import Part
from leakage.spec.update_card import UpdateCard
from leakage.workers.adapter import untrained

SHAPE, CLASSES, RATE, STEPS, OWN = (3, 32, 32), 10, 0.01, 2, 5
ALLOWED = 4.0  # dB between the medians


class Quickstart(nn.Module):
    """The network of Flower's PyTorch quickstart, after the CIFAR-10 tutorial of PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2, self.pool = nn.Conv2d(3, 6, 5), nn.Conv2d(6, 16, 5), nn.MaxPool2d(2, 2)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(F.relu(self.conv2(self.pool(F.relu(self.conv1(x))))))
        z: Tensor = self.fc3(F.relu(self.fc2(F.relu(self.fc1(x.flatten(1))))))
        return z


def network(name: str) -> nn.Module:
    """Return the untrained network of a client."""
    torch.manual_seed(0)
    if name == "quickstart":
        return Quickstart()
    part = Part(id="resnet", fields={"width": 16}) if name == "resnet18" else Part(id="lenet")
    return untrained(part, SHAPE, CLASSES, seed=1)


def record(name: str, x: Tensor, y: Tensor, folder: Path) -> None:
    """Let a client train on a picture, and record what it received and sent."""
    model = network(name)
    before = deepcopy(model)
    optimizer = torch.optim.SGD(model.train().parameters(), lr=RATE)
    with plain_torch.saved(model, folder / "whole", optimizer=optimizer, pictures=len(x), epochs=STEPS):
        for _ in range(STEPS):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    card = read_update(folder / "whole").card
    if name == "resnet18":  # what the card does not say, the buffers do
        card = card.model_copy(update={"steps": UpdateCard().steps, "epochs": UpdateCard().epochs, "batch_norm": UpdateCard().batch_norm})
    half = name == "lenet in float16"
    sent = {key: value.half() if half and value.is_floating_point() else value for key, value in model.state_dict().items()}
    received = {key: value.half() if half and value.is_floating_point() else value for key, value in before.state_dict().items()}
    write_update(folder / "sent", card, before=as_arrays(received), after=as_arrays(sent))


def as_arrays(state: dict[str, Tensor]) -> dict[str, Any]:
    """Return the tensors of a state as arrays."""
    return {name: value.numpy() for name, value in state.items()}


def attacked(name: str, number: int, steps: int) -> dict[str, Any]:
    """Record and attack one of the client's own pictures, and measure the same attack on planted pictures."""
    x = planted(2 * OWN, SHAPE)[OWN + number : OWN + number + 1]  # the audit plants the first five
    y = torch.tensor([number])
    with TemporaryDirectory() as folder:
        record(name, x, y, Path(folder))
        client = load_client(read_update(Path(folder) / "sent"), network(name))
    assumed = card_clients(client)[0]
    attack = leakage.plugin("inverting_gradients", steps=steps, schedule="coarse first")
    arguments = AttackArguments(client.model, update=assumed.update, image_shape=SHAPE, batch_size=1, attack=attack, **assumed.arguments)
    result = leakage.attack(client.model, update=assumed.update, image_shape=SHAPE, batch_size=1, attack=attack, **assumed.arguments)
    found: dict[str, Any] = {"psnr": float(psnr(result.reconstruction, x)), "grey": float(psnr(torch.full_like(x, 0.5), x))}
    found |= {"label_right": result.labels == [number], "steps_counted": client.counted, "distance": result.scores["relative_l2"]}
    measured = measure_planted(arguments, attack, result.labels, OWN)
    return found | {"planted": list(measured.psnr), "planted_grey": measured.grey}


def main() -> None:
    """Measure all clients and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ["lenet", "lenet in float16", "resnet18", "quickstart"]
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = saved("recorded_updates")
    for name in given.only:
        own = [attacked(name, number, given.steps) for number in range(OWN)]
        rows[name] = {"steps": given.steps, "own": own}
        save("recorded_updates", rows)
        say(f"{name}: {[round(one['psnr'], 1) for one in own]}, planted {[round(median(one['planted']), 1) for one in own]}")
    lines = []
    for name, row in rows.items():
        own, public = median(one["psnr"] for one in row["own"]), median(value for one in row["own"] for value in one.get("planted", ()))
        within = "yes" if abs(own - public) <= ALLOWED else "NO"
        labels = sum(one["label_right"] for one in row["own"])
        lines.append([name, own, median(one["grey"] for one in row["own"]), public, within, f"{labels} of {OWN}"])
    table(["client", "own, median dB", "grey", "planted, median dB", f"within {ALLOWED:g} dB", "labels right"], lines)


if __name__ == "__main__":
    main()
