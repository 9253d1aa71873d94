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
from leakage.engine.label_counts import count_probabilities, likeliest
from leakage.engine.label_evidence import ORDINAL, evidence, fit, misfit, size_of
from leakage.engine.label_probes import Head, head, predict, varied_pictures
from leakage.engine.logit_layer import last_layer

FIRST, SECOND = 32, 72  # rehearsals: to learn what resembles the update, and of such ones
KNOWS = 10.0  # by so much, at most, a trained model's logit of the right class may exceed what it says of a probe
DECIDED = 0.999  # of the labels, expected to be right: no more rehearsals are needed
ENOUGH = 24.0  # rehearsals that have to resemble the update, counted by their weights
FEW, ROUNDING = 0.01, 1e-4  # what counts as no zeros, and as no error of a column's sum, as shares
EQUAL, ROWS = 1e-6, 3  # sizes that differ by less, relatively, are equal; in so many rows they are by no chance
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
    limited, bias_limited   fraction of entries of the largest size, where at least three rows have some: a limit cut them off
    deviation           of noise that would explain the columns' sums; 0 where entries lack or were cut off, or where they are rounding
    """

    zeros: float = 0.0
    bias_zeros: float = 0.0
    limited: float = 0.0
    bias_limited: float = 0.0
    deviation: float = 0.0

    @staticmethod
    def of(last: Head, *, plain: bool = True) -> "Disturbance":
        """That of the last layer of an update. Where an activation follows it (not `plain`), its columns' sums say nothing."""
        there = last.slopes != 0
        inside = there[there.any(1)][:, there.any(0)]  # a class or a feature may be 0 by itself
        lacks = inside.numel() > 0 and 1 - float(inside.double().mean()) >= FEW
        lacks = lacks or (last.bias is not None and bool(((last.bias == 0) & there.any(1)).any()))
        zeros = 1 - float(there[:, there.any(0)].double().mean()) if lacks else 0.0
        lacking = 0.0 if last.bias is None or not lacks else float((last.bias == 0).double().mean())
        limited, bias_limited = _limited(last.slopes), 0.0 if last.bias is None else _limited(last.bias.unsqueeze(1))
        off, usual = float(last.slopes.double().sum(0).square().mean().sqrt()), float(last.slopes.double().square().mean().sqrt())
        noisy = plain and not (lacks or limited) and off > ROUNDING * usual
        return Disturbance(zeros, lacking, limited, bias_limited, off / len(last.slopes) ** 0.5 if noisy else 0.0)

    @property
    def none(self) -> bool:
        return self == Disturbance()

    def apply(self, slopes: Tensor, rows: Tensor | None, seed: int) -> tuple[Tensor, Tensor | None]:
        """The same done to another last layer: as many of the smallest entries are 0, of the largest cut off, and noise is added."""
        rng = generator(0, "label disturbance", seed)
        changed = self._noisy(_cut(_pruned(slopes, self.zeros), self.limited), rng)
        return changed, None if rows is None else self._noisy(_cut(_pruned(rows, self.bias_zeros), self.bias_limited), rng)

    def _noisy(self, values: Tensor, rng: torch.Generator) -> Tensor:
        return values + self.deviation * torch.randn(values.shape, generator=rng).double()


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
        self.scaled = False

    def _beside(self) -> Params:
        """The gradients of B probe pictures with random labels, each alone (B, ...); where they are many, their mean (1, ...)."""
        seen, rng = self.seen, generator(0, "label rehearsal", "beside")
        x, y = self.pictures[: self.size], torch.randint(len(self.slopes), (self.size,), generator=rng).to(seen.device)
        many = sum(weight.numel() for weight in seen.weights.values()) * self.size > AT_ONCE
        if many or not seen.rehearses_each or _mixes(seen):
            together, _ = gradient_client(seen.model)(seen.weights, x, y, {})
            return {name: g.detach().unsqueeze(0) for name, g in together.items()}
        alone = list(single_gradients(seen.model, seen.weights, x, y))
        return {name: torch.stack([g[name].detach() for g in alone]) for name in alone[0]}

    def read(self, slopes: Tensor, rows: Tensor | None, shrinkage: float) -> tuple[Tensor, Tensor, Tensor]:
        """Evidence (K, F), sizes (2,) and the mean feature (D,) that an update's last layer shows.

        The probes are moved towards that mean feature, by the fraction `shrinkage` of the way. Where lengths say nothing (`scaled`), every
        last layer is scaled to length 1 first.
        """
        if self.scaled:
            length = slopes.norm().clamp(min=1e-30)
            slopes, rows = slopes / length, None if rows is None else rows / length
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
    """How likely each class is in the batch 0, 1, ... B times, (K, B + 1), as the rehearsals say; None where a number is not finite.

    Where the first rehearsals decide, no others are played.
    """
    setup, rng = RehearsalSetup(seen), generator(0, "label rehearsal")
    if not all(bool(part.isfinite().all()) for part in (setup.slopes, setup.features, setup.constant)):
        return None
    first = setup.play(KNOWS * torch.rand(FIRST, generator=rng).double().square(), "first")
    received, sizes, feature = setup.read(setup.slopes, setup.rows, 0.0)
    # Longer or shorter than all rehearsals: something scaled the update by a factor that is not known. Then only proportions count.
    setup.scaled = not bool(first.sizes[:, 0].min() <= sizes[0] <= first.sizes[:, 0].max())
    used = slice(1 if setup.scaled else 0, 2)
    alike = likeness(first.sizes[:, used], first.knows, sizes[used])
    if not setup.scaled:
        chances, ratio = read_counts(first, alike, received, setup.size)
        if likeliest(chances)[1] > DECIDED and ratio == 1:
            return chances
    # Move the probes to where the update shows the batch's mean feature, as far as what it shows can be believed (James-Stein).
    shown = float((feature - setup.mean).square().mean())
    shrinkage = max(0.0, 1 - float(first.misses.median()) / shown) if shown > 0 else 0.0
    middle = (alike * first.knows).sum() / alike.sum()
    spread = ((alike * (first.knows - middle).square()).sum() / alike.sum()).sqrt()
    knows = (middle + (0.3 + 1.5 * spread) * torch.randn(SECOND, generator=rng).double()).clamp(min=0)
    second = setup.play(knows, "second", step=shrinkage * (feature - setup.mean), shrinkage=shrinkage)
    received, sizes, _ = setup.read(setup.slopes, setup.rows, shrinkage)
    return read_counts(second, likeness(second.sizes[:, used], second.knows, sizes[used]), received, setup.size)[0]


