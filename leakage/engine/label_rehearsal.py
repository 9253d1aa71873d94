"""Labels by rehearsal: the attacker simulates clients with labels that it drew itself, and learns how counts show in an update.

A rehearsal draws B probe features and B labels, computes the last layer's gradient of that batch, lets the protection change the gradient
as far as the attacker knows the protection (`Replay.rehearse`), and reads the result as the update is read. A linear fit from readings to
counts, over rehearsals that resemble the update, is applied to the update; its errors show how certain the counts are. So nothing is
assumed of any protection: the rehearsals show which readings it leaves in the last layer, and how well they determine the counts. A naive
attacker changes its rehearsals by the disturbance that the update itself shows (`Disturbance`), and by noise where noise explains why the
readings contradict each other.
Derived here; regression from simulations as in Beaumont et al. 2002 (approximate Bayesian computation), section 2.
"""

import math
from dataclasses import replace
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.nn import functional as F

from leakage.engine.client import gradient_client, single_gradients
from leakage.engine.core import Observation, Params, generator
from leakage.engine.devices import exact_arithmetic
from leakage.engine.label_counts import likeliest
from leakage.engine.label_disturbance import Disturbance
from leakage.engine.label_evidence import Misfit, evidence, size_of
from leakage.engine.label_probes import head, predict, varied_pictures
from leakage.engine.label_readings import Rehearsed, contradiction, likeness, mean_feature, read_counts
from leakage.engine.logit_layer import last_layer

FIRST, SECOND = 32, 72  # number of rehearsals: varied ones, then ones that resemble the update
LARGEST_GAIN = 10.0  # most by which a trained model raises the logit of the right class above its logit for a probe
DECIDED = 0.999  # expected fraction of right labels at which no more rehearsals are needed
NOISES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # standard deviations that may explain contradictions, in root mean squares of the entries
NEARLY = 1.5  # a noise explains readings nearly as well as the best noise within this factor of contradiction
AT_ONCE = 2**25  # largest size of single pictures' gradients that are kept, in numbers
_READ: WeakKeyDictionary[Observation, Tensor | None] = WeakKeyDictionary()  # what `rehearsed` has returned


