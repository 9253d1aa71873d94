"""The run that measures a network's ranks: of every layer, then of the whole gradient, which usually takes longest.

Every rank becomes an event, and all ranks together are the result.
"""

import math
import time
from collections.abc import Callable

import torch

from leakage.engine.chain import TwoClasses
from leakage.engine.jacobian_rank import Spectrum, spectrum
from leakage.engine.measured_rank import measured_rank
from leakage.engine.stopping import StoppedError
from leakage.runs.event_parts import GradientRank, NoiseCount
from leakage.runs.events import GradientRankEvent, MovedEvent, RankEvent, RanksEnd, TurnEvent
from leakage.runs.store import Run, Store
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.spec.tasks import Ranks
from leakage.workers.adapter import untrained
from leakage.workers.private_pictures import load

PICTURE = Picture(id="astronaut")
NOISES = (1e-3, 1e-2)  # norms of noise, relative to the norm of the gradient
REPORTS = 50  # events on the progress of the whole gradient, at most


def perform(store: Store, run: Run, should_stop: Callable[[], bool]) -> RanksEnd:
    """Measure the ranks of the equations for each layer's input, and of the whole gradient; store each as an event, and return all.

    Returns:
        The ranks by name of the layer (None for a layer that is too large), the rank of the whole gradient, the seconds, and whether
        everything was measured.
    """
    task, begun = run.experiment_as(Ranks), time.monotonic()
    ranks, gradient, whole = dict[str, int | None](), None, False
    try:
        for number, layer in enumerate(task.layers, 1):
            if should_stop():
                raise StoppedError
            store.add_event(run.id, TurnEvent(name=layer.name, number=number, layers=len(task.layers)))
            ranks[layer.name] = measured_rank(layer, task.seed, should_stop=should_stop)
            store.add_event(run.id, RankEvent(name=layer.name, rank=ranks[layer.name]))
        if task.directions:
            gradient = describe_spectrum(whole_gradient(task, _Progress(store, run.id, task.directions, should_stop)))
            store.add_event(run.id, GradientRankEvent(measured=gradient))
        whole = True
    except StoppedError:
        pass
    return RanksEnd(ranks=ranks, seconds=round(time.monotonic() - begun, 1), whole=whole, gradient=gradient)


def whole_gradient(task: Ranks, should_stop: Callable[[int], bool] = lambda _: False) -> Spectrum:
    """Compute the singular values of d(gradient)/d(picture) at a gallery picture, for weights drawn by the seed.

    Args:
        task: the network, the shape of the picture, the number of outputs, and the seed.
        should_stop: called with the number of directions in which the picture was changed; see `spectrum`.
    """
    shape = (task.channels, task.size, task.size)
    model = untrained(Part(id="custom", fields={"network": task.network}), shape, task.outputs, seed=task.seed)
    if task.outputs == 1:
        model.add_module("two", TwoClasses())
    x, classes = load(Experiment(pictures=(PICTURE,), size=task.size, channels=task.channels), {})
    label = torch.remainder(classes, max(task.outputs, 2))
    return spectrum(model, x, label, directions=task.directions, seed=task.seed, should_stop=should_stop)


def describe_spectrum(measured: Spectrum) -> GradientRank:
    """Return a spectrum as data for an event: its rank, its condition number, and how many singular values lie above noise."""
    return GradientRank(
        rank=measured.rank,
        unknowns=measured.unknowns,
        directions=measured.directions,
        sent=measured.sent,
        condition=measured.condition if math.isfinite(measured.condition) else None,
        exact=measured.exact,
        above=tuple(NoiseCount(share=noise, directions=measured.above_fraction(noise)) for noise in NOISES),
    )


class _Progress:
    """A `should_stop` that also stores an event, at intervals, with the number of directions in which the picture was changed."""

    def __init__(self, store: Store, run: str, directions: int, should_stop: Callable[[], bool]) -> None:
        self.store, self.run, self.directions, self.should_stop, self.reported = store, run, directions, should_stop, -math.inf

    def __call__(self, done: int) -> bool:
        if done - self.reported >= self.directions / REPORTS:
            self.store.add_event(self.run, MovedEvent(done=done, directions=self.directions))
            self.reported = done
        return self.should_stop()
