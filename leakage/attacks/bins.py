"""Pictures from the bins that a server has built into the model: one division for each bin, no search."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from leakage.attacks._dense import exact, finite, received
from leakage.attacks._labels import labels_of, readable
from leakage.attacks._repeated import earlier_rounds, with_repeated
from leakage.attacks.linear_layer import in_order, labels_by_class, snapshot_of
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
    pictures for one. Where each row answers to one bin alone, nothing is subtracted. Where each client has maps of its own in front of the
    layer, dL/dW_i is read in the client's columns, and dL/db_i in the columns of its map of ones. A bin with several pictures gives a
    mixture of them. The attack keeps the bins with the largest bias gradients, at most as many as there are pictures, or as the client
    has; the remaining places are grey.
    Where the server places the bins anew in each round, the attacked round has the finest. A picture on which two earlier rounds agree is
    added if that round lacks it, as the content of a bin with several pictures changes from round to round.
    Source: Fowl et al. 2022, algorithm 1; Zhao et al. 2024 (LOKI), section 4.
    """

    title = "Solve for the pictures in a cheating server's bins"
    short = "Bins"
    plain = "Divides one part of the added layer's gradient by another: each bin with a single picture gives this picture."
    hint = "Needs a server that changes the model (imprint, LOKI). Raise the number of pictures until some of them share a bin."
    way = "Divide one gradient by another, bin by bin: no search."
    loss_name = "squared relative gradient distance"
    source = "https://arxiv.org/abs/2110.13057"
    reads_labels = True
    fits = {"server": ("parameters", "architecture")}

    threshold: float = param(1e-6, 0, 1, "Bins with a bias gradient below this fraction of the largest count as empty.")
    label_rule: str = rule_field()

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        if seen.secret is None:
            raise DoesNotApplyError(HONEST)
        labels, note = labels_of(seen, self.label_rule)
        found, size = self._pictures(seen.as_gradient(), seen, seen.secret), seen.batch.size
        if seen.secret.every_round and len(found[0]) < size:
            updates = [past.update for past in earlier_rounds(seen, f"{seen.secret.layer}.bias")]
            earlier = [self._pictures(seen.replay.to_gradient(update), seen, seen.secret)[0] for update in updates]
            found = [with_repeated(found[0], earlier, most=size)]
        x = torch.cat([_with_grey(part, size // len(found)) for part in found])
        if len(found) == 1:
            x = in_order(seen, x, labels)
        elif readable(seen):  # the pictures stay with their clients, so it is the labels that move
            known = 1 if seen.granted.labels is None else len(found)
            labels = labels[labels_by_class(seen, x, labels, clients=known)]
        count = sum(map(len, found))
        grey = size - count
        places = f"{count} of the bins of {seen.secret.layer}; each gives one picture, or a mixture of several"
        left = f"; {grey} place{' is' if grey == 1 else 's are'} grey: not looked for" if grey else ""
        yield replace(snapshot_of(seen, x, labels), note={**note, "read from": places + left}, filled=(x != GREY).any(1))

    def _pictures(self, gradient: Params, seen: Observation, arranged: Bins) -> list[Tensor]:
        """Return the content of the filled bins, (N, n) in float64: of each client that has maps of its own, else of all clients."""
        blocks = _blocks(gradient, arranged, channels=seen.batch.image_shape[0])
        return [self._filled(*block, seen.batch.size // len(blocks)) for block in blocks]  # clients have equally many pictures

    def _filled(self, rows: Tensor, d: Tensor, count: int) -> Tensor:
        """Return the content of at most `count` filled bins, (N, n) in float64, from rows (K, n) and d (K,) of a bin each."""
        size = d.abs()
        most = size.topk(min(count, len(d))).indices.sort().values
        filled = most[size[most] > self.threshold * size.max()]
        return exact(rows[filled]) / d[filled].unsqueeze(1)


def _blocks(gradient: Params, arranged: Bins, *, channels: int) -> list[tuple[Tensor, Tensor]]:
    """Return the gradients of the bins: of the pictures of each client that has maps of its own, else of all pictures.

    Returns:
        Pairs of rows (K, n) and d (K,), d in float64; the row of a bin with a single picture x is d x.
    """
    weight = f"{arranged.layer}.weight"
    if arranged.clients:
        sums = finite(gradient, weight).detach()
        maps = sums.reshape(len(sums), arranged.clients, channels + 1, -1)  # (K, clients, C + 1, H W)
        return [(own[:, :-1].flatten(1), exact(own[:, -1]).mean(1) * arranged.scale) for own in maps.unbind(1)]
    rows, d = received(gradient, weight), received(gradient, f"{arranged.layer}.bias")  # (K, n), (K,)
    return [(_differences(rows), _differences(d)) if arranged.cumulative else (rows, d)]


def _differences(rows: Tensor) -> Tensor:
    """Return row i minus row i + 1; the last row stays."""
    return rows - torch.cat([rows[1:], torch.zeros_like(rows[:1])])


def _with_grey(found: Tensor, count: int) -> Tensor:
    """Return the found pictures (N, n), and after them grey ones: `count` in all."""
    return torch.cat([found, torch.full((count - len(found), found.shape[1]), GREY, dtype=found.dtype)])
