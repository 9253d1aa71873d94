"""A generator as the attacker's prior, and the searches for its latent code, for a stage's features, or for its weights."""

from collections.abc import Generator, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leakage.attacks._adam import Descent, Note, replays
from leakage.attacks._flat_weights import flat_weights, generate_with
from leakage.attacks._labels import labels_of
from leakage.attacks._objective import Unknowns
from leakage.attacks.linear_layer import snapshot_of
from leakage.engine.core import Attack, Observation, Snapshot, TrainedGenerator
from leakage.engine.decoders import DIGITS, DIGITS_LATENT, digit_decoder
from leakage.engine.discrepancy import Goal, goal_of
from leakage.engine.matching import grey_pictures
from leakage.engine.weights import drawing
from leakage.engine.with_result import WithResult

UNTRAINED = "untrained"  # the control: the network of the digits with random weights, drawn with the attack's random generator
GENERATORS = ("digits", UNTRAINED, "faces")
ASSUMED = "What the attacker's generator was trained on: the assumption of this attack."
LATENT_SEARCH = {  # default, lowest, highest and help of the fields of a search for the latent code
    "steps": (300, 1, 10000, "Optimiser steps of the search for the latent code, all starts at once."),
    "step_size": (0.1, 0.0001, 10, "How far one of these steps moves a number at first."),
    "starts": (3, 1, 16, "How many random pictures to start from; the one that matches best is taken."),
    "norm_weight": (0.0001, 0, 10, "How strongly the latent code is kept as large as a random one."),
}
NEVER_TRAINED = "nothing: its generator of digits was never trained"
RESIZED = "The generator produces {} x {} x {} and the private pictures have {} x {} x {}: what it generates is resized."

Search = Generator[Snapshot, None, Tensor]  # yields Snapshots, returns the final unknowns of its closest start: (1, B, ...)


@dataclass(frozen=True)
class GenerativePrior:
    """A generator of pictures G(z), with z (B, size) ~ N(0, 1) and G(z) = stage_n(... stage_1(z)).

    stages           networks; the last one gives pictures of `generated_shape`
    size             entries of z
    image_shape      (C, H, W) of the pictures that are attacked, to which the generated ones are resized
    generated_shape  (C, H, W) of the pictures that the generator produces
    knowledge        what an attacker with this generator knows, in words
    """

    stages: tuple[nn.Module, ...]
    size: int
    image_shape: tuple[int, int, int]
    generated_shape: tuple[int, int, int]
    knowledge: str

    def sample(self, starts: int, seen: Observation, rng: torch.Generator) -> Tensor:
        """Draw latent codes z ~ N(0, 1) for S starts: (S, B, size)."""
        return torch.randn((starts, seen.batch.size, self.size), generator=rng).to(seen.device, seen.dtype)

    def decode(self, h: Tensor, stage: int = 0) -> Tensor:
        """Generate pictures (S, B, C, H, W) from the input h (S, B, ...) of stage number `stage`.

        If `stage` is the number of stages, h is the pictures already.
        """
        for number in range(stage, len(self.stages)):
            h = self.pass_stage(h, number)
        return h

    def pass_stage(self, h: Tensor, number: int) -> Tensor:
        """Compute the output of a stage from its input h (S, B, ...); the last stage's pictures are resized to `image_shape`."""
        out: Tensor = self.stages[number](h.flatten(0, 1))
        if number == len(self.stages) - 1:
            out = resize(out, self.image_shape)
        return out.view(*h.shape[:2], *out.shape[1:])

    @property
    def note(self) -> Note:
        """A note for the page: what the attacker knows about pictures."""
        return {"prior": self.knowledge}

    @property
    def event(self) -> Note:
        """An event if the generated pictures have another shape than the private ones; else nothing."""
        return {"event": RESIZED.format(*self.generated_shape, *self.image_shape)} if self.generated_shape != self.image_shape else {}


def prior_of(name: str, seen: Observation, rng: torch.Generator) -> GenerativePrior | str:
    """Return the attacker's generator as a prior: a copy of the trained generator that was granted, or an untrained one.

    Args:
        name: one of GENERATORS.
        seen: what the attacker observed, with the generator that was granted.
        rng: draws the weights of the untrained generator. It advances for a trained one too, so that both start from the same numbers.

    Returns:
        The prior, on the attack's device and in its precision; or a sentence that says why there is no generator.
    """
    seed = int(torch.randint(2**31, (), generator=rng))
    trained = seen.granted.generator
    if name == UNTRAINED:
        with drawing(seed, "generator"):
            trained = TrainedGenerator(digit_decoder(DIGITS_LATENT), DIGITS_LATENT, DIGITS, NEVER_TRAINED)
    if isinstance(trained, str):
        return trained
    network = deepcopy(trained.network).eval().requires_grad_(False).to(seen.device, seen.dtype)
    return GenerativePrior(tuple(network), trained.latent, seen.batch.image_shape, trained.image_shape, trained.knowledge)


