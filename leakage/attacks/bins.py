"""Pictures from the bins that a server has built into the model: one division for each bin, no search."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from leakage.attacks._dense import received
from leakage.attacks._labels import labels_of
from leakage.attacks._repeated import earlier_rounds, with_repeated
from leakage.attacks.linear_layer import in_order, snapshot_of
from leakage.engine.arranged import Bins
from leakage.engine.core import Attack, Observation, Params, Snapshot, param
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.engine.labels import rule_field

HONEST = (
    "This attack reads pictures from bins that a cheating server has built into the model, and here the server follows the protocol. "
    "Choose such a server, for example imprint."
)
GREY = 0.5  # in place of a picture that was not found


@dataclass(frozen=True, kw_only=True)
class BinReading(Attack):
    """x = (dL/dW_i - dL/dW_(i+1)) / (dL/db_i - dL/db_(i+1)) for each bin i; nothing is subtracted for the last bin.

    The published differencing subtracts row i - 1 from row i, so that it loses the pictures of the last bin, and takes the mean of all
    pictures for one. A bin with several pictures gives a mixture of them. The attack keeps the bins with the largest bias gradients, at
    most as many as there are pictures; the remaining places are grey.
    Where the server places the bins anew in each round, the attacked round has the finest. A picture on which two earlier rounds agree is
    added if that round lacks it, as the content of a bin with several pictures changes from round to round.
    Source: Fowl et al. 2022, algorithm 1; Zhao et al. 2024 (LOKI), section 4.
    """

    title = "Solve the bins that a server has built in"
    short = "Bins"
    plain = "Divides the gradients of a layer that the server has added: each bin with a single picture gives this picture."
    hint = "Needs a server that changes the model (imprint). Raise the number of pictures until some of them share a bin."
    way = "Divide one gradient by another, bin by bin: no search."
    loss_name = "squared relative gradient distance"
    source = "https://arxiv.org/abs/2110.13057"
    reads_labels = True

    threshold: float = param(1e-6, 0, 1, "Bins with a bias gradient below this fraction of the largest count as empty.")
    label_rule: str = rule_field()

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        if seen.secret is None:
            raise DoesNotApplyError(HONEST)
        labels, note = labels_of(seen, self.label_rule)
        found = self._pictures(seen.as_gradient(), seen.secret, seen.batch.size)
        if seen.secret.every_round and len(found) < seen.batch.size:
            updates = [past.update for past in earlier_rounds(seen, f"{seen.secret.layer}.bias")]
            earlier = [self._pictures(seen.replay.to_gradient(update), seen.secret, seen.batch.size) for update in updates]
            found = with_repeated(found, earlier, most=seen.batch.size)
        x = torch.cat([found, torch.full((seen.batch.size - len(found), found.shape[1]), GREY, dtype=found.dtype)])
        places = f"{len(found)} of the bins of {seen.secret.layer}; each gives one picture, or a mixture of several"
        left = f"; {seen.batch.size - len(found)} places are grey: not looked for" if len(found) < seen.batch.size else ""
        yield replace(snapshot_of(seen, in_order(seen, x, labels), labels), note={**note, "read from": places + left})

    def _pictures(self, gradient: Params, arranged: Bins, count: int) -> Tensor:
        """Return the content of the filled bins, (N, n) in float64, for N <= `count`."""
        rows, d = received(gradient, f"{arranged.layer}.weight"), received(gradient, f"{arranged.layer}.bias")  # (K, n), (K,)
        if arranged.cumulative:
            rows, d = _differences(rows), _differences(d)
        size = d.abs()
        most = size.topk(min(count, len(d))).indices.sort().values
        filled = most[size[most] > self.threshold * size.max()]
        return rows[filled] / d[filled].unsqueeze(1)


def _differences(rows: Tensor) -> Tensor:
    """Return row i minus row i + 1; the last row stays."""
    return rows - torch.cat([rows[1:], torch.zeros_like(rows[:1])])
