"""Labels by rehearsal: the attacker plays the client with labels that it drew itself, and learns how counts show in what arrives.

A rehearsal draws B probe features and B labels, computes the last layer's gradient that a batch of these has, lets the protection change
it as the attacker knows it to (`Observation.rehearse`), and reads it as the update is read. A linear fit from readings to counts, over
rehearsals that resemble the update, is applied to the update; its errors say how certain the counts are. So nothing is assumed of any
protection: what it leaves of the last layer, and what can be made of it, the rehearsals show.
Derived here; regression from simulations as in Beaumont et al. 2002 (approximate Bayesian computation), section 2.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from leakage.engine.client import gradient_client, single_gradients
from leakage.engine.core import Observation, Params, generator
from leakage.engine.label_counts import count_probabilities
from leakage.engine.label_evidence import evidence, fit, size_of
from leakage.engine.label_probes import Head, head, predict, varied_pictures
from leakage.engine.logit_layer import last_layer

FIRST, SECOND = 32, 72  # rehearsals: to learn what resembles the update, and of such ones
KNOWS = 10.0  # by so much, at most, a trained model's logit of the right class may exceed what it says of a probe
ENOUGH = 24.0  # rehearsals that have to resemble the update, counted by their weights
FEW, ROUNDING = 0.01, 1e-4  # what counts as no zeros, and as no error of a column's sum, as shares
AT_ONCE = 2**25  # numbers in the gradients of single pictures that are kept


@dataclass(frozen=True)
class Rehearsed:
    """Rehearsals, S of them, as they were read.

    evidence   (S, K, F)
    sizes      (S, 2), see `size_of`
    counts     (S, K), the true ones
    knows      (S,), by how much the model knew the labels
    misses     (S,), mean squared error of the mean feature that they show
    """

    evidence: Tensor
    sizes: Tensor
    counts: Tensor
    knows: Tensor
    misses: Tensor


@dataclass(frozen=True)
class Disturbance:
    """What an update shows by itself of having been changed: of dL/dW = (1/B) sum_b (p_b - e_(y_b)) h_b^T every column adds up to 0.

    zeros, bias_zeros   fraction of entries that are 0, of weight and bias, but for rows and columns of zeros alone
    deviation           of noise that would explain the columns' sums; 0 where entries lack, or where they are rounding
    """

    zeros: float
    bias_zeros: float
    deviation: float

    @staticmethod
    def of(last: Head, *, plain: bool = True) -> "Disturbance":
        """That of the last layer of an update. Where an activation follows it (not `plain`), its columns' sums say nothing."""
        there = last.slopes != 0
        inside = there[there.any(1)][:, there.any(0)]  # a class or a feature may be 0 by itself
        lacks = inside.numel() > 0 and 1 - float(inside.double().mean()) >= FEW
        lacks = lacks or (last.bias is not None and bool(((last.bias == 0) & there.any(1)).any()))
        zeros = 1 - float(there[:, there.any(0)].double().mean()) if lacks else 0.0
        lacking = 0.0 if last.bias is None or not lacks else float((last.bias == 0).double().mean())
        off, usual = float(last.slopes.double().sum(0).square().mean().sqrt()), float(last.slopes.double().square().mean().sqrt())
        noisy = plain and not lacks and off > ROUNDING * usual
        return Disturbance(zeros, lacking, off / len(last.slopes) ** 0.5 if noisy else 0.0)

    @property
    def none(self) -> bool:
        return self == Disturbance(0.0, 0.0, 0.0)

    def apply(self, slopes: Tensor, rows: Tensor | None, seed: int) -> tuple[Tensor, Tensor | None]:
        """The same done to another last layer: as many of the smallest entries are 0, and noise is added."""
        rng = generator(0, "label disturbance", seed)
        changed = _pruned(slopes, self.zeros) + self.deviation * torch.randn(slopes.shape, generator=rng).double()
        if rows is None:
            return changed, None
        return changed, _pruned(rows, self.bias_zeros) + self.deviation * torch.randn(rows.shape, generator=rng).double()


