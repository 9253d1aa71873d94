"""Labels by rehearsal: the attacker plays the client with labels that it drew itself, and learns how counts show in what arrives.

A rehearsal draws B probe features and B labels, computes the last layer's gradient that a batch of these has, lets the protection change
it as the attacker knows it to (`Replay.rehearse`), and reads it as the update is read. A linear fit from readings to counts, over
rehearsals that resemble the update, is applied to the update; its errors say how certain the counts are. So nothing is assumed of any
protection: what it leaves of the last layer, and what can be made of it, the rehearsals show. A naive attacker changes its rehearsals as
the update shows by itself that it was changed (`Disturbance`), and by noise where that explains why the readings contradict each other.
Derived here; regression from simulations as in Beaumont et al. 2002 (approximate Bayesian computation), section 2.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from leakage.engine.client import gradient_client, single_gradients
from leakage.engine.core import Observation, Params, generator
from leakage.engine.label_counts import count_probabilities, likeliest, likeliest_counts
from leakage.engine.label_disturbance import Disturbance
from leakage.engine.label_evidence import ORDINAL, CountFit, Misfit, evidence, fit, misfit, size_of
from leakage.engine.label_probes import head, predict, varied_pictures
from leakage.engine.logit_layer import last_layer

FIRST, SECOND = 32, 72  # rehearsals: to learn what resembles the update, and of such ones
KNOWS = 10.0  # by so much, at most, a trained model's logit of the right class may exceed what it says of a probe
DECIDED = 0.999  # of the labels, expected to be right: no more rehearsals are needed
ENOUGH = 24.0  # rehearsals that have to resemble the update, counted by their weights
NOISES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # that may explain such readings, as multiples of the entries' size
WEAKEST, HALVINGS = 1e3, 7  # by more than that no fit is weakened for being overconfident; steps to find the factor
NEARLY = 1.5  # by so much readings may contradict each other more than by the noise that explains them best
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


class RehearsalSetup:
    """All that a rehearsal needs, computed once: the last layer, the probes' features, and other layers' gradients to stand beside it."""

    def __init__(self, seen: Observation) -> None:
        self.seen, self.size, self.names = seen, seen.batch.size, last_layer(seen)
        own, self.pictures = head(seen), varied_pictures(seen)
        probes = predict(seen, self.pictures)
        self.shown = Disturbance.of(own)
        self.weight_gradient, self.rows = _exact(own.weight_gradient), None if own.bias is None else _exact(own.bias)
        self.weight, self.features = _exact(own.weight), _exact(probes.features)
        self.constant = (_exact(probes.logits) - self.features @ self.weight.T).mean(0)  # (K,)
        self.floor = 0.0 if bool((self.features >= 0).all()) else -math.inf  # a ReLU or sigmoid stands before the layer
        toward = torch.linalg.pinv(self.weight).T  # (K, D): W toward_c = e_c, where W has rank K
        self.toward = toward - toward.mean(0)
        self.mean = self.features.mean(0)  # (D,)
        self.beside = self._beside() if seen.replay.rehearse else {}
        self.scaled = False

    @property
    def used(self) -> slice:
        """The sizes (`size_of`) that tell which rehearsals resemble the update."""
        return slice(1 if self.scaled else 0, 2)

    @property
    def length(self) -> float:
        """Of the weight's gradient in the update, without the noise that is believed to be in it."""
        square, entries = float(self.weight_gradient.square().sum()), int((self.weight_gradient != 0).sum())
        return math.sqrt(max(square - entries * self.shown.deviation**2, square / 100))

    def _beside(self) -> Params:
        """The gradients of B probe pictures with random labels, each alone (B, ...); where they are many, their mean (1, ...)."""
        seen, rng = self.seen, generator(0, "label rehearsal", "beside")
        x, y = self.pictures[: self.size], torch.randint(len(self.weight_gradient), (self.size,), generator=rng).to(seen.device)
        many = sum(weight.numel() for weight in seen.received.weights.values()) * self.size > AT_ONCE
        if many or not seen.replay.rehearses_each or _mixes(seen):
            together, _ = gradient_client(seen.model)(seen.received.weights, x, y, {})
            return {name: g.detach().unsqueeze(0) for name, g in together.items()}
        alone = list(single_gradients(seen.model, seen.received.weights, x, y))
        return {name: torch.stack([g[name].detach() for g in alone]) for name in alone[0]}

    def read(self, weight_gradient: Tensor, rows: Tensor | None, shrinkage: float) -> tuple[Tensor, Tensor, Tensor]:
        """Evidence (K, F), sizes (2,) and the mean feature (D,) that an update's last layer shows.

        The probes are moved towards that mean feature, by the fraction `shrinkage` of the way. Where lengths say nothing (`scaled`), every
        last layer is scaled to length 1 first.
        """
        if self.scaled:
            length = weight_gradient.norm().clamp(min=1e-30)
            weight_gradient, rows = weight_gradient / length, None if rows is None else rows / length
        shown = mean_feature(weight_gradient, rows, self.mean)
        moved = (self.features + shrinkage * (shown - self.mean)).clamp(min=self.floor)
        prediction = (moved @ self.weight.T + self.constant).softmax(1).mean(0)
        return evidence(weight_gradient, rows, moved.mean(0), prediction, self.size), size_of(weight_gradient, rows), shown

    def play(self, knows: Tensor, purpose: str, *, step: Tensor | float = 0.0, shrinkage: float = 0.0) -> Rehearsed:
        """A rehearsal for each of `knows` (S,), with the probes' features moved by `step` (D,), read with `shrinkage`."""
        rng, found = generator(0, "label rehearsal", purpose), list[tuple[Tensor, ...]]()
        for number, alpha in enumerate(knows):
            y = torch.randint(len(self.weight_gradient), (self.size,), generator=rng)
            drawn = self.features[torch.randint(len(self.features), (self.size,), generator=rng)]
            labels = F.one_hot(y, len(self.weight_gradient)).double()  # (B, K)
            raised = alpha * (
                labels + torch.randn(labels.shape, generator=rng).double() / 2
            )  # of some pictures another class is raised more
            h = (drawn + step + raised @ self.toward).clamp(min=self.floor)  # (B, D)
            z = (h @ self.weight.T + self.constant).softmax(1) - labels
            weight_gradient, rows = self._protected(z, h, number)
            given, sizes, feature = self.read(weight_gradient, rows, shrinkage)
            found.append((given, sizes, labels.sum(0), (feature - h.mean(0)).square().mean()))
        parts = [torch.stack(part) for part in zip(*found, strict=True)]
        return Rehearsed(parts[0], parts[1], parts[2], knows, parts[3])

    def compare(self, played: Rehearsed, shrinkage: float = 0.0) -> tuple[Tensor, Tensor]:
        """How much each rehearsal counts (S,), by its likeness to the update; and the update's readings (K, F)."""
        received, sizes, _ = self.read(self.weight_gradient, self.rows, shrinkage)
        return likeness(played.sizes[:, self.used], played.knows, sizes[self.used]), received

    def explain(self, knows: Tensor) -> Rehearsed:
        """Rehearsals with the least noise by which the update's readings contradict each other no more than those of some rehearsal.

        Where no noise does, with the least by which they contradict each other nearly as little as by any.
        """
        shown, found = self.shown, list[tuple[Misfit, Disturbance, Rehearsed]]()
        usual = float(self.weight_gradient[self.weight_gradient != 0].square().mean().sqrt())
        for self.shown in [shown, *(replace(shown, deviation=noise * usual) for noise in NOISES if noise * usual > shown.deviation)]:
            played = self.play(knows, "first")
            found.append((contradiction(played, *self.compare(played), self.size)[0], self.shown, played))
            if found[-1][0].most <= 1:
                return played
        least = min(one.usual for one, *_ in found)
        _, self.shown, played = next(one for one in found if one[0].usual <= NEARLY * least)
        return played

    def _protected(self, z: Tensor, h: Tensor, seed: int) -> tuple[Tensor, Tensor | None]:
        """Return the last layer's gradient behind the protection, of a batch with dL/dz (B, K) and features (B, D)."""
        weight_gradient, rows = z.T @ h / self.size, None if self.rows is None else z.mean(0)
        rehearse = self.seen.replay.rehearse
        if rehearse is None:
            factor = self.length / weight_gradient.norm().clamp(min=1e-30) if self.scaled else 1.0
            return self.shown.apply(factor * weight_gradient, None if rows is None else factor * rows, seed)
        weight, bias = self.names
        whole = len(self.beside[weight]) == self.size
        own = {weight: z.unsqueeze(2) * h.unsqueeze(1) if whole else weight_gradient.unsqueeze(0)}
        own |= {bias: z if whole else z.mean(0, keepdim=True)} if bias else {}
        own = {name: g[:, -self.beside[name].shape[1] :].to(self.beside[name]) for name, g in own.items()}  # of one output, class 1
        ratio = own[weight].flatten(1).norm(dim=1) / self.beside[weight].flatten(1).norm(dim=1).clamp(min=1e-30)  # (B,) or (1,)
        others = {name: g * ratio.view(-1, *[1] * (g.dim() - 1)) for name, g in self.beside.items()}
        got = rehearse({**others, **own}, seed)
        weight_gradient, rows = _exact(got[weight]), _exact(got[bias]) if bias else None
        if len(weight_gradient) == 1:
            weight_gradient, rows = torch.cat([-weight_gradient, weight_gradient]), None if rows is None else torch.cat([-rows, rows])
        return weight_gradient, rows


