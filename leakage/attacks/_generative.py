"""What an attacker knows of pictures, as a generator, and the searches in it: the unknowns are its numbers, or the features of a stage."""

from collections.abc import Generator, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leakage.attacks._adam import Descent, Note, Unknowns, replays
from leakage.attacks._flat_weights import flat_weights, generate_with
from leakage.attacks._labels import labels_of
from leakage.attacks.linear_layer import snapshot_of
from leakage.engine.core import Attack, Observation, Snapshot, TrainedGenerator
from leakage.engine.decoders import DIGITS, DIGITS_LATENT, digit_decoder
from leakage.engine.discrepancy import Goal, goal_of
from leakage.engine.matching import grey_pictures
from leakage.engine.weights import drawing
from leakage.engine.with_result import WithResult

UNTRAINED = "untrained"  # the control: the network of the digits, drawn with the attack's own generator
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

Search = Generator[Snapshot, None, Tensor]  # yields Snapshots, returns where the closest of its starts ended: (1, B, ...)


@dataclass(frozen=True)
class GenerativePrior:
    """Pictures as G(z), with z (B, size) ~ N(0, 1) and G = stage_n(... stage_1(z)).

    stages       networks; the last one gives pictures of the generator's own shape
    size         entries of z
    image_shape  (C, H, W) of the pictures that are attacked, to which its own are resized
    own_shape    (C, H, W) of its own
    knowledge    what an attacker knows who has it, in words
    """

    stages: tuple[nn.Module, ...]
    size: int
    image_shape: tuple[int, int, int]
    own_shape: tuple[int, int, int]
    knowledge: str

    def sample(self, starts: int, seen: Observation, rng: torch.Generator) -> Tensor:
        """z ~ N(0, 1): (S, B, size)."""
        return torch.randn((starts, seen.batch.size, self.size), generator=rng).to(seen.device, seen.dtype)

    def decode(self, h: Tensor, stage: int = 0) -> Tensor:
        """What enters stage number `stage`, (S, B, ...), as pictures (S, B, C, H, W); behind the last stage it is pictures already."""
        for number in range(stage, len(self.stages)):
            h = self.pass_stage(h, number)
        return h

    def pass_stage(self, h: Tensor, number: int) -> Tensor:
        """What enters a stage (S, B, ...) as what leaves it; the last one's pictures are resized."""
        out: Tensor = self.stages[number](h.flatten(0, 1))
        if number == len(self.stages) - 1:
            out = resized(out, self.image_shape)
        return out.view(*h.shape[:2], *out.shape[1:])

    @property
    def note(self) -> Note:
        """For the page: what the attacker knows of pictures."""
        return {"prior": self.knowledge}

    @property
    def event(self) -> Note:
        """What the user must not miss: that its pictures do not fit as they are."""
        return {"event": RESIZED.format(*self.own_shape, *self.image_shape)} if self.own_shape != self.image_shape else {}


def prior_of(name: str, seen: Observation, rng: torch.Generator) -> GenerativePrior | str:
    """One of GENERATORS for the pictures that `seen` is about: a copy of what the attacker was handed, or one that was never trained.

    Args:
        name: which.
        seen: what the attacker holds, its generator with it.
        rng: of the untrained one's weights; moved for the others too, so that the same numbers are started from.

    Returns:
        The prior, where the attack computes and in its precision; or why there is none, in a sentence.
    """
    seed = int(torch.randint(2**31, (), generator=rng))
    own = seen.granted.generator
    if name == UNTRAINED:
        with drawing(seed, "generator"):
            own = TrainedGenerator(digit_decoder(DIGITS_LATENT), DIGITS_LATENT, DIGITS, NEVER_TRAINED)
    if isinstance(own, str):
        return own
    network = deepcopy(own.network).eval().requires_grad_(False).to(seen.device, seen.dtype)
    return GenerativePrior(tuple(network), own.latent, seen.batch.image_shape, own.image_shape, own.knowledge)


