"""An update alone, as it arrived: what the server can make of it under what is declared, or under something else."""

from collections import deque
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from leakage.api import input_check
from leakage.api.loss_check import check_loss, custom_loss
from leakage.api.model_check import outputs, prepared
from leakage.api.model_copy import again
from leakage.api.second_derivative import check_second_derivative
from leakage.api.terms import Shape, Terms, module_of, probe_of
from leakage.api.update_check import Update, update_of
from leakage.engine.core import Attack, Observation, Params, generator
from leakage.engine.devices import exact_arithmetic
from leakage.engine.loading import load
from leakage.engine.losses import set_loss
from leakage.engine.observe import Batch, ready, received
from leakage.evaluation.referee import distances, pixels

PROBE = 50  # steps of a short search
CLEARLY = 0.6  # the statistics of the batch fit better where they leave at most so much of the distance
Mode = Literal["eval", "batch"]


@dataclass(frozen=True)
class Arrival:
    """An update alone.

    model   a copy that is prepared; nothing is decided yet about its BatchNorm
    sent    the update by parameter, as the protocol sends it
    labels  those of its pictures, if they are known
    probe   random pictures of the right shape
    """

    model: nn.Module
    sent: Params
    terms: Terms
    batch: Batch
    labels: Tensor | None
    probe: Tensor

    def observation(self, batch_norm: Mode, *, turned: bool = False) -> Observation:
        """What the server holds. `turned`: of an update with the opposite sign."""
        own = ready(again(self.model), self.terms.federation, self.probe, batch_norm=batch_norm)
        sent = {name: -value for name, value in self.sent.items()} if turned else self.sent
        return received(own, sent, self.terms.federation, self.batch, labels=self.labels)

    def short_search(self, batch_norm: Mode, *, turned: bool = False) -> dict[str, float]:
        """How near a search of PROBE steps comes to the update: cosine and relative distance. Raises ValueError where it cannot search."""
        seen = self.observation(batch_norm, turned=turned)
        check_second_derivative(seen.model, self.probe, torch.zeros(len(self.probe), dtype=torch.long, device=self.probe.device))
        search: Attack = load("attack", "inverting_gradients")(steps=PROBE)
        with exact_arithmetic():
            (last,) = deque(search.run(seen, generator(self.terms.seed, "attack")), maxlen=1)
            return distances(seen, pixels(last), last.y)

    def batch_norm(self) -> Mode:
        """What is declared of BatchNorm; "auto": the batch's statistics if a short search fits clearly better with them, else the stored.

        A client that treats its pictures one by one cannot have used those of the batch.
        """
        if self.terms.batch_norm != "auto":
            return self.terms.batch_norm
        if not stores_statistics(self.model) or any(own.one_by_one for own in self.terms.defenses):
            return "eval"
        try:
            stored, batch = (self.short_search(mode)["cosine"] for mode in MODES)
        except ValueError:  # this model cannot be searched, or its batch has no statistics
            return "eval"
        return "batch" if batch < CLEARLY * stored else "eval"


MODES: tuple[Mode, Mode] = ("eval", "batch")


def stores_statistics(model: nn.Module) -> bool:
    """Whether a BatchNorm of the model has statistics that eval mode uses in place of the batch's."""
    norms = [layer for layer in model.modules() if isinstance(layer, nn.modules.batchnorm._BatchNorm)]
    return any(layer.running_mean is not None for layer in norms)


def arrived(model: nn.Module, update: Update, terms: Terms, y: Tensor | None, image_shape: Shape | None, batch_size: int | None) -> Arrival:
    """An update that somebody hands in; y: the labels of its pictures, if they are known. Raises TypeError, ValueError."""
    if image_shape is None or len(image_shape) != 3 or not all(isinstance(side, int) and side > 0 for side in image_shape):
        raise ValueError(f"An update alone needs image_shape=(C, H, W), whole numbers above 0; got {image_shape!r}.")
    if not isinstance(batch_size, int) or batch_size < 1:
        raise ValueError(f"An update alone needs batch_size, a whole number above 0; got {batch_size!r}.")
    probe = probe_of(module_of(model), image_shape, batch_size)
    own = prepared(model, probe, terms.normalization)
    logits = outputs(own, probe)
    num_classes, loss = logits.shape[1], custom_loss(terms.loss, logits.shape[1])
    y = None if y is None else input_check.labels(y, probe, num_classes, custom=loss is not None)
    if loss:
        set_loss(own, loss)
        if y is not None:
            check_loss(loss, logits, y)
    trained = terms.federation.changed(again(own)) if terms.federation.changes else own
    sent = update_of(update, model, dict(trained.named_parameters()))
    input_check.check_length(sent)
    batch = Batch(batch_size, (image_shape[0], image_shape[1], image_shape[2]), num_classes)
    return Arrival(own, sent, terms, batch, y, probe)