def resize(x: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """Resize pictures (N, c, h, w) to (N, *shape), bilinearly; if the number of channels differs, each channel is the mean of all."""
    channels, height, width = shape
    if x.shape[1] != channels:
        x = x.mean(1, keepdim=True).expand(-1, channels, -1, -1)
    if x.shape[2:] != (height, width):
        x = F.interpolate(x, (height, width), mode="bilinear", antialias=True)
    return x


@dataclass(frozen=True)
class GenerativeSearch:
    """The searches that a generative attack can run: for latent codes, for features, or for the weights of the generator G.

    All minimize D, the distance (of `goal`) between the gradient of generated pictures and the received gradient. They share the
    observation, the generator as a prior, the labels (B,) and the note for the page.
    """

    seen: Observation
    prior: GenerativePrior
    labels: Tensor
    goal: Goal
    note: Note
    rng: torch.Generator

    def latents(self, *, steps: int, step_size: float, starts: int, norm_weight: float) -> Search:
        """Search for latent codes z that minimize D + norm_weight |mean z^2 - 1|, from `starts` random codes at once.

        D is the distance between the gradient of the pictures G(z) and the received gradient.
        """
        descent = Descent(steps, step_size, "cosine", signed=False, unknowns=Unknowns(self.prior.decode), floor=self.goal.floor)
        z = self.prior.sample(starts, self.seen, self.rng)

        def penalty(z: Tensor) -> Tensor:
            return norm_weight * norm_deviation(z)

        search = descent.minimize(self.seen, z, self.labels, self.distances, penalty, note=self.note, rng=self.rng)
        return (yield from with_event(search, self.prior.event))

    def features(self, start: Tensor, stage: int, *, steps: int, step_size: float, radius: float, tv_weight: float) -> Search:
        """Search for the input h (1, B, ...) of the generator's stage number `stage` that minimizes D + tv_weight TV, close to `start`.

        D is the distance between the gradient of the generated pictures and the received gradient, TV their total variation. For each
        picture ||h - start||_1 <= radius ||start||_1. If `stage` is the number of stages, h is the pictures, which are clamped to [0, 1].
        """
        centre = start.flatten(0, 1).flatten(1)  # (B, P)
        most = radius * centre.abs().sum(1)

        def project(h: Tensor) -> Tensor:
            near = l1_projection(h.flatten(0, 1).flatten(1), centre, most).view_as(h)
            return near.clamp(0, 1) if stage == len(self.prior.stages) else near

        unknowns = Unknowns(lambda h: self.prior.decode(h, stage), project, tv_weight)
        descent = Descent(steps, step_size, "cosine", signed=False, unknowns=unknowns, floor=self.goal.floor)
        return (yield from descent.minimize(self.seen, start, self.labels, self.distances, None, note=self.note, rng=self.rng))

    def weights(self, z: Tensor, *, steps: int, step_size: float) -> Search:
        """Search for the generator's weights (1, P) that minimize D, with the latent codes z (1, B, size) fixed.

        D is the distance between the gradient of the generated pictures and the received gradient.
        """
        network = nn.Sequential(*self.prior.stages)

        def decode(flat: Tensor) -> Tensor:
            x = resize(generate_with(network, flat, z.flatten(0, 1)), self.prior.image_shape)
            return x.view(*z.shape[:2], *x.shape[1:])

        flat, unknowns = flat_weights(network), Unknowns(decode)
        descent = Descent(steps, step_size, "constant", signed=False, unknowns=unknowns, floor=self.goal.floor)
        return (yield from descent.minimize(self.seen, flat, self.labels, self.distances, None, note=self.note, rng=self.rng))

    def distances(self, x: Tensor) -> Tensor:
        """Compute the distances (S,) between the gradients of pictures x (S, B, C, H, W) and the received gradient."""
        return self.goal.distance(replays(self.seen, x, self.labels))


class GenerativeAttack(Attack):
    """Base class of attacks that search in a trained generator (`Granted.generator`); without a generator their answer is grey.

    Each such attack declares these fields, in the order in which pages show them: `generator = choice("digits", GENERATORS, ASSUMED)`, the
    fields of LATENT_SEARCH, and `label_rule`.

    Example:
        >>> from leakage.engine.core import choice, param
        >>> from leakage.engine.labels import rule_field
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Short(GenerativeAttack):
        ...     generator: str = choice(UNTRAINED, GENERATORS, ASSUMED)
        ...     steps: int = param(2, 1, 10, "Optimiser steps.")
        ...     step_size: float = param(*LATENT_SEARCH["step_size"])
        ...     starts: int = param(1, 1, 16, "How many random pictures to start from.")
        ...     norm_weight: float = param(*LATENT_SEARCH["norm_weight"])
        ...     label_rule: str = rule_field()
        ...
        ...     def reconstruct(self, search):
        ...         yield from self.latent_code(search)
        >>> import leakage
        >>> model = nn.Sequential(nn.Flatten(), nn.Linear(784, 3))
        >>> result = leakage.attack(model, torch.rand(1, 1, 28, 28), torch.tensor([2]), attack=Short())
        >>> result.steps, result.note["prior"]
        (2, 'nothing: its generator of digits was never trained')
    """

    reads_labels = True
    generator: str
    steps: int
    step_size: float
    starts: int
    norm_weight: float
    label_rule: str
    distance: str = "cosine"

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        labels, note = labels_of(seen, self.label_rule)
        prior = prior_of(self.generator, seen, rng)
        if isinstance(prior, str):
            yield replace(snapshot_of(seen, grey_pictures(seen), labels), note=note | {"event": prior})
            return
        goal = goal_of(seen, self.distance)
        yield from self.reconstruct(GenerativeSearch(seen, prior, labels, goal, note | prior.note | goal.note, rng))

    def reconstruct(self, search: GenerativeSearch) -> Iterator[Snapshot]:
        """Run the attack with its generator.

        Args:
            search: the parts that all stages share.

        Yields:
            Snapshots, as `run` does; the last one is the answer.
        """
        raise NotImplementedError

    def latent_code(self, search: GenerativeSearch) -> Search:
        """Search for the latent code, with the settings of the fields.

        Args:
            search: the parts that all stages share.

        Yields:
            Snapshots of the closest start.

        Returns:
            The closest start's latent code, z (1, B, size).
        """
        return search.latents(steps=self.steps, step_size=self.step_size, starts=self.starts, norm_weight=self.norm_weight)


def with_event(search: Search, event: Note) -> Search:
    """Run a search and add an event, which may be empty, to the note of its first Snapshot."""
    first = next(search)
    yield replace(first, note=first.note | event)
    return (yield from search)


def run_as_stage(search: Search, begun: int, note: Note) -> Generator[Snapshot, None, tuple[Tensor, Snapshot]]:
    """Run a search as a stage of an attack: count its steps from `begun` on, and add `note` to the note of each Snapshot.

    Returns the final unknowns, which the search returns, and the last Snapshot.
    """
    moments, last = WithResult(search), None
    for moment in moments:
        last = replace(moment, step=begun + moment.step, note=moment.note | note)
        yield last
    assert last is not None
    return moments.result, last


def norm_deviation(z: Tensor) -> Tensor:
    """Compute |mean z^2 - 1| of latent codes z (S, B, size), averaged over the batch, (S,): the deviation from the norm of N(0, 1)."""
    return (z.square().mean(2) - 1).abs().mean(1)


def l1_projection(h: Tensor, centre: Tensor, radius: Tensor) -> Tensor:
    """Project h (N, P) onto the L1 balls around `centre` (N, P) with radii `radius` (N,).

    Source: Duchi et al. 2008, figure 1.

    >>> l1_projection(torch.tensor([[3.0, 1.0]]), torch.zeros(1, 2), torch.tensor([2.0])).tolist()
    [[2.0, 0.0]]
    """
    gap = h - centre
    size = gap.abs()
    falling = size.sort(1, descending=True).values
    excess = (falling.cumsum(1) - radius[:, None]) / torch.arange(1, size.shape[1] + 1, device=h.device, dtype=h.dtype)
    last = (falling > excess).sum(1, keepdim=True).clamp(min=1) - 1  # how many entries stay nonzero, less one
    shrunk = gap.sign() * (size - excess.gather(1, last)).clamp(min=0)
    inside = size.sum(1, keepdim=True) <= radius[:, None]
    return torch.where(inside, h, centre + shrunk)