class RehearsalSetup:
    """All that a rehearsal needs, computed once: the last layer, the probes' features, and other layers' gradients to stand beside it."""

    def __init__(self, seen: Observation) -> None:
        self.seen, self.size, self.names = seen, seen.batch_size, last_layer(seen)
        own, self.pictures = head(seen), varied_pictures(seen)
        probes = predict(seen, self.pictures)
        self.shown = Disturbance.of(own)
        self.slopes, self.rows = _exact(own.slopes), None if own.bias is None else _exact(own.bias)
        self.weight, self.features = _exact(own.weight), _exact(probes.features)
        self.constant = (_exact(probes.logits) - self.features @ self.weight.T).mean(0)  # (K,)
        self.floor = 0.0 if bool((self.features >= 0).all()) else -math.inf  # a ReLU or sigmoid stands before the layer
        toward = torch.linalg.pinv(self.weight).T  # (K, D): W toward_c = e_c, where W has rank K
        self.toward = toward - toward.mean(0)
        self.mean = self.features.mean(0)  # (D,)
        self.beside = self._beside() if seen.rehearse else {}

    def _beside(self) -> Params:
        """The gradients of B probe pictures with random labels, each alone (B, ...); where they are many, their mean (1, ...)."""
        seen, rng = self.seen, generator(0, "label rehearsal", "beside")
        x, y = self.pictures[: self.size], torch.randint(len(self.slopes), (self.size,), generator=rng).to(seen.device)
        if sum(weight.numel() for weight in seen.weights.values()) * self.size > AT_ONCE or _mixes(seen):
            together, _ = gradient_client(seen.model)(seen.weights, x, y, {})
            return {name: g.detach().unsqueeze(0) for name, g in together.items()}
        alone = list(single_gradients(seen.model, seen.weights, x, y))
        return {name: torch.stack([g[name].detach() for g in alone]) for name in alone[0]}

    def read(self, slopes: Tensor, rows: Tensor | None, shrinkage: float) -> tuple[Tensor, Tensor, Tensor]:
        """Evidence (K, F), sizes (2,) and the mean feature (D,) that an update's last layer shows.

        The probes are moved towards that mean feature, by the fraction `shrinkage` of the way.
        """
        shown = mean_feature(slopes, rows, self.mean)
        moved = (self.features + shrinkage * (shown - self.mean)).clamp(min=self.floor)
        prediction = (moved @ self.weight.T + self.constant).softmax(1).mean(0)
        return evidence(slopes, rows, moved.mean(0), prediction, self.size), size_of(slopes, rows), shown

    def play(self, knows: Tensor, purpose: str, *, step: Tensor | float = 0.0, shrinkage: float = 0.0) -> Rehearsed:
        """A rehearsal for each of `knows` (S,), with the probes' features moved by `step` (D,), read with `shrinkage`."""
        rng, found = generator(0, "label rehearsal", purpose), list[tuple[Tensor, ...]]()
        for number, alpha in enumerate(knows):
            y = torch.randint(len(self.slopes), (self.size,), generator=rng)
            drawn = self.features[torch.randint(len(self.features), (self.size,), generator=rng)]
            labels = F.one_hot(y, len(self.slopes)).double()  # (B, K)
            raised = alpha * (
                labels + torch.randn(labels.shape, generator=rng).double() / 2
            )  # of some pictures another class is raised more
            h = (drawn + step + raised @ self.toward).clamp(min=self.floor)  # (B, D)
            z = (h @ self.weight.T + self.constant).softmax(1) - labels
            slopes, rows = self._protected(z, h, number)
            given, sizes, feature = self.read(slopes, rows, shrinkage)
            found.append((given, sizes, labels.sum(0), (feature - h.mean(0)).square().mean()))
        parts = [torch.stack(part) for part in zip(*found, strict=True)]
        return Rehearsed(parts[0], parts[1], parts[2], knows, parts[3])

    def _protected(self, z: Tensor, h: Tensor, seed: int) -> tuple[Tensor, Tensor | None]:
        """The last layer's gradient of a batch with these slopes (B, K) and features (B, D), as it would be read after the protection."""
        slopes, rows = z.T @ h / self.size, None if self.rows is None else z.mean(0)
        rehearse = self.seen.rehearse
        if rehearse is None:
            return self.shown.apply(slopes, rows, seed)
        weight, bias = self.names
        whole = len(self.beside[weight]) == self.size
        own = {weight: z.unsqueeze(2) * h.unsqueeze(1) if whole else slopes.unsqueeze(0)}
        own |= {bias: z if whole else z.mean(0, keepdim=True)} if bias else {}
        own = {name: g[:, -self.beside[name].shape[1] :].to(self.beside[name]) for name, g in own.items()}  # of one output, class 1
        ratio = own[weight].flatten(1).norm(dim=1) / self.beside[weight].flatten(1).norm(dim=1).clamp(min=1e-30)  # (B,) or (1,)
        others = {name: g * ratio.view(-1, *[1] * (g.dim() - 1)) for name, g in self.beside.items()}
        got = rehearse({**others, **own}, seed)
        slopes, rows = _exact(got[weight]), _exact(got[bias]) if bias else None
        if len(slopes) == 1:
            slopes, rows = torch.cat([-slopes, slopes]), None if rows is None else torch.cat([-rows, rows])
        return slopes, rows


