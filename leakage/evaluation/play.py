"""The play: lets the client send, shows the attack what the server holds, and has the referee score its guesses against the truth."""

import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal

import torch
from torch import Tensor, nn

from leakage.engine.client import gradient_client, single_gradients
from leakage.engine.core import Attack, Observation, Snapshot, generator
from leakage.engine.devices import exact_arithmetic, played_exactly
from leakage.engine.federation import Federation
from leakage.engine.matching import diverged
from leakage.engine.observe import observe, ready
from leakage.engine.stopping import StoppedError
from leakage.evaluation import metrics
from leakage.evaluation.baselines import Baselines
from leakage.evaluation.received import describe
from leakage.evaluation.referee import BlindReferee, Frame, Referee

PER_SECOND = 10.0  # frames kept per second at most
SHOWN = 8  # gradients of single pictures that are drawn
SHARE = 0.02  # ... and never more than this share of the time is spent on keeping them
NO_GRADIENT = (
    "This model passes no gradient on for these pictures: the update is zero, so there is nothing to attack, whatever protects it. "
    "Choose another activation, other weights, fewer layers, or other pictures."
)


@dataclass(frozen=True)
class Scene:
    """An attack ready to be played. The truth (x, y) stays here, with the referee; the attack gets `seen`.

    x, y       private pictures (B, C, H, W) in [0, 1] and labels (B,), on the CPU
    baselines  what guesses are held against
    received   what the server received, described in numbers
    changed    how far what was sent is from the undefended gradient ...
    known      ... and how far that is what the attacker works with
    """

    attack: Attack
    federation: Federation
    x: Tensor
    y: Tensor
    seen: Observation
    baselines: Baselines
    received: dict[str, Any] = field(default_factory=dict)
    changed: dict[str, float] = field(default_factory=dict)
    known: dict[str, float] = field(default_factory=dict)

    def referee(self) -> Referee:
        """Who scores the guesses of one attack."""
        return Referee(self.x, self.y, self.seen, self.baselines)


@dataclass(frozen=True)
class Private:
    """The private batch, as it lies with the client: pictures (B, C, H, W) in [0, 1] and labels (B,), on the client's device.

    num_classes   how many classes the model tells apart
    batch_norm    BatchNorm uses its stored statistics (eval), or those of this batch
    """

    x: Tensor
    y: Tensor
    num_classes: int
    batch_norm: Literal["eval", "batch"] = "eval"


@exact_arithmetic()
def stage(
    model: nn.Module,
    private: Private,
    federation: Federation,
    attack: Attack,
    baselines: Callable[[], Baselines],
    *,
    should_stop: Callable[[], bool] = lambda: False,
) -> Scene:
    """Let the client send its update from `model`, which is altered in place, and hand what arrives to the attacker.

    `baselines` are made when the client has sent: a model too large for this machine fails before anything else takes memory. `should_stop`
    is called before every local step of the client, and before the baselines are made. Raises StoppedError when it returns True.
    """
    x, y = private.x, private.y
    model = ready(model, federation, x, batch_norm=private.batch_norm)
    # The attacker's model may hold what it guesses of a protection that changes the model.
    honest = deepcopy(model) if federation.changes else model
    seen = observe(model, x, y, federation, num_classes=private.num_classes, should_stop=should_stop)
    plain, _ = gradient_client(honest)(seen.received.weights, x, y, {})
    if not any(bool(gradient.any()) for gradient in plain.values()):
        raise ValueError(NO_GRADIENT)
    alone = len(x) > 1 and private.batch_norm == "eval"  # whose BatchNorm needs the others has no gradient of its own
    sent = seen.received.history[federation.attacked_round - 1].update
    singles = islice(single_gradients(honest, seen.received.weights, x, y), SHOWN if alone else 0)
    if should_stop():
        raise StoppedError
    return Scene(
        attack=attack,
        federation=federation,
        x=x.to("cpu", torch.float32),
        y=y.cpu(),
        seen=seen,
        baselines=baselines(),
        received=describe(sent, seen.as_gradient(), singles),
        changed=metrics.gradient_distances(seen.replay.to_gradient(sent), plain),
        known=metrics.gradient_distances(seen.as_gradient(), plain),
    )