def read_counts(played: Rehearsed, alike: Tensor, received: Tensor, batch_size: int) -> tuple[Tensor, float]:
    """How likely every count is, (K, B + 1), given rehearsals with these weights (S,) and the readings received (K, F); and the misfit.

    By those readings alone that compare, where they contradict each other less than all do and expect more labels to be right; else by all.
    """
    every, few = (_read(played.evidence[..., k:], played.counts, alike, received[:, k:], batch_size) for k in (0, -ORDINAL))
    return few if few[1] < every[1] and likeliest(few[0])[1] > likeliest(every[0])[1] else every


def _read(given: Tensor, counts: Tensor, alike: Tensor, received: Tensor, batch_size: int) -> tuple[Tensor, float]:
    """The same by readings given (S, K, F). Those beyond all rehearsals count as the nearest of them: beyond, nothing was learned."""
    received = received.clamp(given.amin((0, 1)), given.amax((0, 1)))
    expected, variance = fit(given, counts, alike)(received)
    taken = torch.bincount(likeliest(count_probabilities(expected, variance, batch_size))[0], minlength=len(expected)).double()
    ratio = misfit(given, counts, alike, received, taken)
    return count_probabilities(expected, variance, batch_size, ratio), ratio


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


def _limited(values: Tensor) -> float:
    """The share of the values (K, D) that have the largest size, if these are in three rows or more; else 0."""
    largest = values.abs() >= values.abs().max() * (1 - EQUAL)
    return float(largest.double().mean()) if bool(values.any()) and int(largest.any(1).sum()) >= ROWS else 0.0


def _cut(values: Tensor, share: float) -> Tensor:
    """The values, that share of the largest cut off at the smallest of them."""
    count = round(share * values.numel())
    if count == 0:
        return values
    limit = float(values.abs().flatten().kthvalue(values.numel() - count + 1).values)
    return values.clamp(-limit, limit)


def _exact(value: Tensor) -> Tensor:
    return value.detach().cpu().double()


def _mixes(seen: Observation) -> bool:
    """Whether a BatchNorm takes the statistics of the batch, so that no picture has a gradient of its own."""
    return any(isinstance(layer, torch.nn.modules.batchnorm._BatchNorm) and layer.training for layer in seen.model.modules())
