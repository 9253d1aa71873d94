"""What protections would buy: the fastest attack that showed pictures, on planted pictures, with and without several protections."""

import time
from collections.abc import Iterator, Sequence
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
from leakage.auditing.audit_attackers import AuditAttacker, attackers_of
from leakage.auditing.card import with_fields
from leakage.auditing.finding import Finding
from leakage.auditing.scenes import Scenes
from leakage.data.images import gallery, read
from leakage.engine.core import Defense
from leakage.evaluation.pools import tensor
from leakage.spec.words import INAPPLICABLE

SAME = ("defenses", "protocol", "aggregation", "server", "normalization", "batch_norm", "loss", "seed")  # arguments of the audit that stay
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
    """What an attack shows of planted pictures behind a protection, by its best attacker."""

    title: str
    """The protection with its fields; "none: the client as it is" without a further protection."""
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
    items = gallery()[:count]
    pictures = tensor([read("gallery", item.id, SIDE, 1 if shape[0] == 1 else 3) for item in items])
    pictures = F.interpolate(pictures, size=shape[1:], mode="area")
    pictures = pictures.repeat(-(-count // len(items)), 1, 1, 1)[:count]
    return pictures.repeat(1, -(-shape[0] // pictures.shape[1]), 1, 1)[:, : shape[0]]


def fastest(findings: Sequence[Finding]) -> Finding | None:
    """Return the finding of the fastest attack that showed pictures, else of the attack that showed most; None if none came to an answer.

    Args:
        findings: of an audit, the worst first.
    """
    leaking = [finding for finding in findings if finding.leaks]
    if leaking:
        return min(leaking, key=lambda finding: (len(finding.pictures), finding.seconds))
    return findings[0] if findings and findings[0].tried else None


def effects(arguments: AuditArguments, best: Finding, scenes: Scenes, until: float) -> Iterator[ProtectionEffect]:
    """Yield what the attack of `best` shows of planted pictures behind each protection, as long as there is time.

    Args:
        arguments: of the audit; its protections stay, and each protection is added behind them.
        best: a finding of that attack.
        scenes: of the audit.
        until: the time (`time.perf_counter`) at which the audit should end.
    """
    client, several = scenes.client(best.pictures), scenes.client(best.pictures).y.dim() == 2
    x = planted(len(client.x), (client.x.shape[1], client.x.shape[2], client.x.shape[3])).to(client.x)
    y = torch.arange(len(x), device=x.device) % client.num_classes
    longest = 0.0  # seconds that a row took: each also reads labels anew
    for added in ((), *((defense,) for defense in TRIED)):
        changed = replace(arguments, defenses=[*arguments.defenses, *added], threat_model=replace(arguments.threat, strategy=""), checks=())
        attackers = attackers_of(changed)
        begin = time.perf_counter()
        if begin + max(longest, len(attackers) * best.seconds) > until:
            return
        batch = (x, F.one_hot(y, client.num_classes).to(x) if several else y)
        results = [(_attacked(changed, best, batch, attacker), attacker.title) for attacker in attackers]
        longest = max(longest, time.perf_counter() - begin)
        known = [(result, title) for result, title in results if result and result.scores]
        name = ", ".join(map(with_fields, added)) or "none: the client as it is"
        if not known:
            yield ProtectionEffect(name, "", INAPPLICABLE, None, None)
            continue
        result, title = max(known, key=lambda pair: pair[0].scores["psnr"])
        assert result.verdict
        yield ProtectionEffect(name, title, result.verdict["word"], result.scores["psnr"], result.baselines["grey"]["psnr"])


def _attacked(arguments: AuditArguments, best: Finding, batch: tuple[Tensor, Tensor], attacker: AuditAttacker) -> Result | None:
    """Attack planted pictures behind the protections of a client; None where these do not fit it."""
    threat = attacker.with_labels.threat if "labels known" in best.attacker else attacker.threat
    same = {name: getattr(arguments, name) for name in SAME}
    try:
        chosen = AttackArguments(arguments.model, *batch, attack=plugin(best.attack, **best.fields), threat_model=threat, **same)
        return attack_run(chosen).result
    except MODEL_ERRORS:
        return None
