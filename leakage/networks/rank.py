"""Rank analysis: whether the gradient and the weights give enough equations for every layer's input to find the picture. No torch.

For the layers n = 1..d of a chain z_n = W_n x_n, x_(n+1) = activation(z_n), these are counts of numbers:

x       unknowns, padding left out
w       equations from the gradient: the weights of the kernel or matrix, biases left out
z       equations from the weights, one for each output that the attacker knows
v       equations handed on: a layer with more outputs than inputs constrains the layers after it, a layer with too few equations uses v
        v_1 = 0,  v_(n+1) = v_n + max(z_n - x_n, 0) - max(x_n - z_n - w_n, 0)
RA_n    x_n - w_n - z_n - v_n;  RA-i, the index of the network, is the largest RA_n. If it is above 0, an attack that goes layer by layer
        lacks equations. For other attacks see engine/jacobian_rank.py

A linear layer takes no part in the maximum: its gradient gives its whole input. A mean is a layer without weights, and does take part: the
paper does not say so, but its index of ResNet18 without the third skip, -7.8e3, is that of the mean (2,048 - 128 - 9,728 = -7,808). Max
pooling gives the largest pixels only. A block with a skip is one layer: x is its input, w the weights of its last convolution, z its
output, since all values in between follow from the input. BatchNorm with stored statistics is part of its convolution and changes no
count: the equation from the gradient of its scale follows from those of the weights.
Source: Zhu and Blaschko 2021, section 4, appendices C and D (https://arxiv.org/abs/2010.07733).
Unlike the paper: batches (x and z grow with the batch, w does not), and the exact rank beside the counts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal, get_args

from leakage.networks.exact_rank import predicted_rank
from leakage.networks.grammar import LIMITS, Block, Conv, Map, Step, unroll

Convention = Literal["unit", "w1_plus_shortcut"]
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)
CAVEATS = (
    "The index counts equations; it is an indicator, not a proof, and equations that follow from others are counted all the same.",
    "It knows nothing of the data, of numerical errors, or of how many outputs of a ReLU are 0 unless that share was measured.",
    "Where an attack starts, and whether one gradient fits two values of the output, lie outside it.",
    "A mean squared error of 1e-4 or less, pictures in [0, 1], looks lossless.",
)


@dataclass(frozen=True)
class LayerCount:
    """The counts of unknowns x and equations w, z, v for the input of a layer, or of a residual block with its skip, for the whole batch.

    x are the entries of the input, w the equations from the gradient, z those from the output, v those handed on by earlier layers.
    """

    name: str
    kind: Literal["conv", "linear", "mean", "max", "block"]
    step: int
    """The index of the layer's step in the network, from 0."""
    x: int
    w: int
    z: int
    """The equations from the outputs: fewer than `outputs` if only a measured fraction of the outputs is above 0."""
    outputs: int
    v: int
    rank: int | None
    """The exact rank of the layer's equations (w and z); None where no formula is known to hold."""
    counted: bool = True
    """Whether the layer takes part in the maximum."""
    measured: int | None = None
    """The rank of the layer's equations by singular values; None where it was not measured."""

    @property
    def local(self) -> int:
        """The number x - w - z of unknowns less equations of this layer; above 0 the layer's equations alone do not suffice."""
        return self.x - self.w - self.z

    @property
    def index(self) -> int:
        """The layer's index RA_n = x - w - z - v: unknowns less all equations."""
        return self.local - self.v

    @property
    def known(self) -> int | None:
        """The rank by the formula, else the measured rank; None if there is neither."""
        return self.measured if self.rank is None else self.rank

    @property
    def deficiency(self) -> int | None:
        """The number of directions of x that the layer's equations leave open, by `known`; None if the rank is not known."""
        return None if self.known is None else self.x - self.known


