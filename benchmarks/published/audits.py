"""Audits of models as people have them: torchvision's, timm's and MONAI's networks, and networks that are built in other ways.

Pictures of the gallery at 64 by 64 pixels, grey for MONAI's network; untrained weights; BatchNorm with the statistics of the batch, as in
training. timm and MONAI are in a folder of their own (`make .venv/audited/.ready`); without them their networks are left out, and named.
Each audit should end within its time and a fifth, without an error. A search should make at least 100 steps, and its gradient distance
should fall below half of its first value; otherwise its curve is printed.

    python benchmarks/published/audits.py [--minutes 5] [--only vit_tiny resnet18]        an hour on two cores
"""

import argparse
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import save, saved, say, table

sys.path.append(str(Path(sys.prefix, "audited")))
import torch
import torchvision
from torch import Tensor, nn

import leakage
from leakage.auditing import Audit, Finding
from leakage.auditing.protection_effects import planted

SIDE, CLASSES = 64, 10
ALLOWED = 1.2  # times the minutes


class LoRA(nn.Module):
    """A linear layer that stays as it is, and the product of two small matrices, which is trained. Source: Hu et al. 2021."""

    def __init__(self, layer: nn.Linear, rank: int = 4) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(requires_grad=False)
        self.down = nn.Linear(layer.in_features, rank, bias=False)
        self.up = nn.Linear(rank, layer.out_features, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        z: Tensor = self.layer(x) + self.up(self.down(x))
        return z


def encoder(norm: Callable[[int], nn.Module], wrap: Callable[[nn.Module], nn.Module] = lambda layer: layer) -> nn.Sequential:
    """Return four convolutions that halve the picture, each behind a normalization, and a linear head."""
    widths = (3, 32, 64, 128, 128)
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [wrap(nn.Conv2d(before, after, 3, stride=2, padding=1)), norm(after), nn.SiLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], CLASSES))


def half_frozen() -> nn.Module:
    """Return a ResNet-18 of which the first two stages are frozen."""
    model: nn.Module = torchvision.models.resnet18(num_classes=CLASSES)
    for name in ("conv1", "bn1", "layer1", "layer2"):
        model.get_submodule(name).requires_grad_(False)
    return model


def adapted() -> nn.Module:
    """Return a ResNet-18 with a LoRA head."""
    model: Any = torchvision.models.resnet18(num_classes=CLASSES)
    model.fc = LoRA(model.fc)
    adapted_model: nn.Module = model
    return adapted_model


def of_timm(name: str, **more: Any) -> nn.Module:
    """Return a network of timm."""
    import timm

    model: nn.Module = timm.create_model(name, num_classes=CLASSES, **more)
    return model


def of_monai() -> nn.Module:
    """Return MONAI's DenseNet121 for grey pictures."""
    from monai.networks.nets import DenseNet121

    model: nn.Module = DenseNet121(spatial_dims=2, in_channels=1, out_channels=CLASSES)
    return model


MODELS: dict[str, Callable[[], nn.Module]] = {
    "mobilenet_v3_small": lambda: torchvision.models.mobilenet_v3_small(num_classes=CLASSES),
    "resnet18": lambda: torchvision.models.resnet18(num_classes=CLASSES),
    "vit_tiny": lambda: of_timm("vit_tiny_patch16_224", img_size=SIDE),
    "convnext_atto": lambda: of_timm("convnext_atto"),
    "densenet121": of_monai,
    "groupnorm": lambda: encoder(lambda width: nn.GroupNorm(8, width)),
    "spectral_norm": lambda: encoder(nn.BatchNorm2d, nn.utils.parametrizations.spectral_norm),
    "lora": adapted,
    "half_frozen": half_frozen,
    "sequential": lambda: nn.Sequential(
        nn.Conv2d(3, 12, 5, stride=2, padding=2), nn.Sigmoid(), nn.Flatten(), nn.Linear(12 * (SIDE // 2) ** 2, CLASSES)
    ),
}


def audited(name: str, minutes: float) -> Audit:
    """Audit a network on eight pictures of the gallery, alone and together."""
    torch.manual_seed(0)
    x = planted(8, (1 if name == "densenet121" else 3, SIDE, SIDE))
    return leakage.audit(MODELS[name](), (x, torch.arange(8) % CLASSES), minutes=minutes, batch_norm="batch", protections=False)


def fraction(finding: Finding) -> float:
    """Return the lowest objective of a search as a fraction of its first."""
    return min(value for _, value in finding.curve) / finding.curve[0][1] if finding.curve else 1.0


def row(name: str, audit: Audit) -> dict[str, Any]:
    """Return the figures of an audit."""
    searches = [finding for finding in audit.findings if finding.steps]
    best = audit.findings[0]
    return {
        "model": name,
        "word": audit.word,
        "attack": best.title_with_attacker if best.tried else "-",
        "pictures": len(best.pictures),
        "psnr": max(best.psnr, default=None),
        "grey": best.grey,
        "seconds": audit.seconds,
        "searches": [[one.title, len(one.pictures), one.steps, one.steps / max(one.seconds, 1e-9), fraction(one)] for one in searches],
        "untried": list(audit.untried),
        "notices": list(audit.notices),
    }


def main() -> None:
    """Audit the networks, print two tables, and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--only", nargs="+", choices=MODELS, default=list(MODELS))
    given = parser.parse_args()
    rows = dict[str, Any]()
    for name in given.only:
        try:
            audit = audited(name, given.minutes)
        except ImportError as error:
            say(f"{name} is left out: {error}. Run `make .venv/audited/.ready`.")
            continue
        rows[name] = {"minutes": given.minutes, **row(name, audit)}
        late = "" if audit.seconds <= 60 * given.minutes * ALLOWED else " LATE"
        say(f"{name}: {audit.word}, {audit.seconds:.0f} s{late}")
        for finding in audit.findings:
            if finding.steps and (finding.steps < 100 or fraction(finding) >= 0.5):
                points = finding.curve[:: max(1, len(finding.curve) // 8)]
                say(f"  {finding}: {', '.join(f'{step}: {value:.3g}' for step, value in points)}")
    table(
        ["model", "word", "shown most by", "pictures", "PSNR dB", "grey", "seconds"],
        [[each[key] for key in ("model", "word", "attack", "pictures", "psnr", "grey", "seconds")] for each in rows.values()],
    )
    say("Searches: steps, steps per second, lowest objective as a fraction of the first")
    table(
        ["model", "attack", "pictures", "steps", "steps/s", "fraction"],
        [[each["model"], *one] for each in rows.values() for one in each["searches"]],
    )
    save("audits", {**saved("audits"), **rows})


if __name__ == "__main__":
    main()
