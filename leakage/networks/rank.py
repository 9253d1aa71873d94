"""Rank analysis: whether a gradient and the weights say enough about every layer's input to find the picture. No torch.

For the layers n = 1..d of a chain z_n = W_n x_n, x_(n+1) = activation(z_n), counts of numbers:

x       unknowns, padding left out
w       equations from the gradient: the weights of the kernel or matrix, biases left out
z       equations from the weights, one for each output that the attacker knows
v       equations handed on: a layer with more outputs than inputs constrains what comes after it, one with too few equations spends them
        v_1 = 0,  v_(n+1) = v_n + max(z_n - x_n, 0) - max(x_n - z_n - w_n, 0)
RA_n    x_n - w_n - z_n - v_n;  RA-i, the index of the network, is the largest of them: below 0 an attack that goes layer by layer has
        the equations that it needs, above 0 it has not; what other attacks can use: engine/jacobian_rank.py

A linear layer takes no part in the maximum: its gradient gives its whole input. A mean is a layer without weights, and does take part: the
paper does not say so, but its index of ResNet18 without the third skip, -7.8e3, is that of the mean (2,048 - 128 - 9,728 = -7,808). Of the
largest pixels only those that were the largest are known. A block with a skip is one layer: x its input, w the weights of its last
convolution, z its output, since what lies between follows from the input. BatchNorm with stored statistics is part of its convolution and
changes no count: the equation that the gradient of its scale gives follows from those of the weights.
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
    """One layer, or one residual block with its skip, as the index counts it; all counts of the whole batch.

    outputs   |z|; z is less where a measured share of the outputs is not 0
    rank      the exact rank of its own equations (w and z), None where no formula is known to hold
    measured  the same by singular values, None where it was not measured
    counted   whether it takes part in the maximum
    step      the place of its step in the network, from 0
    """

    name: str
    kind: Literal["conv", "linear", "mean", "max", "block"]
    step: int
    x: int
    w: int
    z: int
    outputs: int
    v: int
    rank: int | None
    counted: bool = True
    measured: int | None = None

    @property
    def local(self) -> int:
        """x - w - z: above 0 its own equations do not suffice."""
        return self.x - self.w - self.z

    @property
    def index(self) -> int:
        """RA_n."""
        return self.local - self.v

    @property
    def known(self) -> int | None:
        """The rank by the formula, else as measured."""
        return self.measured if self.rank is None else self.rank

    @property
    def deficiency(self) -> int | None:
        """Directions of x that its own equations leave open, by that rank."""
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
        """The layer that decides: the first with the largest index; None where only linear layers are left, which give everything."""
        return max((row for row in self.rows if row.counted), key=lambda row: row.index, default=None)

    @property
    def index(self) -> int | None:
        """RA-i."""
        return None if self.critical is None else self.critical.index

    @property
    def short(self) -> bool:
        """Whether some layer has fewer equations than unknowns: then an attack that goes layer by layer has to guess."""
        return self.index is not None and self.index > 0

    @property
    def solvable(self) -> bool:
        """Whether R-GAP can solve layer after layer; alone, no layer uses v."""
        return all(row.local <= 0 for row in self.rows if row.counted)


@dataclass(frozen=True)
class Cut:
    """What cutting one skip does. block: counted from 1 among the blocks; index: of the network without this skip; rise: how much more."""

    step: int
    block: int
    index: int
    rise: int


@dataclass(frozen=True)
class Filters:
    """How few filters leave a layer short.

    most: the largest number at which this layer alone has an index above 0, or None; now: as it stands
    """

    step: int
    now: int
    most: int | None


@dataclass(frozen=True)
class Advice:
    """What changes the count: skips, the most useful to cut first, and convolutions outside blocks, in order."""

    cuts: tuple[Cut, ...]
    filters: tuple[Filters, ...]


def analyse(maps: Iterable[Map], *, batch: int = 1, convention: Convention = "unit", kept: Mapping[str, float] | None = None) -> Analysis:
    """Compute the rank analysis of an unrolled network.

    convention   "unit": a block with a skip as above (appendix D). "w1_plus_shortcut": one with a stride counts the weights of its first
                 convolution and of its skip, and the output of its first convolution; v passes unchanged. The paper does not state it;
                 it gives the three indices of ResNet18 that are printed.
    kept         name of a map -> measured share of its outputs that the ReLU after it leaves above 0: a 0 hides the output behind it, so
                 only these keep their equation. After a block the name is that of its last map.

    >>> from leakage.networks.grammar import parse, unroll
    >>> analyse(unroll(parse("conv 4@4"), (3, 32, 32), 1)).index
    -484
    """
    shares = dict(kept or {})
    chain = tuple(maps)
    _check(chain, batch, convention, shares)
    rows: list[LayerCount] = []
    v = 0
    for _, group in groupby(chain, key=lambda map_: map_.step if map_.block and map_.block.skip else map_.name):
        unit = tuple(group)
        block = unit[0].block
        shrinks = convention == "w1_plus_shortcut" and block is not None and block.skip and block.stride > 1
        row = _row(unit, v, batch=batch, shares=shares, early=shrinks)
        rows.append(row)
        v += 0 if shrinks else max(row.z - row.x, 0) - max(row.local, 0)
    return Analysis(tuple(rows))


def advice(
    steps: tuple[Step, ...], image_shape: tuple[int, int, int], outputs: int, *, batch: int = 1, convention: Convention = "unit"
) -> Advice:
    """Compute for every skip the index without it, largest rise first; for every convolution how few filters protect its input.

    Fewer filters are fewer equations, from the gradient and from the weights: RA_n = B|x| - v - Co (Ci k^2 + B Ho Wo) > 0. One layer that
    cannot be solved suffices, since the network's index is the largest. What comes before it is left as it is.
    """
    maps = unroll(steps, image_shape, outputs)
    before = analyse(maps, batch=batch, convention=convention)
    cuts = []
    blocks = [place for place, step in enumerate(steps) if isinstance(step, Block)]
    for number, place in enumerate(blocks, 1):
        step = steps[place]
        if isinstance(step, Block) and step.skip:
            without = (*steps[:place], replace(step, skip=False), *steps[place + 1 :])
            after = analyse(unroll(without, image_shape, outputs), batch=batch, convention=convention).index
            assert after is not None
            assert before.index is not None
            cuts.append(Cut(place, number, after, after - before.index))
    filters = []
    for row in before.rows:
        if row.kind == "conv" and isinstance(step := steps[row.step], Conv):
            most = min((row.x - row.v - 1) // ((row.w + row.outputs) // step.filters), LIMITS["filters"][1])
            filters.append(Filters(row.step, step.filters, most if most > 0 else None))
    return Advice(tuple(sorted(cuts, key=lambda cut: -cut.rise)), tuple(filters))


def _row(unit: tuple[Map, ...], v: int, *, batch: int, shares: Mapping[str, float], early: bool) -> LayerCount:
    """Count a map, or the maps of a block with its skip; early: counted at its first convolution."""
    first, last = unit[0], unit[-1]
    known = first if early else last
    outputs = batch * known.outputs
    return LayerCount(
        name=first.name if len(unit) == 1 else first.name.partition(".")[0],
        kind=first.kind if len(unit) == 1 else "block",
        step=first.step,
        x=batch * first.inputs,
        w=known.weights + (last.shortcut if early else 0),
        z=round(shares.get(known.name, 1) * outputs),
        outputs=outputs,
        v=v,
        rank=_rank(first, batch) if len(unit) == 1 and shares.get(first.name, 1) == 1 else None,
        # Unlike the paper: with more pictures than units not even a linear layer's gradient gives its whole input.
        counted=first.kind != "linear" or batch > first.outputs,
    )


def _rank(layer: Map, batch: int) -> int | None:
    """Return the rank for a batch; None where no formula is known, as for a convolution of several pictures."""
    alone = batch == 1 or layer.kind in ("mean", "max") or (layer.kind == "linear" and batch < layer.outputs)
    rank = predicted_rank(layer) if alone else None
    return None if rank is None else batch * rank


def _check(maps: tuple[Map, ...], batch: int, convention: str, shares: Mapping[str, float]) -> None:
    if batch < 1:
        raise ValueError(f"rank analysis: expected a batch of at least one picture, got {batch}.")
    if convention not in CONVENTIONS:
        raise ValueError(f"rank analysis: the convention must be one of {', '.join(CONVENTIONS)}; got {convention!r}.")
    names = [map_.name for map_ in maps]
    for name, share in shares.items():
        if name not in names:
            raise ValueError(f"rank analysis: {name!r} is no map of this network. It has {', '.join(names)}.")
        if not 0 <= share <= 1:
            raise ValueError(f"rank analysis: expected the share of {name} to lie between 0 and 1, got {share}.")