@dataclass(frozen=True)
class Analysis:
    """All layers of a network, from the picture to the outputs."""

    rows: tuple[LayerCount, ...]

    def with_measured(self, ranks: Mapping[str, int]) -> "Analysis":
        """Return the analysis with measured ranks, by the names of their layers."""
        return Analysis(tuple(replace(row, measured=ranks.get(row.name, row.measured)) for row in self.rows))

    @property
    def critical(self) -> LayerCount | None:
        """The first layer with the largest index; None if all layers are linear, because their gradients give their inputs."""
        return max((row for row in self.rows if row.counted), key=lambda row: row.index, default=None)

    @property
    def index(self) -> int | None:
        """The network's index RA-i; None if all layers are linear."""
        return None if self.critical is None else self.critical.index

    @property
    def short(self) -> bool:
        """Whether some layer has fewer equations than unknowns: then an attack that goes layer by layer has to guess."""
        return self.index is not None and self.index > 0

    @property
    def solvable(self) -> bool:
        """Whether R-GAP can solve one layer after the other, without the equations v that earlier layers hand on."""
        return all(row.local <= 0 for row in self.rows if row.counted)


@dataclass(frozen=True)
class Cut:
    """The effect of removing one skip connection on the network's index RA-i, the largest RA_n (`LayerCount.index`) of its layers."""

    step: int
    """The index of the block's step in the network."""
    block: int
    """The number of the block among all blocks, from 1."""
    index: int
    """RA-i of the network without this skip."""
    rise: int
    """By how much RA-i is larger than with the skip."""


@dataclass(frozen=True)
class Filters:
    """The number of filters below which a convolution lacks equations."""

    step: int
    """The index of the convolution's step in the network."""
    now: int
    """The present number of filters."""
    most: int | None
    """The largest number of filters with which this layer's index is above 0; None if there is none."""


@dataclass(frozen=True)
class Advice:
    """Changes of a network that leave an attacker with fewer equations: skips to remove, and convolutions with fewer filters."""

    cuts: tuple[Cut, ...]
    """The skips that can be cut, the largest rise of the index first."""
    filters: tuple[Filters, ...]
    """The convolutions outside blocks, in their order."""


def analyse(maps: Iterable[Map], *, batch: int = 1, convention: Convention = "unit", kept: Mapping[str, float] | None = None) -> Analysis:
    """Compute the rank analysis of an unrolled network.

    Args:
        maps: the maps of the network, as `unroll` returns them.
        batch: the number of pictures in the gradient.
        convention: how a block with a skip is counted. "unit": as one layer, with the weights of its last convolution and its output
            (appendix D). "w1_plus_shortcut": the same, but with a stride it counts the weights of its first convolution and of its skip,
            and the output of its first convolution, and hands the equations v of earlier layers on unchanged. The paper does not state
            this convention, but it gives the three indices of ResNet18 that the paper prints.
        kept: name of a map -> measured fraction of its outputs that the ReLU after it leaves above 0: a 0 hides the output before the
            ReLU, so only these outputs give equations. A block has the name of its last map.

    >>> from leakage.networks.grammar import parse, unroll
    >>> analyse(unroll(parse("conv 4@4"), (3, 32, 32), 1)).index
    -484
    """
    fractions = dict(kept or {})
    chain = tuple(maps)
    _check(chain, batch, convention, fractions)
    rows: list[LayerCount] = []
    v = 0
    for _, group in groupby(chain, key=lambda map_: map_.step if map_.block and map_.block.skip else map_.name):
        unit = tuple(group)
        block = unit[0].block
        shrinks = convention == "w1_plus_shortcut" and block is not None and block.skip and block.stride > 1
        row = _row(unit, v, batch=batch, fractions=fractions, early=shrinks)
        rows.append(row)
        v += 0 if shrinks else max(row.z - row.x, 0) - max(row.local, 0)
    return Analysis(tuple(rows))


