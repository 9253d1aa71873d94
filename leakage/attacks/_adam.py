"""The Adam loop of attacks that match gradients: it optimizes several starts, or one start for each of several observations, at once."""

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from leakage.attacks._coarse import HalfSize
from leakage.attacks._objective import Matched, Objective, Prior, Unknowns
from leakage.engine.core import Observation, Params, Snapshot
from leakage.engine.devices import device_generator
from leakage.engine.lanes import MatchedUpdate, join_gradients
from leakage.engine.matching import box, diverged, median_filter
from leakage.engine.optimizers import Adam
from leakage.engine.whole_distance import Distance
from leakage.spec.words import COMPILED

SCHEDULES = ("steps", "cosine", "constant")
MILESTONES = (2.667, 1.6, 1.142)  # the step size falls tenfold after steps / each of these
WARM_UP = 50  # steps, of the cosine schedule
ELECT = 25  # steps after which the start to be shown is chosen again
FILTERED = 500  # steps between two median filters
LATENTS = 0.01  # the step size of the unknowns that are optimized together with the pictures
COMBINE = ("closest", "mean", "median")

Note = dict[str, str | int | float]


@dataclass(frozen=True)
class Moment:
    """The state of a search with S guesses before one step of Adam; the last Moment has the state after all steps.

    z      the unknowns, (S, ...)
    x      the pictures of each guess in pixels, (S, B, C, H, W)
    match  the distance between each guess's gradient and the received gradient, (S,)
    ended  whether all steps are done
    """

    step: int
    z: Tensor
    x: Tensor
    match: Tensor
    ended: bool = False