class RehearsalSetup:
    """The data that all rehearsals (simulated clients with known labels) share.

    The data are the last layer, its features (inputs) for random probe pictures, and gradients of the other layers.
    """

    def __init__(self, seen: Observation) -> None:
        self.seen, self.size, self.names = seen, seen.batch.size, last_layer(seen)
        last, self.pictures = head(seen), varied_pictures(seen)
        probes = predict(seen, self.pictures)
        self.disturbance = Disturbance.of(last)
        self.weight_gradient, self.rows = _exact(last.weight_gradient), None if last.bias is None else _exact(last.bias)
        self.weight, self.features = _exact(last.weight), _exact(probes.features)
        self.constant = (_exact(probes.logits) - self.features @ self.weight.T).mean(0)  # (K,)
        self.floor = 0.0 if bool((self.features >= 0).all()) else -math.inf  # 0 behind a ReLU or sigmoid
        toward = torch.linalg.pinv(self.weight).T  # (K, D): W toward_c = e_c, where W has rank K
        self.toward = toward - toward.mean(0)
        self.mean = self.features.mean(0)  # (D,)
        self.other_layers = self._other_layers() if seen.replay.rehearse else {}
        self.scaled = False

    @property
    def used(self) -> slice:
        """The sizes of `size_of`, as columns, by which a rehearsal is compared with the update: both, or without the norm if `scaled`.

        `scaled` says that an unknown factor has changed the update's norm.
        """
        return slice(1 if self.scaled else 0, 2)

    @property
    def length(self) -> float:
        """L2 norm of the last weight's gradient in the update, after subtracting the noise that `disturbance` estimates."""
        square, entries = float(self.weight_gradient.square().sum()), int((self.weight_gradient != 0).sum())
        return math.sqrt(max(square - entries * self.disturbance.deviation**2, square / 100))

    def _other_layers(self) -> Params:
        """Return all parameters' gradients of B probe pictures with random labels, (B, ...), or their mean, (1, ...).

        The mean is taken where the gradients are too large, where the protection does not act on single pictures, and where BatchNorm mixes
        them.
        """
        seen, rng = self.seen, generator(0, "label rehearsal", "beside")
        x, y = self.pictures[: self.size], torch.randint(len(self.weight_gradient), (self.size,), generator=rng).to(seen.device)
        many = sum(weight.numel() for weight in seen.received.weights.values()) * self.size > AT_ONCE
        if many or not seen.replay.rehearses_each or _mixes(seen):
            together, _ = gradient_client(seen.model)(seen.received.weights, x, y, {})
            return {name: g.detach().unsqueeze(0) for name, g in together.items()}
        alone = list(single_gradients(seen.model, seen.received.weights, x, y))
        return {name: torch.stack([g[name].detach() for g in alone]) for name in alone[0]}

    def read(self, weight_gradient: Tensor, rows: Tensor | None, shrinkage: float) -> tuple[Tensor, Tensor, Tensor]:
        """Return what a last layer's gradient shows: the readings of `evidence` (K, F), the sizes of `size_of` (2,), the mean feature (D,).

        `evidence` needs a mean feature and a mean prediction of the model: those of random probe pictures, after their features (inputs of
        the last layer) are moved towards the mean feature that the gradient shows. If `scaled`, the gradient is first divided by its norm,
        because an unknown factor then makes the norm useless.

        Args:
            weight_gradient: gradient of the last weight, (K, D).
            rows: gradient of the last bias, (K,); None without a bias.
            shrinkage: the fraction of the way, 0 to 1, by which the features are moved.
        """
        if self.scaled:
            length = weight_gradient.norm().clamp(min=1e-30)
            weight_gradient, rows = weight_gradient / length, None if rows is None else rows / length
        shown = mean_feature(weight_gradient, rows, self.mean)
        moved = (self.features + shrinkage * (shown - self.mean)).clamp(min=self.floor)
        prediction = (moved @ self.weight.T + self.constant).softmax(1).mean(0)
        return evidence(weight_gradient, rows, moved.mean(0), prediction, self.size), size_of(weight_gradient), shown

    def simulate(self, logit_gains: Tensor, purpose: str, *, step: Tensor | float = 0.0, shrinkage: float = 0.0) -> Rehearsed:
        """Simulate S clients with random known labels, and return the readings of their last layers' gradients.

        A simulated batch consists of B random features of the probe pictures, plus a step that raises the logits of its right classes.

        Args:
            logit_gains: for each simulated client, by how much its model raises the logits of the right classes, (S,).
            purpose: a name that seeds the random numbers.
            step: a vector that is added to every feature, (D,).
            shrinkage: the fraction of the way that `read` moves features.
        """
        rng, readings = generator(0, "label rehearsal", purpose), list[tuple[Tensor, ...]]()
        for number, alpha in enumerate(logit_gains):
            y = torch.randint(len(self.weight_gradient), (self.size,), generator=rng)
            drawn = self.features[torch.randint(len(self.features), (self.size,), generator=rng)]
            labels = F.one_hot(y, len(self.weight_gradient)).double()  # (B, K)
            # For some pictures, another class is raised more than the right class.
            raised = alpha * (labels + torch.randn(labels.shape, generator=rng).double() / 2)
            h = (drawn + step + raised @ self.toward).clamp(min=self.floor)  # (B, D)
            z = (h @ self.weight.T + self.constant).softmax(1) - labels
            weight_gradient, rows = self._protected(z, h, number)
            given, sizes, feature = self.read(weight_gradient, rows, shrinkage)
            readings.append((given, sizes, labels.sum(0), (feature - h.mean(0)).square().mean()))
        parts = [torch.stack(part) for part in zip(*readings, strict=True)]
        return Rehearsed(parts[0], parts[1], parts[2], logit_gains, parts[3])

    def compare(self, rehearsals: Rehearsed, shrinkage: float = 0.0) -> tuple[Tensor, Tensor]:
        """Return the weight of each rehearsal, (S,), which is larger the more it resembles the update, and the update's readings (K, F)."""
        received, sizes, _ = self.read(self.weight_gradient, self.rows, shrinkage)
        return likeness(rehearsals.sizes[:, self.used], rehearsals.logit_gains, sizes[self.used]), received

    def explain(self, logit_gains: Tensor) -> Rehearsed:
        """Return rehearsals with added noise, as weak as possible, for an update with readings that contradict each other (`Misfit`).

        A noise is strong enough if the update's readings contradict each other no more than those of some rehearsal with this noise. If
        none of NOISES is, the weakest noise with at most NEARLY times the smallest contradiction is taken. `disturbance` keeps the noise.

        Args:
            logit_gains: as in `simulate`, (S,).
        """
        start, tested = self.disturbance, list[tuple[Misfit, Disturbance, Rehearsed]]()
        usual = float(self.weight_gradient[self.weight_gradient != 0].square().mean().sqrt())
        stronger = [replace(start, deviation=noise * usual) for noise in NOISES if noise * usual > start.deviation]
        for self.disturbance in [start, *stronger]:
            rehearsals = self.simulate(logit_gains, "first")
            tested.append((contradiction(rehearsals, *self.compare(rehearsals), self.size)[0], self.disturbance, rehearsals))
            if tested[-1][0].most <= 1:
                return rehearsals
        least = min(result.usual for result, *_ in tested)
        _, self.disturbance, rehearsals = next(entry for entry in tested if entry[0].usual <= NEARLY * least)
        return rehearsals

    def _protected(self, z: Tensor, h: Tensor, seed: int) -> tuple[Tensor, Tensor | None]:
        """Return the gradients of the last weight (K, D) and bias (K,) after the protection changed them.

        Args:
            z: dL/dz of the logits z of each picture, (B, K).
            h: inputs of the last layer, (B, D).
            seed: of the protection's random numbers.
        """
        weight_gradient, rows = z.T @ h / self.size, None if self.rows is None else z.mean(0)
        rehearse = self.seen.replay.rehearse
        if rehearse is None:
            factor = self.length / weight_gradient.norm().clamp(min=1e-30) if self.scaled else 1.0
            return self.disturbance.apply(factor * weight_gradient, None if rows is None else factor * rows, seed)
        weight, bias = self.names
        whole = len(self.other_layers[weight]) == self.size
        last_gradients = {weight: z.unsqueeze(2) * h.unsqueeze(1) if whole else weight_gradient.unsqueeze(0)}
        last_gradients |= {bias: z if whole else z.mean(0, keepdim=True)} if bias else {}
        outputs = self.other_layers[weight].shape[1]  # a single output is class 1
        last_gradients = {name: g[:, -outputs:].to(self.other_layers[name]) for name, g in last_gradients.items()}
        length, other_length = (gradients[weight].flatten(1).norm(dim=1) for gradients in (last_gradients, self.other_layers))
        ratio = length / other_length.clamp(min=1e-30)  # (B,) or (1,)
        others = {name: g * ratio.view(-1, *[1] * (g.dim() - 1)) for name, g in self.other_layers.items()}
        got = rehearse({**others, **last_gradients}, seed)
        weight_gradient, rows = _exact(got[weight]), _exact(got[bias]) if bias else None
        if len(weight_gradient) == 1:
            weight_gradient, rows = torch.cat([-weight_gradient, weight_gradient]), None if rows is None else torch.cat([-rows, rows])
        return weight_gradient, rows


