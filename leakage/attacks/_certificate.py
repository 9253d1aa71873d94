"""The pictures that directions make of a gradient, the share of ReLUs that agree with them, and their replay: a proof without the truth.

D = U Q diag(s) with dL/db = D 1, and G = D X. If X is what entered the layer, then (W x_i + b)_j > 0 exactly where D_ji is not 0.
That speaks of this layer alone: another scale of the pixels, or a step before the layer that was read wrongly, may leave it as it is. So
the pictures are sent once more through the client that the attacker imitates, and all of their update has to be the one received.
Source: Dimitrov, Baader, Mueller and Vechev 2024; the replay is ours.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from leakage.attacks._spear import GradientSpectrum
from leakage.engine.core import Observation
from leakage.engine.tensor_names import OF

APART = 1e-3  # sine of the angle between a direction and those chosen before: below this it is none of its own
BELIEVED = 0.75  # a picture is shown where so large a share of the units agrees with it,
PROVED = 0.99  # ... and proved where it is this large; of what is no picture about a half agrees at random
SWEEPS = 2
MOVED = 4.0  # how many times the noise of an update its replay may be away


@dataclass(frozen=True)
class Layer:
    """A fully connected layer as the server holds it: weight (m, n), bias (m,) and the bias's gradient (m,); with G's spectrum."""

    weight: Tensor
    bias: Tensor
    weight_gradient: Tensor
    cut: GradientSpectrum

    @cached_property
    def _projected(self) -> Tensor:
        """W right^T, (m, rank)."""
        return self.weight @ self.cut.right.T

    def scales(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """The inverse of q (K, rank) and s (K,), by which D = U q diag(s) sums to the bias's gradient."""
        inverse, failed = torch.linalg.inv_ex(q) if len(q) == q.shape[1] else (q, True)
        inverse = torch.linalg.pinv(q) if failed else inverse
        return inverse, inverse @ (self.cut.left.T @ self.weight_gradient)

    def inputs(self, q: Tensor) -> Tensor:
        """What entered the layer if its directions are q (rank, K): (K, n)."""
        inverse, s = self.scales(q)
        return inverse @ self.cut.right / s[:, None]

    def agreement(self, q: Tensor, zeros: Tensor | None = None) -> Tensor:
        """lambda of each picture, (K,): the share of units that are off where D is 0 (`zeros`, (m, K)), and on where it is not."""
        inverse, s = self.scales(q)
        z = self._projected @ (inverse / s[:, None]).T + self.bias[:, None]  # (m, K)
        return ((z <= 0) == (self.cut.zeros(q) if zeros is None else zeros)).double().mean(0)


@dataclass(frozen=True)
class BatchDirections:
    """Where the search stands: directions q (rank, K), and lambda of each (K,)."""

    q: Tensor
    agreement: Tensor

    @property
    def whole(self) -> bool:
        """Whether there is a direction for every picture."""
        return len(self.q) == self.q.shape[1]

    @property
    def mean(self) -> float:
        """lambda over all pictures; 0 where there is none."""
        return float(self.agreement.mean()) if len(self.agreement) else 0.0

    @property
    def believed(self) -> Tensor:
        """Which pictures are shown, (K,) bool."""
        return self.agreement >= BELIEVED

    @property
    def sure(self) -> Tensor:
        """With which pictures the units agree, (K,) bool: with none as long as one is missing, for it may be in all others."""
        return self.agreement >= PROVED if self.whole else torch.zeros_like(self.believed)

    @property
    def agreed(self) -> int:
        """How many these are."""
        return int(self.sure.sum())


@dataclass(frozen=True)
class Proof:
    """Whether pictures are the private ones, as far as an update can tell.

    agreed    with how many of them the units of the layer agree
    distance  ||g(x) - g*|| / ||g*||, how far the update of all of them, replayed, is from the one received
    allowed   what rounding, and the noise in the received gradient, make of that
    """

    agreed: int
    distance: float
    allowed: float

    @staticmethod
    def of(seen: Observation, cut: GradientSpectrum, now: BatchDirections, loss: float) -> "Proof":
        """That of the directions found; `loss` is the squared distance of their pictures.

        Half of the digits may be lost on the way to the pictures and back. Noise with the root mean square that is left of G beyond its
        rank moves every entry of the update by as much, and the pictures that are read from it move theirs: MOVED times that is allowed.
        """
        update = [value for name, value in seen.as_gradient().items() if OF not in name]
        length = float(torch.stack([value.square().sum() for value in update]).sum().sqrt())
        noise = cut.noise * sum(value.numel() for value in update) ** 0.5 / length if length else 0.0
        return Proof(now.agreed, max(loss, 0.0) ** 0.5, float(torch.finfo(seen.dtype).eps) ** 0.5 + MOVED * noise)

    @property
    def replayed(self) -> bool:
        """Whether the update of these pictures is the one received."""
        return self.distance <= self.allowed

    @property
    def proved(self) -> int:
        """How many pictures are proved."""
        return self.agreed if self.replayed else 0


def independent(found: Tensor) -> list[int]:
    """Which of directions (rank, K) are taken: from the first on, each that is independent of those before."""
    places: list[int] = []
    base = found.new_zeros(len(found), 0)
    for place, q in enumerate(found.T):
        rest = q - base @ (base.T @ q)
        if len(places) < len(found) and float(rest.norm()) > APART:
            places.append(place)
            base = torch.cat([base, (rest / rest.norm())[:, None]], 1)
    return places


def exchanged(layer: Layer, found: Tensor, places: list[int]) -> list[int]:
    """`places` of directions (rank, K), those of pictures that are not proved exchanged for others as long as lambda rises."""
    zeros = layer.cut.zeros(found)
    best = layer.agreement(found[:, places], zeros[:, places])
    for _ in range(SWEEPS):
        before = places
        for own in best.argsort().tolist():
            for other in range(found.shape[1]):
                if other in places or float(best[own]) >= PROVED:
                    continue
                tried = [*places[:own], other, *places[own + 1 :]]
                agreement = layer.agreement(found[:, tried], zeros[:, tried])
                if float(agreement.mean()) > float(best.mean()):
                    places, best = tried, agreement
        if places == before:
            break
    return places
