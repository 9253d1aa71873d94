"""One attack from start to end: the client sends, the attack gets the observation, and the referee scores the guesses."""

import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import Any, Literal

import torch
from torch import Tensor, nn

from leakage.engine.check import CheckReading
from leakage.engine.client import gradient_client, single_gradients
from leakage.engine.core import Attack, Batch, Observation, Snapshot, generator
from leakage.engine.devices import exact_arithmetic, run_exactly
from leakage.engine.federation import Federation
from leakage.engine.matching import diverged
from leakage.engine.observe import inspection_of, observe, ready
from leakage.engine.stopping import StoppedError
from leakage.evaluation import metrics
from leakage.evaluation.baselines import Baselines
from leakage.evaluation.isolated_search import run_attack
from leakage.evaluation.received import describe
from leakage.evaluation.referee import BlindReferee, Frame, Referee

PER_SECOND = 10.0  # frames per second at most
SHOWN = 8  # gradients of single pictures that are drawn
FRACTION = 0.02  # the largest fraction of the time that is spent on scoring and storing frames
NO_GRADIENT = (
    "This model passes no gradient on for these pictures: the update is zero, so there is nothing to attack, whatever protects it. "
    "Choose another activation, other weights, fewer layers, or other pictures."
)


@dataclass(frozen=True)
class PreparedAttack:
    """An attack that is ready to run, and the private batch (x, y) to score it with. The attack gets only `seen`."""

    attack: Attack
    federation: Federation
    x: Tensor
    """The private pictures (B, C, H, W) in [0, 1], on the CPU."""
    y: Tensor
    """The private labels (B,), on the CPU."""
    seen: Observation
    """What the attack gets."""
    compute_baselines: Callable[[], Baselines]
    """Returns what guesses are compared with. The first call takes time; later calls return the same."""
    received: dict[str, Any] = field(default_factory=dict)
    """What the server received, as numbers for the page."""
    changed: dict[str, float] = field(default_factory=dict)
    """The distances between the gradient in what was sent and the undefended gradient."""
    known: dict[str, float] = field(default_factory=dict)
    """The distances between the gradient that the attacker works with and the undefended gradient."""
    checked: tuple[CheckReading, ...] = ()
    """What the clients' checks of the received model found; the attack does not get it."""

    @property
    def baselines(self) -> Baselines:
        """What guesses are compared with; computed at the first use, so that an attack that does not apply needs no line-up."""
        return self.compute_baselines()

    def referee(self) -> Referee:
        """Create the Referee, which compares the guesses of one run with the private pictures."""
        return Referee(self.x, self.y, self.seen, self.compute_baselines)


@dataclass(frozen=True)
class Private:
    """The private batch of the client."""

    x: Tensor
    """Pictures (B, C, H, W) in [0, 1], on the client's device."""
    y: Tensor
    """Labels (B,), on the client's device."""
    num_classes: int
    """The number of classes of the model."""
    batch_norm: Literal["eval", "batch"] = "eval"
    """BatchNorm uses its stored statistics (eval), or those of this batch (batch)."""


@exact_arithmetic()
def prepare_attack(
    model: nn.Module,
    private: Private,
    federation: Federation,
    attack: Attack,
    baselines: Callable[[], Baselines],
    *,
    should_stop: Callable[[], bool] = lambda: False,
) -> PreparedAttack:
    """Let the client send its updates, and prepare the attack on them.

    Args:
        model: the model that the client receives; altered in place.
        private: the client's batch.
        federation: protocol, protections, rounds and threat model.
        attack: the attack.
        baselines: computes the baselines. It is called once, at their first use.
        should_stop: called before every local step of the client, and before this function returns.

    Raises:
        RefusedError: a client refused to train the received model.
        StoppedError: `should_stop` returned True.
        ValueError: the gradient of the private batch is zero.
    """
    x, y = private.x, private.y
    inspection = inspection_of(model, federation, x, batch_norm=private.batch_norm)
    model = ready(model, federation, x, batch_norm=private.batch_norm)
    # `observe` may write the attacker's guess of a protection into the buffers of `model`.
    honest = deepcopy(model) if federation.changes_model else model
    seen = observe(model, x, y, federation, num_classes=private.num_classes, inspection=inspection, should_stop=should_stop)
    plain, _ = gradient_client(honest)(seen.received.weights, x, y, {})
    if not any(bool(gradient.any()) for gradient in plain.values()):
        raise ValueError(NO_GRADIENT)
    separable = len(x) > 1 and private.batch_norm == "eval"  # with the batch's statistics no picture has a gradient alone
    sent = seen.received.history[federation.attacked_round - 1].update
    singles = islice(single_gradients(honest, seen.received.weights, x, y), SHOWN if separable else 0)
    if should_stop():
        raise StoppedError
    return PreparedAttack(
        attack=attack,
        federation=federation,
        x=x.to("cpu", torch.float32),
        y=y.cpu(),
        seen=seen,
        compute_baselines=cache(baselines),
        received=describe(sent, seen.as_gradient(), singles),
        changed=metrics.gradient_distances(seen.replay.to_gradient(sent), plain),
        known=metrics.gradient_distances(seen.as_gradient(), plain),
        checked=tuple(inspection.readings) if inspection else (),
    )


def check_snapshot(snapshot: Snapshot, batch: Batch) -> None:
    """Raise ValueError, with a sentence for the author of the attack, if a Snapshot has values of a wrong type or shape.

    Args:
        snapshot: what the attack yielded.
        batch: what every attacker knows of the private batch.
    """
    if not isinstance(snapshot, Snapshot):
        raise ValueError(f"An attack must yield Snapshots; this attack yielded a value of type {type(snapshot).__name__}.")
    expected: dict[str, list[tuple[int, ...]]] = {"x": [batch.shape], "y": [(batch.size,), (batch.size, batch.num_classes)], "loss": [()]}
    for name, shapes in expected.items():
        value = getattr(snapshot, name)
        if not isinstance(value, Tensor) or tuple(value.shape) not in shapes:
            given = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a value of type {type(value).__name__}"
            allowed = " or ".join(map(str, shapes))
            raise ValueError(f"The attack yielded a Snapshot of which {name} is {given}; expected is a tensor of shape {allowed}.")


