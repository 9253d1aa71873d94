"""The proof that SPEAR found the private pictures, without the truth: by the ReLUs that agree with them, and by their replayed update.

D = U Q diag(s) with dL/db = D 1, and G = D X. If X entered the layer, then (W x_i + b)_j > 0 exactly where D_ji is not 0.
That tests this layer alone: the ReLUs may also agree with pixels at a wrong scale, or where a step before the layer was read wrongly. So
the attacker replays the client with these pictures, and their whole update has to equal the received update.
Source: Dimitrov, Baader, Mueller and Vechev 2024; the replay is ours.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from leakage.attacks._spear_search import GradientSpectrum
from leakage.engine.core import Observation
from leakage.engine.tensor_names import OF

APART = 1e-3  # least sine of the angle between a direction and the span of the directions chosen before
BELIEVED = 0.75  # a picture is shown if at least this fraction of the units agrees with it
PROVED = 0.99  # a picture can be proved if at least this fraction agrees; with a wrong picture about half agree at random
SWEEPS = 2  # how many times `exchange` goes through all pictures at most
MOVED = 4.0  # the distance allowed between the replayed and the received update, in units of the noise


@dataclass(frozen=True)
class Layer:
    """A fully connected layer, and its gradient as it was received.

    weight         (m, n)
    bias           (m,)
    bias_gradient  dL/db, (m,)
    cut            the spectrum of dL/dW
    """

    weight: Tensor
    bias: Tensor
    bias_gradient: Tensor
    cut: GradientSpectrum

    @cached_property
    def _projected(self) -> Tensor:
        """W right^T, (m, rank)."""
        return self.weight @ self.cut.right.T

    def scales(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """Return the (pseudo)inverse (K, rank) of directions q (rank, K), and the scale s (K,) of each direction.

        D = U q diag(s), with U = `cut.left`, is dL/dz of each unit (row) and picture (column); its rows have to sum to the bias's gradient.
        """
        inverse, failed = torch.linalg.inv_ex(q) if len(q) == q.shape[1] else (q, True)
        inverse = torch.linalg.pinv(q) if failed else inverse
        return inverse, inverse @ (self.cut.left.T @ self.bias_gradient)

    def inputs(self, q: Tensor) -> Tensor:
        """Return the inputs of the layer (K, n) that belong to directions q (rank, K)."""
        inverse, s = self.scales(q)
        return inverse @ self.cut.right / s[:, None]

    def agreement(self, q: Tensor, zeros: Tensor | None = None) -> Tensor:
        """Compute lambda of each picture, (K,): the fraction of units for which ReLU and the gradient agree.

        They agree if ReLU is off for the picture where D = U q (m, K), the picture's dL/dz up to a scale, is 0, and on where D is not 0.

        Args:
            q: directions (rank, K), one for each picture.
            zeros: where D is 0, (m, K) bool; None: computed from q.
        """
        inverse, s = self.scales(q)
        z = self._projected @ (inverse / s[:, None]).T + self.bias[:, None]  # (m, K)
        return ((z <= 0) == (self.cut.zeros(q) if zeros is None else zeros)).double().mean(0)


@dataclass(frozen=True)
class BatchDirections:
    """The directions q (rank, K) that SPEAR's search has chosen, one for each picture, and lambda (`Layer.agreement`) of each, (K,)."""

    q: Tensor
    agreement: Tensor

    @property
    def whole(self) -> bool:
        """Whether there is a direction for every picture."""
        return len(self.q) == self.q.shape[1]

    @property
    def mean(self) -> float:
        """The mean of `agreement` (lambda) over all pictures; 0 without pictures."""
        return float(self.agreement.mean()) if len(self.agreement) else 0.0

    @property
    def believed(self) -> Tensor:
        """Which pictures are part of the answer, (K,) bool: those with a lambda of at least BELIEVED."""
        return self.agreement >= BELIEVED

    @property
    def sure(self) -> Tensor:
        """Which pictures can be proved, (K,) bool: those with a lambda of at least PROVED; none while a direction of the batch is missing.

        Parts of the missing picture may then be in all others.
        """
        return self.agreement >= PROVED if self.whole else torch.zeros_like(self.believed)

    @property
    def agreed(self) -> int:
        """The number of pictures in `sure`."""
        return int(self.sure.sum())


@dataclass(frozen=True)
class Proof:
    """Two measurements that show, by the update alone, whether pictures are the private ones.

    agreed    the number of pictures for which ReLU is off and on as the gradient says, in at least the fraction PROVED of the units
    distance  ||g(x) - g*|| / ||g*|| between the replayed update of all pictures and the received update
    allowed   the distance that rounding and the noise in the received gradient explain
    """

    agreed: int
    distance: float
    allowed: float

    @staticmethod
    def of(seen: Observation, cut: GradientSpectrum, now: BatchDirections, loss: float) -> "Proof":
        """Return the proof of the pictures that belong to the directions `now`.

        Computing the pictures and replaying them may cost half of the digits of a float. The noise in every entry of the update is
        estimated by `cut.noise`, what the singular values of the kept rank leave of the layer's gradient. The pictures read from the update
        carry that noise too, so MOVED times as much is allowed.

        Args:
            seen: what the attacker observed.
            cut: the spectrum of the layer's gradient.
            now: the chosen directions.
            loss: the squared relative distance between the replayed update of the pictures and the received update.
        """
        update = [value for name, value in seen.as_gradient().items() if OF not in name]
        length = float(torch.stack([value.square().sum() for value in update]).sum().sqrt())
        noise = cut.noise * sum(value.numel() for value in update) ** 0.5 / length if length else 0.0
        return Proof(now.agreed, max(loss, 0.0) ** 0.5, float(torch.finfo(seen.dtype).eps) ** 0.5 + MOVED * noise)

    @property
    def replayed(self) -> bool:
        """Whether the replayed update of the pictures equals the received update, up to `allowed`."""
        return self.distance <= self.allowed

    @property
    def proved(self) -> int:
        """The number of pictures that are proved: `agreed` if the replayed update equals the received update, otherwise 0."""
        return self.agreed if self.replayed else 0


def independent_indices(found: Tensor) -> list[int]:
    """Return the indices of the directions `found` (rank, K) that are linearly independent of the directions chosen before them."""
    indices: list[int] = []
    base = found.new_zeros(len(found), 0)
    for index, q in enumerate(found.T):
        rest = q - base @ (base.T @ q)
        if len(indices) < len(found) and float(rest.norm()) > APART:
            indices.append(index)
            base = torch.cat([base, (rest / rest.norm())[:, None]], 1)
    return indices


def exchange(layer: Layer, found: Tensor, indices: list[int]) -> list[int]:
    """Exchange chosen directions for others while the mean of lambda (`Layer.agreement`) rises; return the indices of the new choice.

    Args:
        layer: the layer that the directions belong to.
        found: all directions that SPEAR's search has found, (rank, K).
        indices: the indices of the chosen directions; a direction with a lambda of at least PROVED stays chosen.
    """
    zeros = layer.cut.zeros(found)
    best = layer.agreement(found[:, indices], zeros[:, indices])
    for _ in range(SWEEPS):
        before = indices
        for position in best.argsort().tolist():
            for other in range(found.shape[1]):
                if other in indices or float(best[position]) >= PROVED:
                    continue
                candidate = [*indices[:position], other, *indices[position + 1 :]]
                agreement = layer.agreement(found[:, candidate], zeros[:, candidate])
                if float(agreement.mean()) > float(best.mean()):
                    indices, best = candidate, agreement
        if indices == before:
            break
    return indices