def rehearsed(seen: Observation) -> Tensor | None:
    """How likely each class is in the batch 0, 1, ... B times, (K, B + 1), as the rehearsals say; None where a number is not finite.

    An adaptive attacker may also act naively: it does where the update contradicts all rehearsals of the protection, and more than it
    contradicts naive ones.
    """
    found = _rehearsed(seen)
    if found and seen.replay.rehearse and found[1].most > 1:
        naive = _rehearsed(replace(seen, replay=replace(seen.replay, rehearse=None)))
        found = naive if naive and naive[1].usual < found[1].usual else found
    return found[0] if found else None


def _rehearsed(seen: Observation) -> tuple[Tensor, Misfit] | None:
    """The same by rehearsals of one kind, and how far they are contradicted. Where the first of them decide, no others are played."""
    setup, rng = RehearsalSetup(seen), generator(0, "label rehearsal")
    if not all(bool(part.isfinite().all()) for part in (setup.weight_gradient, setup.features, setup.constant)):
        return None
    knows = KNOWS * torch.rand(FIRST, generator=rng).double().square()
    first = setup.play(knows, "first")
    _, sizes, feature = setup.read(setup.weight_gradient, setup.rows, 0.0)
    # Longer or shorter than all rehearsals: something scaled the update by a factor that is not known. Then only proportions count.
    setup.scaled = not bool(first.sizes[:, 0].min() <= sizes[0] <= first.sizes[:, 0].max())
    if not setup.scaled:
        found = read_counts(first, *setup.compare(first), setup.size)
        if likeliest(found[0])[1] > DECIDED and found[1].usual == 1:
            return found
    if seen.replay.rehearse is None and not setup.shown.none:
        first = setup.explain(knows)
    alike, _ = setup.compare(first)
    # Move the probes to where the update shows the batch's mean feature, as far as what it shows can be believed (James-Stein).
    shown = float((feature - setup.mean).square().mean())
    shrinkage = max(0.0, 1 - float(first.misses.median()) / shown) if shown > 0 else 0.0
    middle = (alike * first.knows).sum() / alike.sum()
    spread = ((alike * (first.knows - middle).square()).sum() / alike.sum()).sqrt()
    knows = (middle + (0.3 + 1.5 * spread) * torch.randn(SECOND, generator=rng).double()).clamp(min=0)
    second = setup.play(knows, "second", step=shrinkage * (feature - setup.mean), shrinkage=shrinkage)
    return read_counts(second, *setup.compare(second, shrinkage), setup.size)