def resized(x: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """Pictures (N, c, h, w) as (N, *shape): the mean of all channels, repeated, where their number differs; bilinear."""
    channels, height, width = shape
    if x.shape[1] != channels:
        x = x.mean(1, keepdim=True).expand(-1, channels, -1, -1)
    if x.shape[2:] != (height, width):
        x = F.interpolate(x, (height, width), mode="bilinear", antialias=True)
    return x


@dataclass(frozen=True)
class GenerativeSearch:
    """What all stages of a search share: the update, what is known of pictures, labels, distance of gradients, and words for the page."""

    seen: Observation
    prior: GenerativePrior
    labels: Tensor
    goal: Goal
    note: Note
    rng: torch.Generator

    def latents(self, *, steps: int, step_size: float, starts: int, norm_weight: float) -> Search:
        """min over z of D(g(G(z), y), g*) + norm_weight |mean z^2 - 1|, from several starts at once."""
        descent = Descent(steps, step_size, "cosine", signed=False, unknowns=Unknowns(self.prior.decode), floor=self.goal.floor)
        z = self.prior.sample(starts, self.seen, self.rng)
        search = descent.nearest(
            self.seen, z, self.labels, self.distances, lambda z: norm_weight * off_sphere(z), note=self.note, rng=self.rng
        )
        return (yield from with_event(search, self.prior.event))

    def features(self, start: Tensor, stage: int, *, steps: int, step_size: float, radius: float, tv_weight: float) -> Search:
        """min of D + tv_weight TV over what enters stage number `stage`, h (1, B, ...): ||h - start||_1 <= radius ||start||_1 of each.

        Behind the last stage h is pictures, which stay between black and white.
        """
        centre = start.flatten(0, 1).flatten(1)  # (B, P)
        most = radius * centre.abs().sum(1)

        def project(h: Tensor) -> Tensor:
            near = l1_projection(h.flatten(0, 1).flatten(1), centre, most).view_as(h)
            return near.clamp(0, 1) if stage == len(self.prior.stages) else near

        unknowns = Unknowns(lambda h: self.prior.decode(h, stage), project, tv_weight)
        descent = Descent(steps, step_size, "cosine", signed=False, unknowns=unknowns, floor=self.goal.floor)
        return (yield from descent.nearest(self.seen, start, self.labels, self.distances, None, note=self.note, rng=self.rng))

    def weights(self, z: Tensor, *, steps: int, step_size: float) -> Search:
        """min of D over the generator's own weights, z (1, B, size) kept: what it has learned gives way to this update; (1, P)."""
        network = nn.Sequential(*self.prior.stages)

        def decode(flat: Tensor) -> Tensor:
            x = resized(generate_with(network, flat, z.flatten(0, 1)), self.prior.image_shape)
            return x.view(*z.shape[:2], *x.shape[1:])

        flat, unknowns = flat_weights(network), Unknowns(decode)
        descent = Descent(steps, step_size, "constant", signed=False, unknowns=unknowns, floor=self.goal.floor)
        return (yield from descent.nearest(self.seen, flat, self.labels, self.distances, None, note=self.note, rng=self.rng))

    def distances(self, x: Tensor) -> Tensor:
        """How far the gradients of pictures (S, B, C, H, W) are from the one received: (S,)."""
        return self.goal.distance(replays(self.seen, x, self.labels))


class GenerativeAttack(Attack):
    """An attack that searches in a trained generator, which it is handed (`Observation.generator`); without one its answer is grey.

    Its fields are declared by each such attack, in an order of its own: `generator = choice("digits", GENERATORS, ASSUMED)`, those of
    LATENT_SEARCH, `label_rule`.

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
            search: all that its stages share.

        Yields:
            Snapshots, as `run` does; the last one is the answer.
        """
        raise NotImplementedError

    def latent_code(self, search: GenerativeSearch) -> Search:
        """Search for the latent code, as the fields ask for it.

        Args:
            search: all that its stages share.

        Yields:
            Snapshots of the start that is closest.

        Returns:
            Its latent code, z (1, B, size).
        """
        return search.latents(steps=self.steps, step_size=self.step_size, starts=self.starts, norm_weight=self.norm_weight)


def with_event(search: Search, event: Note) -> Search:
    """The same search, whose first Snapshot says something that must not be missed, if there is something."""
    first = next(search)
    yield replace(first, note=first.note | event)
    return (yield from search)


def shifted(search: Search, begun: int, note: Note) -> Generator[Snapshot, None, tuple[Tensor, Snapshot]]:
    """The same search as a part of a longer one, after `begun` steps, with more words. Returns what it returns, and the last Snapshot."""
    moments, last = WithResult(search), None
    for moment in moments:
        last = replace(moment, step=begun + moment.step, note=moment.note | note)
        yield last
    assert last is not None
    return moments.result, last


def off_sphere(z: Tensor) -> Tensor:
    """|mean z^2 - 1| of S guesses (S, B, size), how far they are from the length that N(0, 1) has: the mean over the batch, (S,)."""
    return (z.square().mean(2) - 1).abs().mean(1)


def l1_projection(h: Tensor, centre: Tensor, radius: Tensor) -> Tensor:
    """The nearest points to h (N, P) whose L1 distances from `centre` (N, P) are at most `radius` (N,).

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