class FrameLimiter:
    """Chooses the Snapshots of an attack that are scored and become Frames, so that scoring takes little of the run's time.

    A Snapshot with an event or views always becomes a Frame.
    """

    def __init__(self, referee: Referee | BlindReferee, per_second: float, fraction: float) -> None:
        self.referee = referee
        self.pause, self.fraction, self.due = 1 / per_second, fraction, 0.0
        self.last: Snapshot | None = None
        self.best: Snapshot | None = None  # a copy, because the attack may go on changing the tensors that it yields

    def frames(self, last: Snapshot) -> Iterator[Frame]:
        """Score a Snapshot and yield its Frame if one is due. Raises ValueError for a Snapshot of a wrong shape.

        The caller stores the Frame before it asks for more: its processor time until then counts as spent on it, its waiting does not.
        """
        check_snapshot(last, self.referee.seen.batch)
        self.last, now = last, time.perf_counter()
        if not (now >= self.due or "event" in last.note or last.views):
            return
        first = self.best is None  # its scoring may load files, so its time says nothing about later frames
        frame = self.referee.score(last)
        if self.best is None or self.best.loss.isnan() or last.loss < self.best.loss:
            note = {name: value for name, value in last.note.items() if name != "event"}  # the frame of that moment has shown the event
            self.best = replace(last, x=last.x.detach().clone(), y=last.y.detach().clone(), loss=last.loss.detach().clone(), note=note)
        spent, computed = time.perf_counter() - now, time.thread_time()
        yield frame
        spent += time.thread_time() - computed
        self.due = now + max(self.pause, 0.0 if first else spent / self.fraction)

    def final(self, *, stopped: bool) -> Frame:
        """Return the result of the attack as a scored Frame: the last Snapshot, or, if it was stopped, the Snapshot of the lowest loss.

        The loss is the attack's objective, and only Snapshots that became Frames compete. The truth has no influence on this choice.
        """
        result = self.best if stopped else self.last
        if result is None:
            raise ValueError("The attack yielded no Snapshot, so it has no answer: `run` must yield at least one.")
        failed = diverged(result.x, float(result.loss))
        return self.referee.score(result, ending="stopped" if stopped else "diverged" if failed else "answer")


def play(prepared: PreparedAttack, *, should_stop: Callable[[], bool] = lambda: False, per_second: float = PER_SECOND) -> Iterator[Frame]:
    """Run the attack and yield scored Frames; the last Frame is final.

    Args:
        prepared: the attack.
        should_stop: called at every step; the run ends early when it returns True.
        per_second: the largest number of Frames per second.
    """
    snapshots = run_attack(prepared.attack, prepared.federation, prepared.seen, generator(prepared.federation.seed, "attack"))
    yield from run_exactly(_frames(snapshots, FrameLimiter(prepared.referee(), per_second, FRACTION), should_stop))


def play_blind(attack: Attack, seen: Observation, *, seed: int, should_stop: Callable[[], bool] = lambda: False) -> Iterator[Frame]:
    """Run an attack on an update without its private pictures, and yield Frames; their only score is the gradient distance at the end.

    Args:
        attack: the attack.
        seen: what it gets.
        seed: of the attack's random numbers.
        should_stop: called at every step; the run ends early when it returns True.
    """
    snapshots = attack.run(seen, generator(seed, "attack"))
    yield from run_exactly(_frames(snapshots, FrameLimiter(BlindReferee(seen), PER_SECOND, FRACTION), should_stop))


def _frames(snapshots: Iterator[Snapshot] | None, limiter: FrameLimiter, should_stop: Callable[[], bool]) -> Iterator[Frame]:
    stopped = False
    for snapshot in snapshots or ():  # None: the attack's `run` has no yield
        yield from limiter.frames(snapshot)
        stopped = should_stop()
        if stopped:
            break
    yield limiter.final(stopped=stopped)


def play_together(
    attacks: Sequence[PreparedAttack], stop_checks: Sequence[Callable[[], bool]], *, per_second: float = PER_SECOND
) -> Iterator[tuple[int, Frame]]:
    """Run several prepared attacks of one kind in one loop, and yield Frames, each with the index of its attack.

    The last Frame of each attack is final.

    Args:
        attacks: the prepared attacks, which `Attack.run_batched` can run together.
        stop_checks: for each attack a callable; its run ends early when this returns True.
        per_second: the largest number of Frames per second of each attack.
    """
    yield from run_exactly(_frames_together(attacks, stop_checks, per_second))


def _frames_together(
    attacks: Sequence[PreparedAttack], stop_checks: Sequence[Callable[[], bool]], per_second: float
) -> Iterator[tuple[int, Frame]]:
    rngs = [generator(prepared.federation.seed, "attack") for prepared in attacks]
    snapshots = attacks[0].attack.run_batched([prepared.seen for prepared in attacks], rngs)
    running = {index: FrameLimiter(prepared.referee(), per_second, FRACTION / len(attacks)) for index, prepared in enumerate(attacks)}
    for index, snapshot in snapshots:
        if index not in running:
            continue
        for frame in running[index].frames(snapshot):
            yield index, frame
        if stop_checks[index]():
            yield index, running.pop(index).final(stopped=True)
            if not running:
                return
    for index, limiter in running.items():
        yield index, limiter.final(stopped=False)
