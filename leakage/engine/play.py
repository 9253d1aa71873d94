"""The play: lets the client send, shows the attack what the server holds, and has the referee score its guesses against the truth."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from leakage.engine import metrics
from leakage.engine.client import gradient_client, single_gradients
from leakage.engine.core import Attack, Observation, Snapshot, generator
from leakage.engine.data import load
from leakage.engine.observe import observe, said, untouched
from leakage.engine.received import describe
from leakage.engine.referee import Frame, Referee
from leakage.engine.setting import Setting, plugin
from leakage.engine.standards import Standards, standards
from leakage.spec import Experiment

__all__ = ["Frame", "Scene", "best_device", "joins", "observe", "play", "play_together", "plugin", "prepare"]

PER_SECOND = 10.0  # frames kept per second at most
SHOWN = 8  # gradients of single pictures that are drawn
PRECISIONS = {"float32": torch.float32, "float64": torch.float64}
SHARE = 0.02  # ... and never more than this share of the time is spent on keeping them


@dataclass(frozen=True)
class Scene:
    """An experiment ready to be played. The truth (x, y) stays here, with the referee; the attack gets `seen`."""

    experiment: Experiment
    x: Tensor  # (B, C, H, W)
    y: Tensor  # (B,)
    seen: Observation
    standards: Standards  # what guesses are held against
    received: dict[str, Any]
    changed: dict[str, float]  # how far what was sent is from the undefended gradient ...
    known: dict[str, float] = field(default_factory=dict)  # ... and how far that is what the attacker works with
    answers: tuple[str, ...] = ()  # what an adaptive attacker does about each protection, in words


def best_device() -> torch.device:
    """CUDA, then MPS, then CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def prepare(experiment: Experiment, *, uploads: Mapping[str, bytes] | None = None, device: torch.device | None = None) -> Scene:
    """Load the pictures, let the client send its update, and note what pictures that know nothing would score."""
    device = device or best_device()
    x, classes = (tensor.to(device) for tensor in load(experiment, uploads or {}))
    private = x.to(PRECISIONS[experiment.precision])
    y = classes if experiment.task == "classes" else said(experiment, private)
    seen = observe(experiment, private, y)
    # The attacker's model may hold what it guesses of a protection that changes the model.
    model = untouched(experiment, private) if Setting.of(experiment).changes else seen.model
    plain, _ = gradient_client(model)(seen.weights, private, y, {})
    alone = len(x) > 1 and experiment.batch_norm == "eval"  # whose BatchNorm needs the others has no gradient of its own
    sent = seen.history[experiment.attacked_round - 1].update
    singles = islice(single_gradients(model, seen.weights, private, y), SHOWN if alone else 0)
    return Scene(
        experiment=experiment,
        x=x.cpu(),
        y=y.cpu(),
        seen=seen,
        standards=standards(experiment, x.cpu(), classes.cpu()),
        received=describe(sent, seen.as_gradient(), singles),
        changed=metrics.gradient_distances(seen.average(sent), plain),
        known=metrics.gradient_distances(seen.as_gradient(), plain),
        answers=tuple(own.counter.words for own in sorted(Setting.of(experiment).protections, key=lambda own: own.place)),
    )


class Keeper:
    """Which Snapshots of one attack are kept, as scored Frames, so that keeping them costs next to nothing.

    Those that carry an event or views are always kept.
    """

    def __init__(self, scene: Scene, per_second: float, share: float) -> None:
        self.referee = Referee(scene.x, scene.y, scene.seen, scene.standards)
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
        return self.referee.score(answer, final=True)


def play(
    experiment: Experiment,
    *,
    scene: Scene | None = None,
    pulse: Callable[[], bool] = lambda: False,
    per_second: float = PER_SECOND,
) -> Iterator[Frame]:
    """Run the attack and yield scored Frames, at most `per_second`; the last one is final.

    It ends early when `pulse()` says so, which is asked at every step.
    """
    scene = scene or prepare(experiment)
    attack: Attack = plugin("attack", experiment.attack)
    keeper, stopped = Keeper(scene, per_second, SHARE), False
    for moment in attack.run(scene.seen, generator(experiment.seed, "attack")):
        frame = keeper.frame(moment)
        if frame:
            yield frame
        stopped = pulse()
        if stopped:
            break
    yield keeper.final(stopped=stopped)


def joins(experiment: Experiment) -> bool:
    """Whether it can be played in one loop with others that differ in nothing but the protection and who attacks it."""
    setting = Setting.of(experiment)  # in later rounds the weights differ with what was sent in the first
    return experiment.attacked_round == 1 and plugin("attack", experiment.attack).joins and setting.joins and not setting.changes


def play_together(
    scenes: Sequence[Scene], pulses: Sequence[Callable[[], bool]], *, per_second: float = PER_SECOND
) -> Iterator[tuple[int, Frame]]:
    """Several experiments that can be joined, in one loop: Frames with their places.

    Each is stopped by its own pulse; the last Frame of each is final.
    """
    attack: Attack = plugin("attack", scenes[0].experiment.attack)
    moments = attack.together([scene.seen for scene in scenes], [generator(scene.experiment.seed, "attack") for scene in scenes])
    playing = {place: Keeper(scene, per_second, SHARE / len(scenes)) for place, scene in enumerate(scenes)}
    for place, moment in moments:
        if place not in playing:
            continue
        frame = playing[place].frame(moment)
        if frame:
            yield place, frame
        if pulses[place]():
            yield place, playing.pop(place).final(stopped=True)
            if not playing:
                return
    for place, keeper in playing.items():
        yield place, keeper.final(stopped=False)