def advice(
    steps: tuple[Step, ...], image_shape: tuple[int, int, int], outputs: int, *, batch: int = 1, convention: Convention = "unit"
) -> Advice:
    """Compute for every skip the index RA-i of the network without it, and for every convolution how few filters protect its input.

    Only convolutions outside blocks count. Co filters of k x k, with Ci input channels and Ho x Wo outputs, leave a batch of B pictures
    RA_n = B|x| - v - Co (Ci k^2 + B Ho Wo) more unknowns than equations; above 0 they protect the input x. One layer with too few equations
    suffices, since the network's index is the largest of all layers. The layers before it stay as they are.
    """
    maps = unroll(steps, image_shape, outputs)
    before = analyse(maps, batch=batch, convention=convention)
    cuts = []
    blocks = [index for index, step in enumerate(steps) if isinstance(step, Block)]
    for number, index in enumerate(blocks, 1):
        step = steps[index]
        if isinstance(step, Block) and step.skip:
            without = (*steps[:index], replace(step, skip=False), *steps[index + 1 :])
            after = analyse(unroll(without, image_shape, outputs), batch=batch, convention=convention).index
            assert after is not None
            assert before.index is not None
            cuts.append(Cut(index, number, after, after - before.index))
    filters = []
    for row in before.rows:
        if row.kind == "conv" and isinstance(step := steps[row.step], Conv):
            most = min((row.x - row.v - 1) // ((row.w + row.outputs) // step.filters), LIMITS["filters"][1])
            filters.append(Filters(row.step, step.filters, most if most > 0 else None))
    return Advice(tuple(sorted(cuts, key=lambda cut: -cut.rise)), tuple(filters))


def _row(unit: tuple[Map, ...], v: int, *, batch: int, fractions: Mapping[str, float], early: bool) -> LayerCount:
    """Return the counts of unknowns and equations of a layer, or of a block with its skip.

    Args:
        unit: the map of the layer, or all maps of the block.
        v: the equations handed on by earlier layers.
        batch: the number of pictures.
        fractions: name of a map -> the fraction of its outputs that gives equations; by default all.
        early: whether to count w (with the weights of the skip) and z at the first convolution of the block, not at the last.
    """
    first, last = unit[0], unit[-1]
    known = first if early else last
    outputs = batch * known.outputs
    return LayerCount(
        name=first.name if len(unit) == 1 else first.name.partition(".")[0],
        kind=first.kind if len(unit) == 1 else "block",
        step=first.step,
        x=batch * first.inputs,
        w=known.weights + (last.shortcut if early else 0),
        z=round(fractions.get(known.name, 1) * outputs),
        outputs=outputs,
        v=v,
        rank=_rank(first, batch) if len(unit) == 1 and fractions.get(first.name, 1) == 1 else None,
        # Unlike the paper: with more pictures than units not even a linear layer's gradient gives its whole input.
        counted=first.kind != "linear" or batch > first.outputs,
    )


def _rank(layer: Map, batch: int) -> int | None:
    """Return the rank of all equations for a layer's input; None where no formula is known, as for a convolution of several pictures."""
    alone = batch == 1 or layer.kind in ("mean", "max") or (layer.kind == "linear" and batch < layer.outputs)
    rank = predicted_rank(layer) if alone else None
    return None if rank is None else batch * rank


def _check(maps: tuple[Map, ...], batch: int, convention: str, fractions: Mapping[str, float]) -> None:
    if batch < 1:
        raise ValueError(f"rank analysis: expected a batch of at least one picture, got {batch}.")
    if convention not in CONVENTIONS:
        raise ValueError(f"rank analysis: the convention must be one of {', '.join(CONVENTIONS)}; got {convention!r}.")
    names = [map_.name for map_ in maps]
    for name, fraction in fractions.items():
        if name not in names:
            raise ValueError(f"rank analysis: {name!r} is no map of this network. It has {', '.join(names)}.")
        if not 0 <= fraction <= 1:
            raise ValueError(f"rank analysis: expected the fraction of {name} to lie between 0 and 1, got {fraction}.")