class Keeper:
    """Which Snapshots of one attack are kept, as scored Frames, so that keeping them costs next to nothing.

    Those that carry an event or views are always kept.
    """

    def __init__(self, referee: Referee | BlindReferee, per_second: float, share: float) -> None:
        self.referee = referee
        self.pause, self.share, self.due = 1 / per_second, share, 0.0
        self.last: Snapshot | None = None
        self.best: Snapshot | None = None  # a copy: what an attack yields may go on changing

    def frame(self, last: Snapshot) -> Frame | None:
        """The Snapshot as a Frame, if it is kept."""
        self.last, now = last, time.perf_counter()
        if not (now >= self.due or "event" in last.note or last.views):
            return None
        first = self.best is None  # it may have to load what scoring needs: that says nothing about those to come
        frame = self.referee.score(last)
        if self.best is None or self.best.loss.isnan() or last.loss < self.best.loss:
            note = {name: value for name, value in last.note.items() if name != "event"}  # that has been said when it happened
            self.best = replace(last, x=last.x.detach().clone(), y=last.y.detach().clone(), loss=last.loss.detach().clone(), note=note)
        self.due = now + max(self.pause, 0.0 if first else (time.perf_counter() - now) / self.share)
        return frame

    def final(self, *, stopped: bool) -> Frame:
        """The attack's answer, or, when it was stopped, the kept Snapshot of lowest attack loss. Never the one of highest PSNR."""
        answer = self.best if stopped else self.last
        assert answer is not None
        lost = diverged(answer.x, float(answer.loss))
        return self.referee.score(answer, ending="stopped" if stopped else "diverged" if lost else "answer")


def play(scene: Scene, *, should_stop: Callable[[], bool] = lambda: False, per_second: float = PER_SECOND) -> Iterator[Frame]:
    """Run the attack and yield scored Frames, at most `per_second`; the last one is final.

    It ends early when `should_stop()`, called at every step, returns True.
    """
    moments = scene.attack.run(scene.seen, generator(scene.federation.seed, "attack"))
    yield from played_exactly(_kept(moments, Keeper(scene.referee(), per_second, SHARE), should_stop))


def play_blind(attack: Attack, seen: Observation, *, seed: int, should_stop: Callable[[], bool] = lambda: False) -> Iterator[Frame]:
    """The same against an update of which nobody here holds the pictures: its Frames have no scores but the gradient distance."""
    moments = attack.run(seen, generator(seed, "attack"))
    yield from played_exactly(_kept(moments, Keeper(BlindReferee(seen), PER_SECOND, SHARE), should_stop))


def _kept(moments: Iterator[Snapshot], keeper: Keeper, should_stop: Callable[[], bool]) -> Iterator[Frame]:
    stopped = False
    for moment in moments:
        frame = keeper.frame(moment)
        if frame:
            yield frame
        stopped = should_stop()
        if stopped:
            break
    yield keeper.final(stopped=stopped)


def play_together(
    scenes: Sequence[Scene], stop_checks: Sequence[Callable[[], bool]], *, per_second: float = PER_SECOND
) -> Iterator[tuple[int, Frame]]:
    """Several scenes of one attack that can be joined, in one loop: Frames with their places.

    Each is stopped by its own callable of `stop_checks`; the last Frame of each is final.
    """
    yield from played_exactly(_kept_together(scenes, stop_checks, per_second))


def _kept_together(scenes: Sequence[Scene], stop_checks: Sequence[Callable[[], bool]], per_second: float) -> Iterator[tuple[int, Frame]]:
    rngs = [generator(scene.federation.seed, "attack") for scene in scenes]
    moments = scenes[0].attack.run_batched([scene.seen for scene in scenes], rngs)
    playing = {place: Keeper(scene.referee(), per_second, SHARE / len(scenes)) for place, scene in enumerate(scenes)}
    for place, moment in moments:
        if place not in playing:
            continue
        frame = playing[place].frame(moment)
        if frame:
            yield place, frame
        if stop_checks[place]():
            yield place, playing.pop(place).final(stopped=True)
            if not playing:
                return
    for place, keeper in playing.items():
        yield place, keeper.final(stopped=False)
