"""The Adam loop that Inverting Gradients and GradInversion share: any number of starts, or of observations, at once."""

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from leakage.engine.core import Observation, Params, Snapshot
from leakage.engine.devices import device_generator
from leakage.engine.lanes import joined
from leakage.engine.matching import Distance, box, diverged, median_filter, to_pixels, total_variation

SCHEDULES = ("steps", "cosine", "constant")
MILESTONES = (2.667, 1.6, 1.142)  # the step size falls tenfold after these shares of all steps
WARM_UP = 50  # steps, of the cosine schedule
ELECT = 25  # steps between two looks at which start is closest: between them the same one is shown
FILTERED = 500  # steps between two median filters
LATENTS = 0.01  # the step size of what is looked for beside the pictures
COMBINE = ("closest", "mean", "median")

Note = dict[str, str | int | float]
Prior = Callable[[Tensor], Tensor]  # z (S, B, C, H, W) -> (S,)


@dataclass(frozen=True)
class Moment:
    """Where all guesses z (S, ...) stand: x (S, B, C, H, W) in pixels, their distances (S,). The last one is `over`, after all steps."""

    step: int
    z: Tensor
    x: Tensor
    match: Tensor
    over: bool = False


@dataclass(frozen=True)
class Unknowns:
    """What is searched in place of pixels: z (S, ...).

    decode     z -> pictures (S, B, C, H, W) in pixels
    project    where z is put after every step; None: it stays
    tv_weight  of the total variation of these pictures
    """

    decode: Callable[[Tensor], Tensor]
    project: Callable[[Tensor], Tensor] | None = None
    tv_weight: float = 0.0