def read_counts(played: Rehearsed, alike: Tensor, received: Tensor, batch_size: int) -> tuple[Tensor, Misfit]:
    """How likely every count is, (K, B + 1), given rehearsals with these weights (S,) and the readings received (K, F); and the misfit.

    By those readings alone that compare, where they contradict each other less than all do and expect more labels to be right; else by all.
    """
    every, few = (_read(replace(played, evidence=played.evidence[..., k:]), alike, received[:, k:], batch_size) for k in (0, -ORDINAL))
    return few if few[1].usual < every[1].usual and likeliest(few[0])[1] > likeliest(every[0])[1] else every


def _read(played: Rehearsed, alike: Tensor, received: Tensor, batch_size: int) -> tuple[Tensor, Misfit]:
    """The same by all readings given."""
    found, counted, expected = contradiction(played, alike, received, batch_size)
    weakened = found.usual * overconfidence(counted, played.counts, alike, batch_size)
    return count_probabilities(expected, counted.variance(expected), batch_size, weakened), found


def contradiction(played: Rehearsed, alike: Tensor, received: Tensor, batch_size: int) -> tuple[Misfit, CountFit, Tensor]:
    """By how much the readings received (K, F) contradict each other; the fit to the rehearsals, and the counts (K,) that it expects.

    Readings beyond all rehearsals count as the nearest of them: beyond, nothing was learned.
    """
    received = received.clamp(played.evidence.amin((0, 1)), played.evidence.amax((0, 1)))
    counted = fit(played.evidence, played.counts, alike)
    expected = counted(received)
    taken, _ = likeliest_counts(count_probabilities(expected, counted.variance(expected), batch_size))
    return misfit(played.evidence, played.counts, alike, received, taken), counted, expected


