"""SPEAR: the attack computes a whole batch exactly from one gradient, and proves the pictures without the truth."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from leakage.attacks._certificate import BatchDirections, Layer, Proof, exchange, independent_indices
from leakage.attacks._dense import exact, received
from leakage.attacks._features import pictures_of
from leakage.attacks._labels import class_scores, labels_of, readable
from leakage.attacks._plots import spectrum_view, zeros_view
from leakage.attacks._read_layers import Reading, ReadLayer
from leakage.attacks._spear_search import descend, sample, spectrum
from leakage.attacks._spear_words import NOTHING, SILENT, TOO_MANY, verdict
from leakage.attacks.linear_layer import as_pictures, snapshot_of
from leakage.engine.core import Attack, Observation, Snapshot, choice, param
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.engine.losses import fractions_of
from leakage.engine.matching import grey_pictures

LABEL_RULE = "of each picture that was found, by the last layer's gradient"
SEARCHES = {"descent": descend, "samples": sample}
IDLE, RISE = 16, 1e-4  # the search ends when IDLE rounds in a row raise lambda by no more than RISE
EXCHANGE = 4  # the first of every EXCHANGE idle rounds exchanges directions


@dataclass(frozen=True, kw_only=True)
class SPEAR(Attack):
    """G = dL/dW = D X: the columns of D, zero wherever ReLU was off for a picture, are the sparse directions of G's column space.

    For a batch of B pictures, fewer than units and inputs, G has rank B, so B singular values stand out. G = U S V^T and D = U Q; the
    columns of Q are the directions q for which U q has the most zeros (`attacks/_spear_search.py`). The bias's gradient D 1 gives their
    scales, and X = D^+ G. Two measurements prove the pictures without the truth (`attacks/_certificate.py`). Lambda is the fraction of
    units with (W x_i + b)_j > 0 exactly where D_ji is not 0; at random it is about a half. The replayed update of the pictures has to be
    the received update. The pictures are called proved only if both hold. The attack needs no label and no prior. The noise in the smaller
    singular values decides which entries count as zero. The sum over several clients has the form D X again: it is a larger batch, and does
    not show to which client a picture belongs.
    If the layer is not the first, X are features: the attack then searches for pictures with these features, by 1 - cosine and total
    variation.
    Unlike the paper: descent on the sphere in place of samples by default; a cut of the singular values that withstands noise (Gavish and
    Donoho 2014); candidates exchanged by lambda; features of later layers.
    Source: Dimitrov, Baader, Mueller and Vechev 2024.
    """

    title = "Solve a whole batch by its zeros (SPEAR)"
    short = "SPEAR"
    plain = "Takes a whole batch of pictures apart, exactly, by the units that each picture leaves switched off."
    hint = "Needs a fully connected layer with ReLU: the MLP, best with a normalised input. It says by itself whether it was right."
    source = "https://arxiv.org/abs/2403.03945"
    way = "Split the gradient into pictures by its zeros."
    evaluations_per_step = 300
    loss_name = "squared relative gradient distance"
    reads_labels = True
    strongest = {}
    fits = {"pictures": tuple(range(2, 65)), "model": ("mlp",)}  # one picture the bias attack reads off
    presets = {"As published (Dimitrov et al. 2024)": {"search": "samples"}, "Ours: descent": {"search": "descent"}}

    search: str = choice("descent", tuple(SEARCHES), "How zeros are found: by descent, or by samples as published (10 pictures at most).")
    feature_steps: int = param(300, 1, 2000, "Where only features of the pictures are found: steps of the search for the pictures.")

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        labels, note = labels_of(seen, "best")
        read_layer, pixels = Reading.of(seen).relu_layer()
        layer, blank = layer_of(seen, read_layer), arrange_pictures(seen, torch.empty(0), labels, torch.empty(0))
        if not layer.cut.rank:
            yield replace(blank, note={**note, "event": NOTHING})
            return
        note = note | {"read from": read_layer.name, "rank": layer.cut.rank}
        yield replace(blank, step=0, note=note, views=spectrum_view(layer.cut))
        step, now, last = 0, BatchDirections(layer.cut.left.new_zeros(layer.cut.rank, 0), torch.zeros(0)), blank
        for step, found in enumerate(self._search(layer, rng), 1):
            if pixels and found is not now:  # scoring pictures replays the client, which may take long
                x = arrange_pictures(seen, pixels.pixels(layer.inputs(found.q)[found.believed]), labels, found.sure[found.believed])
                last = replace(x, note=note | {"lambda": found.mean}, proved=None)
            now = found
            yield replace(last, step=step)
        views = zeros_view(layer.cut, now.q) if bool(now.believed.any()) else {}
        believed = layer.inputs(now.q)[now.believed]
        note |= {"lambda": now.mean}
        if pixels:
            unlabelled = seen.granted.labels is None and len(believed)
            details: dict[str, str | int | float] = {"label rule": LABEL_RULE} if unlabelled else {}
            x = arrange_pictures(seen, pixels.pixels(believed), labels, now.sure[now.believed])
            proof = Proof.of(seen, layer.cut, now, float(x.loss))
            details |= {"proved": proof.proved, "event": verdict(seen, read_layer.name, layer, now, proof, raw=pixels.is_raw)}
            yield replace(x, step=step + 1, note=note | details, views=views, proved=x.proved if proof.replayed else None)
            return
        note |= {"proved": 0, "event": verdict(seen, read_layer.name, layer, now, None)}
        yield replace(blank, step=step + 1, note=note, views=views)
        if len(believed):
            for last in pictures_of(seen, read_layer.enters, believed, labels, steps=self.feature_steps, rng=rng):
                yield replace(last, step=step + 1 + last.step, note={k: v for k, v in note.items() if k != "event"})
            yield replace(last, step=step + 1 + last.step, note=note)  # the answer repeats what it is

    def _search(self, layer: Layer, rng: torch.Generator) -> Iterator[BatchDirections]:
        """Search for a direction for each picture; yield the best choice so far after every round.

        The search ends when enough units agree with every picture (`BatchDirections.sure`), or when IDLE rounds improve nothing.
        """
        idle, rank = 0, layer.cut.rank
        now = BatchDirections(layer.cut.left.new_zeros(rank, 0), torch.zeros(0))
        for found in SEARCHES[self.search](layer.cut, rng):
            indices = independent_indices(found)
            if idle % EXCHANGE == 1 and len(indices) == rank:
                indices = exchange(layer, found, indices)
            candidate = BatchDirections(found[:, indices], layer.agreement(found[:, indices]))
            better = (len(candidate.agreement), candidate.mean) > (len(now.agreement), now.mean + RISE)
            idle, now = (0, candidate) if better else (idle + 1, now)
            yield now
            if now.whole and (now.agreed == rank or idle >= IDLE):
                return


def layer_of(seen: Observation, read_layer: ReadLayer) -> Layer:
    """Return the layer with the spectrum of its gradient.

    Raises DoesNotApplyError if the gradient is 0, or if there are as many pictures as units or inputs.
    """
    gradient = seen.as_gradient()
    weight_gradient, d = (received(gradient, f"{read_layer.name}.{part}") for part in ("weight", "bias"))
    if not weight_gradient.any():
        raise DoesNotApplyError(SILENT.format(read_layer.name))
    if seen.batch.size >= min(weight_gradient.shape):
        raise DoesNotApplyError(TOO_MANY.format(seen.batch.size, *weight_gradient.shape))
    cut = spectrum(weight_gradient, seen.batch.size)
    weight, bias = (exact(seen.received.weights[f"{read_layer.name}.{part}"]) for part in ("weight", "bias"))
    return Layer(weight, bias, d, cut)


def arrange_pictures(seen: Observation, pixels: Tensor, labels: Tensor, sure: Tensor) -> Snapshot:
    """Return a Snapshot of the found pictures, arranged as a batch; a picture that was not found is grey.

    Granted labels decide the order of the pictures. If no labels are granted, each found picture gets the label that the last layer's
    gradient shows for it, and grey pictures keep `labels`.

    Args:
        seen: what the attacker observed.
        pixels: the found pictures, (P, n).
        labels: the labels of the batch, (B,).
        sure: which of the found pictures can be proved (`BatchDirections.sure`), (P,) bool.
    """
    x = grey_pictures(seen)
    labels, proved = labels.clone(), torch.zeros(seen.batch.size, dtype=torch.bool)
    if len(pixels):
        found = as_pictures(seen, pixels)
        indices = torch.arange(len(found))
        if seen.granted.labels is None:
            labels[indices] = class_scores(seen, found).to(seen.device).argmax(1)  # (P, K)
        elif readable(seen):
            scores = class_scores(seen, found).to(seen.device)
            wanted = fractions_of(labels, scores.shape[1]).to(scores)  # (B, K)
            indices = torch.as_tensor(linear_sum_assignment(-(scores @ wanted.T).cpu().numpy())[1])
        x[indices] = found
        proved[indices] = sure.cpu()
    return replace(snapshot_of(seen, x, labels), proved=proved)