def rehearsed(seen: Observation) -> Tensor | None:
    """How likely each class is in the batch 0, 1, ... B times, (K, B + 1), as the rehearsals say; None where a number is not finite."""
    setup, rng = RehearsalSetup(seen), generator(0, "label rehearsal")
    if not all(bool(part.isfinite().all()) for part in (setup.slopes, setup.features, setup.constant)):
        return None
    first = setup.play(KNOWS * torch.rand(FIRST, generator=rng).double().square(), "first")
    _, sizes, feature = setup.read(setup.slopes, setup.rows, 0.0)
    alike = likeness(first.sizes, first.knows, sizes)
    # Move the probes to where the update shows the batch's mean feature, as far as what it shows can be believed (James-Stein).
    shown = float((feature - setup.mean).square().mean())
    shrinkage = max(0.0, 1 - float(first.misses.median()) / shown) if shown > 0 else 0.0
    middle = (alike * first.knows).sum() / alike.sum()
    spread = ((alike * (first.knows - middle).square()).sum() / alike.sum()).sqrt()
    knows = (middle + (0.3 + 1.5 * spread) * torch.randn(SECOND, generator=rng).double()).clamp(min=0)
    second = setup.play(knows, "second", step=shrinkage * (feature - setup.mean), shrinkage=shrinkage)
    alike = likeness(second.sizes, second.knows, sizes)
    expected, variance = fit(second.evidence, second.counts, alike)(setup.read(setup.slopes, setup.rows, shrinkage)[0])
    # Counts that cannot be are an update that no rehearsal resembles: all are then less certain, by as much as the worst is off.
    beyond = float((expected - expected.clamp(0, setup.size)).square().max())
    return count_probabilities(expected, variance + beyond, setup.size)


def likeness(sizes: Tensor, knows: Tensor, seen: Tensor) -> Tensor:
    """How much each of S rehearsals counts, (S,), by the distance of its sizes (S, 2) from those seen (2,), in units of random spread.

    The random spread is what is left of the sizes' spread without their trend with `knows`. The unit grows until ENOUGH rehearsals count.
    """
    trend = torch.stack([torch.ones_like(knows), knows, knows.square()], 1)
    left = sizes - trend @ torch.linalg.lstsq(trend, sizes).solution
    distance = ((sizes - seen) / left.std(0).clamp(min=0.05)).square().sum(1)
    width = 1.0
    for _ in range(40):
        weight: Tensor = (-(distance - distance.min()) / (2 * width)).exp()
        if float(weight.sum()) >= min(ENOUGH, len(sizes) / 2):
            break
        width *= 1.5
    return weight


def mean_feature(slopes: Tensor, rows: Tensor | None, usual: Tensor) -> Tensor:
    """The batch's mean feature (D,) by least squares of dL/dW (K, D) = dL/db h^T over the entries that are not 0; `usual` where all are."""
    if rows is None or not bool(rows.any()):
        rows = slopes @ usual / usual.dot(usual).clamp(min=1e-300)
    squares = (rows.square().unsqueeze(1) * (slopes != 0)).sum(0)
    return torch.where(squares > 1e-3 * rows.dot(rows), rows @ slopes / squares.clamp(min=1e-300), usual)


def intact(last: Head, *, plain: bool = True) -> bool:
    """Whether nothing shows that the last layer's gradient was changed after it was computed, but for its length."""
    return Disturbance.of(last, plain=plain).none


def _pruned(values: Tensor, share: float) -> Tensor:
    """The values, that share of the smallest set to 0."""
    dropped = round(share * values.numel())
    if dropped == 0:
        return values
    return values * (values.abs() > values.abs().flatten().kthvalue(min(dropped, values.numel())).values)


def _exact(value: Tensor) -> Tensor:
    return value.detach().cpu().double()


def _mixes(seen: Observation) -> bool:
    """Whether a BatchNorm takes the statistics of the batch, so that no picture has a gradient of its own."""
    return any(isinstance(layer, torch.nn.modules.batchnorm._BatchNorm) and layer.training for layer in seen.model.modules())