def overconfidence(counted: CountFit, counts: Tensor, alike: Tensor, batch_size: int) -> float:
    """The factor, 1 at least, by which a fit is to be weakened to expect of rehearsals left out of it as many labels right as are.

    The rehearsals' counts are (S, K); each rehearsal counts by its weight (S,).
    """
    variance, share = counted.variance(counted.tested), alike / alike.sum()

    def expected(weakened: float) -> tuple[Tensor, float]:
        taken, fraction = likeliest_counts(count_probabilities(counted.tested, variance, batch_size, weakened))
        return taken, float((share * fraction).sum())

    taken, said = expected(1.0)
    right = float((share * taken.minimum(counts).sum(1)).sum()) / batch_size
    if said <= right:
        return 1.0
    low, high = 0.0, math.log(WEAKEST)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if expected(math.exp(middle))[1] > right else (low, middle)
    return math.exp(high)


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


def mean_feature(weight_gradient: Tensor, rows: Tensor | None, usual: Tensor) -> Tensor:
    """The batch's mean feature (D,) by least squares of dL/dW (K, D) = dL/db h^T over the entries that are not 0; `usual` where all are."""
    if rows is None or not bool(rows.any()):
        rows = weight_gradient @ usual / usual.dot(usual).clamp(min=1e-300)
    squares = (rows.square().unsqueeze(1) * (weight_gradient != 0)).sum(0)
    return torch.where(squares > 1e-3 * rows.dot(rows), rows @ weight_gradient / squares.clamp(min=1e-300), usual)


def _exact(value: Tensor) -> Tensor:
    return value.detach().cpu().double()


def _mixes(seen: Observation) -> bool:
    """Whether a BatchNorm takes the statistics of the batch, so that no picture has a gradient of its own."""
    return any(isinstance(layer, torch.nn.modules.batchnorm._BatchNorm) and layer.training for layer in seen.model.modules())