@dataclass(frozen=True)
class Descent:
    """Adam on S guesses. The field's terms: `signed` and `soft` say what becomes of each pixel's gradient, `jitter` is Langevin noise.

    `unknowns`: z is none of pictures, and its own `project` is done in place of the box.
    `floor`: the distance at which the true pictures are expected, () or (S,); None: 0, or not known. A guess that is as near is not drawn
    nearer, only to what the prior prefers: of all pictures that explain the update as well as the true ones would, it is the likeliest. A
    search in `unknowns` without a prior ends there.
    """

    steps: int
    step_size: float
    schedule: str = "steps"
    signed: bool = True
    soft: bool = False
    boxed: bool = True
    keep_best: bool = False
    median: bool = False
    jitter: float = 0.0
    combine: str = "closest"
    unknowns: Unknowns | None = None
    latent_step: float = LATENTS
    floor: Tensor | None = None

    def run(  # noqa: PLR0913  (the parts of an objective)
        self, seen: Observation, z: Tensor, labels: Tensor, match: Distance, prior: Prior | None, *, note: Note, rng: torch.Generator
    ) -> Iterator[Snapshot]:
        """Play all starts z (S, B, C, H, W); yield the closest of them, the last one as the answer."""
        yield from self.nearest(seen, z, labels, lambda x: match(replays(seen, x, labels)), prior, note=note, rng=rng)

    def nearest(  # noqa: PLR0913  (as `run`)
        self, seen: Observation, z: Tensor, labels: Tensor, matched: Prior, prior: Prior | None, *, note: Note, rng: torch.Generator
    ) -> Generator[Snapshot, None, Tensor]:
        """The same for any distance of pictures (S, B, C, H, W) in pixels, (S,). Returns where the closest start ended, (1, ...) of z."""
        shown, end = 0, z
        for now in self._descend(seen, z, matched, prior, rng):
            if len(z) > 1 and now.step % ELECT == 1:
                shown = int(now.match.nan_to_num(math.inf).argmin())
            if now.over:
                yield from self._answers(now, labels, matched, note)
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
        """One start of each observation, z (S, B, C, H, W); yield every Snapshot with its place."""
        replay = joined(seen, torch.stack(list(labels), 1))

        def matched(x: Tensor) -> Tensor:
            return torch.cat([own(update) for own, update in zip(match, replay(x), strict=True)])

        for now in self._descend(seen[0], z, matched, prior, rng):
            for lane, note in enumerate(notes):
                if now.over:
                    alone = replace(now, z=now.z[lane : lane + 1], x=now.x[lane : lane + 1], match=now.match[lane : lane + 1])
                    yield from ((lane, answer) for answer in self._answers(alone, labels[lane], matched, note))
                else:
                    yield lane, Snapshot(now.step, now.x[lane], labels[lane], now.match[lane], {**note, "start": 1})

    def _answers(self, end: Moment, labels: Tensor, matched: Callable[[Tensor], Tensor], note: Note) -> Iterator[Snapshot]:
        """What became of starts that diverged, and the answer."""
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

    def _descend(
        self, seen: Observation, z: Tensor, matched: Callable[[Tensor], Tensor], prior: Prior | None, rng: torch.Generator
    ) -> Iterator[Moment]:
        """Adam on z (S, B, C, H, W), and on what is `latents`; `matched`: pictures of that shape -> distances (S,).

        All starts share one guess of what is sought, which ends as the last step left it, also where the best pictures are kept.
        """
        (low, high), latents, unknowns = box(seen), list(seen.knowledge.latents.values()), self.unknowns
        pixels = unknowns.decode if unknowns else to_pixels(seen)
        z, rng = z.clone().requires_grad_(), device_generator(rng, z.device)
        groups = [([z], self.step_size), *([(latents, self.latent_step)] if latents else [])]
        optimiser = torch.optim.Adam([{"params": leaves, "lr": size} for leaves, size in groups], fused=z.device.type != "mps")
        lowest, kept = torch.full((len(z),), math.inf, device=z.device, dtype=z.dtype), z.detach().clone()
        ends, step = self.floor if unknowns and not (prior or unknowns.tv_weight) else None, 0
        for step in range(1, self.steps + 1):
            x = pixels(z)
            match = matched(x)  # (S,)
            fit = match if self.floor is None else match.clamp(min=self.floor)
            loss = fit + prior(z) if prior else fit
            if unknowns and unknowns.tv_weight:
                loss = loss + unknowns.tv_weight * total_variation(x)
            gradient, *more = torch.autograd.grad(loss.sum(), [z, *latents])
            if self.keep_best:
                better = loss.detach() < lowest
                lowest = torch.where(better, loss.detach(), lowest)
                kept = torch.where(better.view(-1, *[1] * (z.dim() - 1)), z.detach(), kept)
            yield Moment(step, z.detach(), x.detach(), match.detach())
            z.grad = self._turned(gradient, step, rng)
            for leaf, own in zip(latents, more, strict=True):
                leaf.grad = own.nan_to_num(0, 0, 0).contiguous()  # one start that diverges must not spoil what all share
            for group, (_, size) in zip(optimiser.param_groups, groups, strict=True):
                group["lr"] = size * self._share(step)
            optimiser.step()
            with torch.no_grad():
                if unknowns and unknowns.project:
                    z.copy_(unknowns.project(z))
                elif self.boxed and not unknowns:
                    torch.clamp(z, low, high, out=z)
            if ends is not None and step % ELECT == 0 and bool((match <= ends).all()):
                break
            if self.median and step % FILTERED == 0:
                z.data.copy_(median_filter(z.detach()))
        last = kept if self.keep_best else z.detach()
        final = pixels(last)
        yield Moment(step, last, final, matched(final).detach(), over=True)

    def _turned(self, gradient: Tensor, step: int, rng: torch.Generator) -> Tensor:
        """What Adam is given for a gradient. Soft sign: tanh(s gradient) / s, where s falls from 1 to 0 (package breaching).

        In the memory order of z: the fused Adam pairs numbers by their place in memory, whatever the strides say.
        """
        gradient = gradient.contiguous()
        if self.jitter:
            drawn = torch.randn(gradient.shape, generator=rng, device=gradient.device).to(gradient)
            gradient = gradient + self.jitter * self.step_size * self._share(step) * drawn
        if self.signed and self.soft:
            left = 1 - (step - 1) / self.steps
            return (left * gradient).tanh() / left
        return gradient.sign() if self.signed else gradient

    def _share(self, step: int) -> float:
        """The share of the first step size that is left at this step."""
        if self.schedule == "cosine":
            return min(1.0, step / WARM_UP) * 0.5 * (1 + math.cos(math.pi * (step - 1) / self.steps))
        passed = sum(step > int(self.steps / place) for place in MILESTONES) if self.schedule == "steps" else 0
        return float(0.1**passed)


def closest(end: Moment) -> tuple[int, list[bool]]:
    """Which guess ended nearest, and which diverged."""
    broken = [diverged(one, float(loss)) for one, loss in zip(end.x, end.match, strict=True)]
    return min(range(len(broken)), key=lambda lane: (broken[lane], float(end.match[lane]))), broken


def replays(seen: Observation, x: Tensor, labels: Tensor) -> Params:
    """The gradients of S guesses. One alone is replayed by itself, which is faster."""
    if len(x) > 1:
        return seen.gradients(x, labels)
    return {name: g.unsqueeze(0) for name, g in seen.gradient(x[0], labels).items()}
