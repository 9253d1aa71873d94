"""An update that was recorded elsewhere, and what an attacker reads in it under the declared settings or under others."""

from collections import deque
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from leakage.api import input_check
from leakage.api.arguments import AttackArguments
from leakage.api.loss_check import check_loss, custom_loss
from leakage.api.model_check import outputs, prepared
from leakage.api.model_copy import again
from leakage.api.preparation import module_of, random_pictures
from leakage.api.second_derivative import check_second_derivative
from leakage.api.update_check import update_of
from leakage.engine.core import Attack, Batch, Observation, Params, Statistics, generator
from leakage.engine.devices import exact_arithmetic
from leakage.engine.loading import load
from leakage.engine.losses import set_loss
from leakage.engine.observe import ready, received
from leakage.evaluation.referee import distances, pixels

SHORT_SEARCH = 50  # optimizer steps
CLEARLY_BETTER = 0.6  # the batch's statistics fit clearly better below this fraction of the distance that the stored ones leave
Mode = Literal["eval", "batch"]


@dataclass(frozen=True)
class Arrival:
    """An update that was recorded elsewhere.

    Args:
        model: a prepared copy of the caller's model; its BatchNorm mode is not decided yet
        sent: the update by parameter name, as the protocol sends it
        arguments: the arguments of the call to `leakage.attack`
        batch: how many pictures there are, their shape and the number of classes
        labels: (B,) or (B, K), if they are known
        probe: random pictures (B, C, H, W), on which properties of the model are tested
        statistics: of the private batch, by BatchNorm layer, if the client sent them; None: they are unknown
    """

    model: nn.Module
    sent: Params
    arguments: AttackArguments
    batch: Batch
    labels: Tensor | None
    probe: Tensor
    statistics: Statistics | None = None

    def observation(self, batch_norm: Mode, *, negated: bool = False) -> Observation:
        """Return what the server received, with BatchNorm in this mode; `negated`: the update with the opposite sign."""
        federation = self.arguments.federation
        model = ready(again(self.model), federation, self.probe, batch_norm=batch_norm)
        sent = {name: -value for name, value in self.sent.items()} if negated else self.sent
        return received(model, sent, federation, self.batch, labels=self.labels, statistics=self.statistics)

    def short_search(self, batch_norm: Mode, *, negated: bool = False) -> dict[str, float]:
        """Search for pictures for SHORT_SEARCH optimizer steps; return how far their update remains from the received update.

        Args:
            batch_norm: the BatchNorm mode that the search assumes.
            negated: whether to search with the opposite sign of the update.

        Returns:
            "cosine" and "relative_l2", the cosine distance and the relative L2 distance.

        Raises:
            ValueError: when the model cannot be searched, for example because it cannot be differentiated twice.
        """
        seen = self.observation(batch_norm, negated=negated)
        check_second_derivative(seen.model, self.probe, torch.zeros(len(self.probe), dtype=torch.long, device=self.probe.device))
        search: Attack = load("attack", "inverting_gradients")(steps=SHORT_SEARCH)
        with exact_arithmetic():
            (last,) = deque(search.run(seen, generator(self.arguments.seed, "attack")), maxlen=1)
            return distances(seen, pixels(last), last.y)

    def batch_norm(self) -> Mode:
        """Return the BatchNorm mode of the call; for "auto" that with which a short search for pictures fits the update.

        The statistics of the batch are chosen only if they fit clearly better than the stored ones.

        A defense that processes the pictures separately cannot have used the statistics of the batch.
        """
        if self.arguments.batch_norm != "auto":
            return self.arguments.batch_norm
        if not stores_statistics(self.model) or any(item.defense.one_by_one for item in self.arguments.federation.protections):
            return "eval"
        try:
            stored, batch = (self.short_search(mode)["cosine"] for mode in MODES)
        except ValueError:  # this model cannot be searched, or its batch has no statistics
            return "eval"
        return "batch" if batch < CLEARLY_BETTER * stored else "eval"


MODES: tuple[Mode, Mode] = ("eval", "batch")


def stores_statistics(model: nn.Module) -> bool:
    """Return whether a BatchNorm of the model stores statistics, which it uses in eval mode in place of the batch's."""
    norms = [layer for layer in model.modules() if isinstance(layer, nn.modules.batchnorm._BatchNorm)]
    return any(layer.running_mean is not None for layer in norms)


def received_update(arguments: AttackArguments) -> Arrival:
    """Check an update that was recorded elsewhere, and prepare the model for it.

    Args:
        arguments: of `leakage.attack`: `update` with `image_shape` (C, H, W), `batch_size` and, if the attacker knows them, labels `y`.

    Returns:
        The update in the model's precision beside a prepared copy of the model.

    Raises:
        TypeError, ValueError: when the update does not fit the model, or the shape, the batch size or the labels are not allowed.
    """
    image_shape, batch_size, y = arguments.image_shape, arguments.batch_size, arguments.y
    if image_shape is None or len(image_shape) != 3 or not all(isinstance(side, int) and side > 0 for side in image_shape):
        raise ValueError(f"An update alone needs image_shape=(C, H, W), whole numbers above 0; got {image_shape!r}.")
    if not isinstance(batch_size, int) or batch_size < 1:
        raise ValueError(f"An update alone needs batch_size, a whole number above 0; got {batch_size!r}.")
    assert arguments.update is not None
    federation = arguments.federation
    probe = random_pictures(module_of(arguments.model), image_shape, batch_size)
    model = prepared(arguments.model, probe, arguments.normalization)
    logits = outputs(model, probe)
    num_classes, loss = logits.shape[1], custom_loss(arguments.loss, logits.shape[1])
    y = None if y is None else input_check.labels(y, probe, num_classes, custom=loss is not None)
    if loss:
        set_loss(model, loss)
        if y is not None:
            check_loss(loss, logits, y)
    shape = (image_shape[0], image_shape[1], image_shape[2])
    trained = federation.changed(again(model), shape) if federation.changes_model else model
    sent = update_of(arguments.update, arguments.model, dict(trained.named_parameters()))
    input_check.check_length(sent)
    batch = Batch(batch_size, shape, num_classes)
    return Arrival(model, sent, arguments, batch, y, probe)
