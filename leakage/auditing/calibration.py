"""How far to trust an answer without the truth: whether other starts agree, and what the attack makes of planted public pictures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from leakage.api.arguments import AttackArguments
from leakage.api.attacking import attack_run
from leakage.api.model_errors import MODEL_ERRORS
from leakage.auditing.protection_effects import planted
from leakage.engine.core import Attack
from leakage.evaluation.metrics import psnr
from leakage.evaluation.pairing import pair


@dataclass(frozen=True)
class Planted:
    """What an attack makes of public pictures that a client sends as the recorded client did."""

    psnr: tuple[float, ...]
    """Of each picture, in dB."""
    grey: float
    """The mean PSNR of a grey picture, in dB."""


def agreement(first: Tensor, second: Tensor) -> float:
    """Return the mean PSNR in dB between two answers (B, C, H, W), each picture beside the most similar one of the other answer."""
    return float(psnr(second[pair(second, first)], first).mean())


def measure_planted(
    arguments: AttackArguments,
    attack: Attack,
    labels: Sequence[int],
    batches: int,
    *,
    begin: Callable[[], bool] = lambda: True,
    stop: Callable[[], bool] = lambda: False,
) -> Planted:
    """Let a client send batches of public pictures as the card says, attack each, and compare the answers with the pictures.

    Args:
        arguments: of the attack on the recorded update.
        attack: the attack, with as many steps as it had there.
        labels: of the recorded batch, as far as they are known; the planted pictures get the same.
        batches: how many batches, each as large as the recorded one.
        begin: asked before each batch; no more follow when it returns False.
        stop: asked at each step of the attack; what was begun is then left out.
    """
    shape, size = arguments.image_shape, arguments.batch_size
    assert shape is not None
    assert size is not None
    x = planted(batches * size, shape)
    y = torch.tensor([labels[index % len(labels)] if labels else 0 for index in range(size)])
    found, grey = list[float](), list[float]()
    threat = arguments.threat  # the labels of the card are granted here, too
    simulated = replace(arguments, update=None, image_shape=None, batch_size=None, attack=attack, progress=None, threat_model=threat)
    parameter = next(arguments.model.parameters())
    for batch in x.split(size):
        if not begin():
            break
        try:
            result = attack_run(replace(simulated, x=batch.to(parameter), y=y.to(parameter.device)), should_stop=stop).result
        except MODEL_ERRORS:
            break
        if stop() or not result.scores:
            break
        found += psnr(result.reconstruction[pair(result.reconstruction, batch)], batch).tolist()
        grey += psnr(torch.full_like(batch, 0.5), batch).tolist()
    return Planted(tuple(found), sum(grey) / len(grey) if grey else 0.0)