@dataclass(frozen=True)
class Descent:
    """Adam on S guesses at once.

    signed, soft  Adam gets the sign of each pixel's gradient, or a soft sign
    clamped       pixels are clamped to [0, 1] after every step
    jitter        the size of Langevin noise
    unknowns      z is not pictures, and `Unknowns.project` replaces the clamping
    coarse        the fraction of the steps, from the first on, in which the pictures have half the sides (`attacks/_coarse.py`)
    floor         the distance at which the true pictures are expected, () or (S,); None: 0, or not known

    A guess at a distance of `floor` or less is not fitted further; only the prior still moves it. So among all pictures that explain the
    update as well as the true pictures would, the search finds the likeliest. A search in `unknowns` without a prior and without
    `tv_weight` ends once all guesses are within `floor`.
    """

    steps: int
    step_size: float
    schedule: str = "steps"
    signed: bool = True
    soft: bool = False
    clamped: bool = True
    keep_best: bool = False
    median: bool = False
    jitter: float = 0.0
    combine: str = "closest"
    unknowns: Unknowns | None = None
    latent_step: float = LATENTS
    coarse: float = 0.0
    floor: Tensor | None = None

    def run(  # noqa: PLR0913  (the parts of an objective)
        self, seen: Observation, z: Tensor, labels: Tensor, match: Distance, prior: Prior | None, *, note: Note, rng: torch.Generator
    ) -> Iterator[Snapshot]:
        """Minimize the distance of gradients over all starts z (S, B, C, H, W); yield the closest start at each step, then the answer.

        `match` maps the gradients of S guesses to distances (S,); the other arguments are those of `minimize`.
        """
        each = labels.expand(len(z), *labels.shape)
        matched = MatchedUpdate([seen], [match], each, lambda x: [replays(seen, x, labels)])
        yield from self.minimize(seen, z, labels, matched, prior, note=note, rng=rng)

    def minimize(  # noqa: PLR0913  (as `run`)
        self,
        seen: Observation,
        z: Tensor,
        labels: Tensor,
        matched: Matched,
        prior: Prior | None,
        *,
        note: Note,
        rng: torch.Generator,
    ) -> Generator[Snapshot, None, Tensor]:
        """Minimize any distance of pictures over all starts z; yield the closest start at each step, then the answer.

        Args:
            seen: what the attacker observed.
            z: the starts, (S, ...).
            labels: the labels (B,) of every Snapshot.
            matched: pictures (S, B, C, H, W) in pixels -> distances (S,).
            prior: z -> a penalty (S,); None: no prior.
            note: the note of every Snapshot, to which the number of the start is added.
            rng: draws the jitter.

        Returns:
            The final z of the closest start, (1, ...).
        """
        shown, end = 0, z
        for now in self._descend(seen, z, matched, prior, rng):
            note = with_derivatives(note, matched)
            if len(z) > 1 and now.step % ELECT == 1:
                shown = int(now.match.nan_to_num(math.inf).argmin())
            if now.ended:
                yield from self._final_snapshots(now, labels, matched, note)
                best, _ = closest(now)
                end = now.z[best : best + 1]
            else:
                yield Snapshot(now.step, now.x[shown], labels, now.match[shown], {**note, "start": shown + 1})
        return end

    def run_batched(  # noqa: PLR0913  (as `run`)
        self,
        seen: Sequence[Observation],
        z: Tensor,
        labels: Sequence[Tensor],
        match: Sequence[Distance],
        prior: Prior | None,
        *,
        notes: Sequence[Note],
        rng: torch.Generator,
    ) -> Iterator[tuple[int, Snapshot]]:
        """Minimize the distances of one start for each of S observations; yield each Snapshot with the index of its observation.

        z is (S, B, C, H, W); `labels`, `match` and `notes` have one entry for each observation.
        """
        together = torch.stack(list(labels))
        matched = MatchedUpdate(seen, match, together, join_gradients(seen, together.transpose(0, 1)))
        for now in self._descend(seen[0], z, matched, prior, rng):
            for lane, note in enumerate(with_derivatives(note, matched) for note in notes):
                if now.ended:
                    single = replace(now, z=now.z[lane : lane + 1], x=now.x[lane : lane + 1], match=now.match[lane : lane + 1])
                    yield from ((lane, answer) for answer in self._final_snapshots(single, labels[lane], matched, note))
                else:
                    yield lane, Snapshot(now.step, now.x[lane], labels[lane], now.match[lane], {**note, "start": 1})

    def _final_snapshots(self, end: Moment, labels: Tensor, matched: Matched, note: Note) -> Iterator[Snapshot]:
        """Yield a Snapshot with an event for each start that diverged, then the answer."""
        count = len(end.x)
        best, broken = closest(end)
        answer = Snapshot(end.step, end.x[best], labels, end.match[best], {**note, "start": best + 1})
        for lane in range(count):
            if broken[lane]:
                then = "keep pixels between black and white, or choose smaller steps" if all(broken) else "another is shown"
                yield replace(answer, note={**answer.note, "event": f"Try {lane + 1} of {count} failed (diverged): {then}."})
        if self.combine != "closest" and count > 1 and not all(broken):
            sound = end.x[[lane for lane in range(count) if not broken[lane]]]
            x = sound.mean(0) if self.combine == "mean" else sound.median(0).values
            loss = matched(x[None])[0].detach()
            answer = replace(answer, x=x, loss=loss, note={**note, "start": f"{self.combine} of {len(sound)}"})
        yield answer

    def _descend(self, seen: Observation, z: Tensor, matched: Matched, prior: Prior | None, rng: torch.Generator) -> Iterator[Moment]:
        """Run Adam on z (S, ...) and on the attacker's latents; yield a Moment before each step and one at the end.

        The latents are unknowns of the protection, such as its noise, in `seen.knowledge.latents`. All starts share them. They end as the
        last step left them, also if the best pictures are kept.
        """
        (low, high), unknowns = box(seen), self.unknowns
        shared = [(latent, self.latent_step) for latent in seen.knowledge.latents.values()]
        objective = Objective(seen, matched, prior, unknowns, self.floor)
        rng, half, coarse_steps = device_generator(rng, z.device), HalfSize(z.shape), round(self.coarse * self.steps)
        leaf = (half.reduce(z) if coarse_steps else z.clone()).requires_grad_()  # what Adam moves
        optimiser = Adam([(leaf, self.step_size), *shared])
        lowest, kept = torch.full((len(z),), math.inf, device=z.device, dtype=z.dtype), z.detach().clone()
        ends, step = self.floor if unknowns and not (prior or unknowns.tv_weight) else None, 0
        for step in range(1, self.steps + 1):
            if coarse_steps and step == coarse_steps + 1:
                leaf = half.enlarge(leaf.detach()).requires_grad_()
                optimiser = Adam([(leaf, self.step_size), *shared])
            z = half.enlarge(leaf.detach()).requires_grad_() if step <= coarse_steps else leaf
            x, match, gradient, more = objective(z)
            if self.keep_best:
                loss = objective.loss(z.detach(), x, match)
                better = loss < lowest
                lowest = torch.where(better, loss, lowest)
                kept = torch.where(better.view(-1, *[1] * (z.dim() - 1)), z.detach(), kept)
            yield Moment(step, z.detach(), x, match)
            direction = self._search_direction(half.pull_back(gradient) if step <= coarse_steps else gradient, step, rng)
            finite = [one.nan_to_num(0, 0, 0).contiguous() for one in more]  # a diverged start must not spoil the shared latents
            optimiser.step([direction, *finite], self._step_size_fraction(step))
            with torch.no_grad():
                if unknowns and unknowns.project:
                    leaf.copy_(unknowns.project(leaf))
                elif self.clamped and not unknowns:
                    torch.clamp(leaf, low, high, out=leaf)
            if ends is not None and step % ELECT == 0 and bool((match <= ends).all()):
                break
            if self.median and step % FILTERED == 0:
                leaf.data.copy_(median_filter(leaf.detach()))
        reached = half.enlarge(leaf.detach()) if step <= coarse_steps else leaf.detach()
        last = kept if self.keep_best else reached
        final = objective.pixels(last)
        yield Moment(step, last, final, matched(final).detach(), ended=True)

    def _search_direction(self, gradient: Tensor, step: int, rng: torch.Generator) -> Tensor:
        """Compute the direction that Adam gets in place of `gradient` (S, ...): jitter is added, then the sign or soft sign is taken.

        The fields `jitter`, `signed` and `soft` decide which of these steps are taken. The soft sign is tanh(s gradient) / s, where s falls
        from 1 to 0 (package breaching). The result is contiguous, as z is: the fused Adam pairs numbers by their position in memory and
        ignores strides.
        """
        gradient = gradient.contiguous()
        if self.jitter:
            drawn = torch.randn(gradient.shape, generator=rng, device=gradient.device).to(gradient)
            gradient = gradient + self.jitter * self.step_size * self._step_size_fraction(step) * drawn
        if self.signed and self.soft:
            left = 1 - (step - 1) / self.steps
            return (left * gradient).tanh() / left
        return gradient.sign() if self.signed else gradient

    def _step_size_fraction(self, step: int) -> float:
        """Return the step size at this step as a fraction of the first step size."""
        if self.schedule == "cosine":
            return min(1.0, step / WARM_UP) * 0.5 * (1 + math.cos(math.pi * (step - 1) / self.steps))
        passed = sum(step > int(self.steps / milestone) for milestone in MILESTONES) if self.schedule == "steps" else 0
        return float(0.1**passed)


def with_derivatives(note: Note, matched: Matched) -> Note:
    """Return the note of a search, which says so where its steps are compiled."""
    return {**note, "derivatives by": COMPILED} if isinstance(matched, MatchedUpdate) and matched.is_compiled else note


def closest(end: Moment) -> tuple[int, list[bool]]:
    """Return the index of the guess with the least distance, and for each of the S guesses whether it diverged.

    A guess that diverged is chosen only if all guesses did.
    """
    broken = [diverged(guess, float(loss)) for guess, loss in zip(end.x, end.match, strict=True)]
    return min(range(len(broken)), key=lambda lane: (broken[lane], float(end.match[lane]))), broken


def replays(seen: Observation, x: Tensor, labels: Tensor) -> Params:
    """Compute the gradients that S guesses x (S, B, C, H, W) would have given, each tensor (S, ...); one guess is replayed without vmap."""
    if len(x) > 1:
        return seen.gradients(x, labels)
    return {name: g.unsqueeze(0) for name, g in seen.gradient(x[0], labels).items()}
