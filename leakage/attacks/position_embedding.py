"""The position embedding of a vision transformer: its gradient and that of the patch embedding give one picture by least squares."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from leakage.attacks._dense import received
from leakage.attacks._labels import labels_of
from leakage.attacks._read_layers import Reading
from leakage.attacks.linear_layer import as_pictures, snapshot_of
from leakage.engine.computation import Step
from leakage.engine.core import Attack, Observation, Snapshot, generator
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.engine.labels import rule_field
from leakage.engine.pixel_map import PixelMap, pixel_map

NEEDS = (
    "This attack needs a vision transformer: a convolution that cuts the picture into patches, and a position embedding that is added to "
    "them and trained. Here {}."
)
NO_PATCHES = "no convolution that the pixels enter has patches side by side (stride equal to kernel, no padding)"
NO_POSITION = "no trained parameter is added to the patches of {}"
OF_ONE = (
    "The gradient of the position embedding is a sum over the {} pictures in the update, so their patches cannot be told apart. "
    "This attack is for one picture."
)
TOO_FEW = (
    "There are {} patches and only {} units for each: more unknown patches than equations. Choose larger patches, or a smaller picture."
)
SILENT = (
    "No gradient reaches {}, because a layer behind it passes none back (a last layer with weights of 0, as torchvision's vision "
    "transformer has at first). After one step of training this is different: attack a later round."
)
DEPENDENT = (
    "{} of {} patches can be told apart: the gradients of the others are sums of theirs. Of the pictures that fit, this one has the least "
    "norm."
)
CONVOLUTION = ((3, "stride", 1), (4, "padding", 0), (5, "dilation", 1), (6, "groups", 1))  # arguments: position, name, default
ALIKE = 1e-3  # relative difference up to which two gradients are the same, computed in another order in float32
ROUNDING = 1e-6  # singular values below this fraction of the largest are rounding errors in float32


@dataclass(frozen=True)
class _Patches:
    """The patch embedding z_p = E x_p + b + pos_p of a vision transformer.

    layer      E is NAME.weight, (D, C, k, k)
    position   name of the position embedding
    first      the row of the position embedding that belongs to the first patch; class tokens come before it
    pixels     the map from pixels to the input of the convolution
    inputs     (C, H, W) of that input
    grid       rows and columns of patches
    """

    layer: str
    position: str
    first: int
    pixels: PixelMap
    inputs: tuple[int, ...]
    grid: tuple[int, int]

    @property
    def count(self) -> int:
        """The number of patches, P."""
        return self.grid[0] * self.grid[1]


@dataclass(frozen=True, kw_only=True)
class PositionEmbedding(Attack):
    """X = lstsq(G^T, dL/dE): the patches of one picture, from the gradients of the position embedding and of the patch embedding.

    A vision transformer computes z_p = E x_p + b + pos_p for each patch p. So dL/dpos_p = dL/dz_p = g_p, and dL/dE = sum_p g_p x_p^T. If
    the rows g_p of G (P, D) are independent, which needs P <= D, the patches X (P, n) are the only solution of G^T X = dL/dE, whatever
    layers come later. The attack finds E and pos by derivatives: pos is the parameter of which the gradient holds that of z. Rows of pos
    for class tokens are left out. Pixels that no patch covers stay grey.
    Unlike the paper: the equations are those of the patch embedding, so that any layers may follow. The paper's are those of query, key and
    value, and hold only where nothing stands between the position embedding and the attention.
    Source: the idea is of Lu et al. 2022, "APRIL: Finding the Achilles' Heel on Privacy for Vision Transformers".
    """

    title = "Solve the position embedding (after APRIL)"
    short = "Position embedding"
    plain = "Solves one system of equations for the patches of a picture, which a vision transformer's position embedding gives away."
    hint = "Needs a vision transformer of your own (leakage.attack), and one picture in the update: the solution is the picture."
    way = "Solve for the patches of the picture: no search."
    loss_name = "squared relative gradient distance"
    ends_without = "the position embedding or the patch embedding"
    source = "https://arxiv.org/abs/2112.14087"
    reads_labels = True
    strongest = {}
    fits = {"pictures": (1,), "model": ()}

    label_rule: str = rule_field()

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        labels, note = labels_of(seen, self.label_rule)
        if seen.batch.size > 1:
            raise DoesNotApplyError(OF_ONE.format(seen.batch.size))
        patches = _find_patches(seen)
        gradient = seen.as_gradient()
        embedding = received(gradient, f"{patches.layer}.weight")  # (D, C, k, k)
        units, kernel = len(embedding), embedding.shape[2:]
        if patches.count > units:
            raise DoesNotApplyError(TOO_FEW.format(patches.count, units))
        rows = received(gradient, patches.position).reshape(-1, units)[patches.first :][: patches.count]  # G, (P, D)
        if not bool(rows.any()):
            raise DoesNotApplyError(SILENT.format(patches.position))
        found = torch.linalg.lstsq(rows.T, embedding.flatten(1), driver="gelsd", rcond=ROUNDING)
        grey = patches.pixels.inputs(torch.full((patches.pixels.best.numel(),), 0.5, dtype=torch.float64)).reshape(patches.inputs)
        covered = [side * step for side, step in zip(patches.grid, kernel, strict=True)]
        grey[:, : covered[0], : covered[1]] = F.fold(found.solution.T[None], tuple(covered), tuple(kernel), stride=tuple(kernel))[0]
        answer = snapshot_of(seen, as_pictures(seen, patches.pixels.pixels(grey.flatten())[None]), labels)
        rank = int(found.rank)
        event = {} if rank == patches.count else {"event": DEPENDENT.format(rank, patches.count)}
        yield replace(answer, note={**note, "read from": f"{patches.position} and {patches.layer}", **event})


def _find_patches(seen: Observation) -> _Patches:
    """Return the patch embedding of the model that the server sent out. Raises DoesNotApplyError where there is none."""
    reading, why = Reading.of(seen), NO_PATCHES
    for step in reading.computed.steps:
        if step.function != "conv2d" or step.layer is None or not _cuts(step):
            continue
        if (pixels := pixel_map(seen.model, step.inputs[0], seen.batch.image_shape)) is None:
            continue
        position = _position_of(reading, step)
        if position is None:
            why = NO_POSITION.format(step.layer)
            continue
        inputs = tuple(reading.computed.value(step.inputs[0]).shape[1:])
        return _Patches(step.layer, *position, pixels, inputs, (step.value.shape[2], step.value.shape[3]))
    raise DoesNotApplyError(NEEDS.format(why))


def _cuts(step: Step) -> bool:
    """Return whether a convolution cuts its input into patches side by side."""
    kernel = step.given[1].shape[2:]
    stride, padding, dilation, groups = (step.argument(*named) for named in CONVOLUTION)
    pairs = [
        (value, value) if isinstance(value, int) else tuple(value) for value in (stride, padding, dilation) if not isinstance(value, str)
    ]
    return len(pairs) == 3 and pairs[0] == tuple(kernel) and pairs[1] == (0, 0) and pairs[2] == (1, 1) and groups == 1


def _position_of(reading: Reading, step: Step) -> tuple[str, int] | None:
    """Return the name of the position embedding that is added to a convolution's output, and its row for the first patch; None for none.

    It is the parameter of which the gradient holds that of the output.

    The derivatives of a random mixture of the logits are compared, on random pictures. The gradient of the convolution's weights must also
    be that of patches that enter it once. Raises DoesNotApplyError if no gradient reaches the convolution.
    """
    computed, layer = reading.computed, step.layer
    factors = torch.randn(computed.logits.shape, generator=generator(0, "position"), dtype=torch.float64).to(computed.logits)
    total, model = (computed.logits * factors).sum(), reading.seen.model
    named = {name: value for name, value in model.named_parameters() if name in reading.seen.received.weights}
    assert step.followed is not None
    weight = model.get_parameter(f"{layer}.weight")
    g, of_weight, *others = torch.autograd.grad(total, [step.followed, weight, *named.values()], retain_graph=True, allow_unused=True)
    if g is None or of_weight is None:
        return None
    if not bool(g.any()):
        raise DoesNotApplyError(SILENT.format(layer))
    entered = F.unfold(computed.value(step.inputs[0]), weight.shape[2:], stride=weight.shape[2:])  # (N, n, P)
    if not _alike(of_weight.flatten(1), torch.einsum("bdp,bnp->dn", g.flatten(2), entered)):
        return None
    tokens = g.flatten(2).sum(0).T  # (P, D)
    for name, gradient in zip(named, others, strict=True):
        if gradient is None or gradient.dim() == 0 or gradient.shape[-1] != tokens.shape[1]:
            continue
        rows = gradient.reshape(-1, tokens.shape[1])
        for first in range(len(rows) - len(tokens) + 1):
            if _alike(rows[first : first + len(tokens)], tokens):
                return name, first
    return None


def _alike(found: Tensor, expected: Tensor) -> bool:
    return float((found - expected).norm()) <= ALIKE * float(expected.norm()) and bool(expected.any())
