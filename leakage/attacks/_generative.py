"""What an attacker knows of pictures, as a generator, and the searches in it: the unknowns are its numbers, or the features of a stage."""

import io
import pickle
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from leakage.attacks._adam import Descent, Note, Unknowns, replays
from leakage.attacks._decoders import digit_decoder, face_generator
from leakage.data.errors import CheckpointError
from leakage.data.generators import GeneratorCard, find_card, verified_weights
from leakage.engine.core import Observation, Params, Snapshot
from leakage.engine.matching import Distance
from leakage.engine.weights import drawing, put, unpack

GENERATORS = ("digits", "untrained", "faces")
DECODERS: dict[str, Callable[[int], nn.Sequential]] = {"digits": digit_decoder, "faces": face_generator}
UNTRAINED = "nothing: its generator of digits was never trained"
RESIZED = "The generator paints {} x {} x {} and the private pictures have {} x {} x {}: what it paints is resized."

Search = Generator[Snapshot, None, Tensor]  # yields Snapshots, returns where the closest of its starts ended: (1, B, ...)


@dataclass(frozen=True)
class GenerativePrior:
    """Pictures as G(z), with z (B, size) ~ N(0, 1) and G = stage_n(... stage_1(z)).

    stages       networks; the last one gives pictures of the generator's own shape
    size         entries of z
    image_shape  (C, H, W) of the pictures that are attacked, to which its own are resized
    card         what it is, or would be if it were trained
    trained      whether it is
    """

    stages: tuple[nn.Module, ...]
    size: int
    image_shape: tuple[int, int, int]
    card: GeneratorCard
    trained: bool = True

    def sample(self, starts: int, seen: Observation, rng: torch.Generator) -> Tensor:
        """z ~ N(0, 1): (S, B, size)."""
        return torch.randn((starts, seen.batch_size, self.size), generator=rng).to(seen.device, seen.dtype)

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
        return {"prior": self.card.knowledge if self.trained else UNTRAINED}

    @property
    def event(self) -> Note:
        """What the user must not miss: that its pictures do not fit as they are."""
        own = self.card.image_shape
        return {"event": RESIZED.format(*own, *self.image_shape)} if own != self.image_shape else {}


def load_prior(name: str, seen: Observation, rng: torch.Generator) -> GenerativePrior:
    """One of GENERATORS for the pictures that `seen` is about.

    Raises CheckpointError with a sentence where its weights cannot be used: MissingGeneratorError where they are not on this machine.
    """
    trained = name != "untrained"
    card, path = find_card(name if trained else "digits")
    with drawing(int(torch.randint(2**31, (), generator=rng)), "generator"):
        network = DECODERS[card.decoder](card.latent)
    if trained:
        data = verified_weights(card, path)
        put(network, of_others(data, network, path.name) if card.package else unpack(data, path.name), path.name)
    network = network.eval().requires_grad_(False).to(seen.device, seen.dtype)
    return GenerativePrior(tuple(network), card.latent, seen.image_shape, card, trained)


def of_others(data: bytes, network: nn.Module, name: str) -> Params:
    """The weights in a file of torch's, which has one dictionary of them in the order of `network`, under the names of `network`.

    Raises CheckpointError. Of such a file only tensors are read (`weights_only`): it may hold code, which is not run.
    """
    try:
        (weights,) = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True).values()
        return dict(zip(network.state_dict(), weights.values(), strict=True))
    except (ValueError, AttributeError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
        why = " ".join(str(error).split())[:200]
        raise CheckpointError(f"{name} holds no weights of this generator ({why}). Get it anew, or choose another generator.") from None


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
    match: Distance
    note: Note
    rng: torch.Generator

    def latents(self, *, steps: int, step_size: float, starts: int, norm_weight: float) -> Search:
        """min over z of D(g(G(z), y), g*) + norm_weight |mean z^2 - 1|, from several starts at once."""
        descent = Descent(steps, step_size, "cosine", signed=False, unknowns=Unknowns(self.prior.decode))
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
        descent = Descent(steps, step_size, "cosine", signed=False, unknowns=unknowns)
        return (yield from descent.nearest(self.seen, start, self.labels, self.distances, None, note=self.note, rng=self.rng))

    def weights(self, z: Tensor, *, steps: int, step_size: float) -> Search:
        """min of D over the generator's own weights, z (1, B, size) kept: what it has learned gives way to this update; (1, P)."""
        network = nn.Sequential(*self.prior.stages)
        own = dict(network.named_parameters())

        def decode(flat: Tensor) -> Tensor:
            parts = flat[0].split([weight.numel() for weight in own.values()])
            weights = {name: part.view_as(own[name]) for name, part in zip(own, parts, strict=True)}
            x: Tensor = resized(functional_call(network, weights, (z.flatten(0, 1),)), self.prior.image_shape)
            return x.view(*z.shape[:2], *x.shape[1:])

        flat = torch.cat([weight.detach().flatten() for weight in own.values()])[None]
        descent = Descent(steps, step_size, "constant", signed=False, unknowns=Unknowns(decode))
        return (yield from descent.nearest(self.seen, flat, self.labels, self.distances, None, note=self.note, rng=self.rng))

    def distances(self, x: Tensor) -> Tensor:
        """How far the gradients of pictures (S, B, C, H, W) are from the one received: (S,)."""
        return self.match(replays(self.seen, x, self.labels))


def with_event(search: Search, event: Note) -> Search:
    """The same search, whose first Snapshot says something that must not be missed, if there is something."""
    first = next(search)
    yield replace(first, note=first.note | event)
    return (yield from search)


def shifted(search: Search, begun: int, note: Note) -> Generator[Snapshot, None, tuple[Tensor, Snapshot]]:
    """The same search as a part of a longer one, after `begun` steps, with more words. Returns what it returns, and the last Snapshot."""
    last = next(search)
    while True:
        last = replace(last, step=begun + last.step, note=last.note | note)
        yield last
        try:
            last = next(search)
        except StopIteration as over:
            return over.value, last


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