@exact_arithmetic()
def rehearsed(seen: Observation) -> Tensor | None:
    """Return how probable it is that class c has k labels in the batch, for k from 0 to B, (K, B + 1), learned from rehearsals.

    A rehearsal is a simulated client with labels that the attacker drew. An adaptive attacker's rehearsals imitate the protection. It uses
    naive rehearsals instead if the update contradicts all rehearsals with the protection, and naive rehearsals less. The result is None if
    a number of the update or of the model is not finite. It takes seconds, and is computed once for an observation, whatever attacks it.
    """
    if seen not in _READ:
        _READ[seen] = _likelier(seen)
    return _READ[seen]


def _likelier(seen: Observation) -> Tensor | None:
    """Return the probabilities of `rehearsed` by the rehearsals that the update contradicts less."""
    reading = _rehearsed(seen)
    if reading and seen.replay.rehearse and reading[1].most > 1:
        naive = _rehearsed(replace(seen, replay=replace(seen.replay, rehearse=None)))
        reading = naive if naive and naive[1].usual < reading[1].usual else reading
    return reading[0] if reading else None


def _rehearsed(seen: Observation) -> tuple[Tensor, Misfit] | None:
    """Return the probabilities of `rehearsed` by one kind of rehearsals, and how strongly the update contradicts them.

    FIRST rehearsals vary widely. Unless they determine the labels, SECOND rehearsals follow that resemble the update. The result is None
    if a number is not finite.
    """
    setup, rng = RehearsalSetup(seen), generator(0, "label rehearsal")
    if not all(bool(part.isfinite().all()) for part in (setup.weight_gradient, setup.features, setup.constant)):
        return None
    logit_gains = LARGEST_GAIN * torch.rand(FIRST, generator=rng).double().square()
    first = setup.simulate(logit_gains, "first")
    _, sizes, feature = setup.read(setup.weight_gradient, setup.rows, 0.0)
    # An update longer or shorter than all rehearsals was scaled by an unknown factor. Then only proportions count.
    setup.scaled = not bool(first.sizes[:, 0].min() <= sizes[0] <= first.sizes[:, 0].max())
    if not setup.scaled:
        reading = read_counts(first, *setup.compare(first), setup.size)
        if likeliest(reading[0])[1] > DECIDED and reading[1].usual == 1:
            return reading
    if seen.replay.rehearse is None and not setup.disturbance.none:
        first = setup.explain(logit_gains)
    weights, _ = setup.compare(first)
    # Move the probes towards the mean feature that the update shows, by a fraction that reflects its error (James-Stein).
    shown = float((feature - setup.mean).square().mean())
    shrinkage = max(0.0, 1 - float(first.misses.median()) / shown) if shown > 0 else 0.0
    middle = (weights * first.logit_gains).sum() / weights.sum()
    spread = ((weights * (first.logit_gains - middle).square()).sum() / weights.sum()).sqrt()
    logit_gains = (middle + (0.3 + 1.5 * spread) * torch.randn(SECOND, generator=rng).double()).clamp(min=0)
    second = setup.simulate(logit_gains, "second", step=shrinkage * (feature - setup.mean), shrinkage=shrinkage)
    return read_counts(second, *setup.compare(second, shrinkage), setup.size)


def _exact(value: Tensor) -> Tensor:
    return value.detach().cpu().double()


def _mixes(seen: Observation) -> bool:
    """Return whether a BatchNorm takes the statistics of the batch, so that no picture alone has a gradient."""
    return any(isinstance(layer, torch.nn.modules.batchnorm._BatchNorm) and layer.training for layer in seen.model.modules())
