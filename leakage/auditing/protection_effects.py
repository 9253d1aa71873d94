"""What protections would buy: the attack that showed most, on planted pictures, with and without several protections."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from leakage.api.arguments import AttackArguments
from leakage.api.attacking import attack_run
from leakage.api.model_errors import MODEL_ERRORS
from leakage.api.outcome import Result
from leakage.api.plugins import plugin
from leakage.auditing.audit_arguments import AuditArguments
from leakage.auditing.card import AuditCard, as_json
from leakage.auditing.finding import Finding
from leakage.data.images import gallery, read
from leakage.engine.core import Defense
from leakage.evaluation.pools import tensor
from leakage.spec.words import INAPPLICABLE, format_value

SAME = ("protocol", "aggregation", "server", "normalization", "batch_norm", "loss", "seed")  # arguments of the audit that stay
SIDE = 256  # pixels at which the planted picture is read, before it is resized
TRIED: tuple[Defense, ...] = tuple(
    plugin(name, **fields)
    for name, fields in (
        ("gaussian_noise", {"scale": 0.001}),
        ("gaussian_noise", {"scale": 0.01}),
        ("gaussian_noise", {"scale": 0.1}),
        ("pruning", {"fraction": 0.9}),
        ("pruning", {"fraction": 0.99}),
        ("dp_sgd", {}),
    )
)


@dataclass(frozen=True)
class ProtectionEffect:
    """What the attack that showed most shows of planted pictures behind a protection, by its best attacker."""

    title: str
    """The protection with its fields; "no protection more" for the client as it is."""
    attacker: str
    """The attacker that showed most: naive or adaptive."""
    word: str
    """The word of the verdict, or INAPPLICABLE."""
    psnr: float | None
    """The mean PSNR in dB; None where there is no guess."""
    grey: float | None
    """The PSNR of a plain grey picture in dB."""


def planted(count: int, shape: tuple[int, int, int]) -> Tensor:
    """Return public pictures (count, C, H, W) that stand in for private ones: the gallery's first, resized; they repeat if it has fewer."""
    items = gallery()
    chosen = [items[index % len(items)] for index in range(count)]
    pictures = tensor([read("gallery", item.id, SIDE, 1 if shape[0] == 1 else 3) for item in chosen])
    pictures = F.interpolate(pictures, size=shape[1:], mode="area")
    return pictures.repeat(1, -(-shape[0] // pictures.shape[1]), 1, 1)[:, : shape[0]]


def effects(arguments: AuditArguments, best: Finding, card: AuditCard, until: float) -> Iterator[ProtectionEffect]:
    """Yield what the attack `best` shows of planted pictures behind each protection, as long as there is time.

    Args:
        arguments: of the audit; its protections stay, and each protection is added behind them.
        best: the finding that showed most.
        card: of the audit.
        until: the time (`time.perf_counter`) at which the audit should end.
    """
    x = planted(len(best.pictures), card.image_shape)
    y = torch.arange(len(x)) % card.num_classes
    for added in ((), *((defense,) for defense in TRIED)):
        if time.perf_counter() + 2 * best.seconds > until:
            return
        results = [_attacked(arguments, best, (x, y), added, adaptive=adaptive) for adaptive in ((True, False) if added else (True,))]
        known = [(result, name) for result, name in zip(results, ("adaptive", "naive"), strict=False) if result and result.scores]
        title = ", ".join(map(protection_title, added)) or "no protection more"
        if not known:
            yield ProtectionEffect(title, "", INAPPLICABLE, None, None)
            continue
        result, name = max(known, key=lambda pair: pair[0].scores["psnr"])
        assert result.verdict
        grey = result.baselines["grey"]["psnr"]
        yield ProtectionEffect(title, name if added else "", result.verdict["word"], result.scores["psnr"], grey)


def protection_title(defense: Defense) -> str:
    """Return the name of a protection with its fields."""
    fields = {name: value for name, value in as_json(defense).items() if name != "id"}
    return f"{defense.short or defense.title} ({', '.join(f'{name} {format_value(value)}' for name, value in fields.items())})"


def _attacked(
    arguments: AuditArguments, best: Finding, batch: tuple[Tensor, Tensor], added: tuple[Defense, ...], *, adaptive: bool
) -> Result | None:
    """Attack planted pictures behind more protections; None where the protections do not fit this client."""
    parameter = next(arguments.model.parameters())
    labels = arguments.threat.labels or "labels known" in best.attacker
    same = {name: getattr(arguments, name) for name in SAME}
    try:
        chosen = AttackArguments(
            arguments.model,
            batch[0].to(parameter),
            batch[1].to(parameter.device),
            attack=plugin(best.attack, **best.fields),
            defenses=[*arguments.defenses, *added],
            threat_model=replace(arguments.threat, adaptive=adaptive, strategy="", labels=labels),
            **same,
        )
        return attack_run(chosen).result
    except MODEL_ERRORS:
        return None
