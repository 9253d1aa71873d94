"""A client's recorded update as files, for tests: of one picture, by one step on a plain network, which a closed form solves at once."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from leakage.data.images import read
from leakage.runs.service import Service
from leakage.spec.audit_task import AuditTask
from leakage.spec.part import Part
from leakage.spec.update_card import UpdateCard
from leakage.workers.adapter import untrained

MODEL = Part(id="mlp")
KNOWN = {"network": {"id": "mlp"}, "input": [3, 32, 32], "classes": 10, "rate": 0.1, "steps": 1, "pictures": 1, "epochs": {"guess": 1}}


def write_update(folder: Path, card: dict[str, Any] | None = None) -> Path:
    """Write before.npz, after.npz, gradient.npz and card.json into a folder, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    model = untrained(MODEL, (3, 32, 32), 10, seed=3)
    x = torch.from_numpy(read("gallery", "astronaut", 32, 3)).float().permute(2, 0, 1).unsqueeze(0) / 255
    loss = torch.nn.functional.cross_entropy(model(x), torch.tensor([4]))
    weights = {name: value.detach().numpy() for name, value in model.named_parameters()}
    slopes = dict(zip(weights, torch.autograd.grad(loss, list(model.parameters())), strict=True))
    np.savez(folder / "before.npz", **weights)  # type: ignore[arg-type]
    np.savez(folder / "after.npz", **{name: value - 0.1 * slopes[name].numpy() for name, value in weights.items()})  # type: ignore[arg-type]
    np.savez(folder / "gradient.npz", **{name: value.numpy() for name, value in slopes.items()})  # type: ignore[arg-type]
    (folder / "card.json").write_text(json.dumps(card or KNOWN))
    return folder


def send_update(service: Service, owner: str, names: tuple[str, ...] = ("before.npz", "after.npz"), *, source: Path) -> str:
    """Put files of a folder into a new set of an owner, as the route does; return the set's name."""
    sets = service.store.updates
    name = sets.open(owner)
    for file in names:
        data = (source / file).read_bytes()
        with sets.receive(name, file, len(data)) as draft:
            draft.write(data)
    return name


def audit_of(files: str, **values: Any) -> AuditTask:
    """Return the audit of a set of files."""
    return AuditTask(files=files, model=MODEL, card=UpdateCard.model_validate(KNOWN), minutes=1, **values)
