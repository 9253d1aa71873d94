"""The measurement of a network's ranks as a run: of every layer, then of the whole gradient; an event at every turn, and all as the result.

The whole gradient comes last: it usually takes longest.
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
NOISES = (1e-3, 1e-2)  # lengths of noise, in lengths of the gradient
TELLINGS = 50  # times at most that it tells how far it is with the whole gradient


def perform(store: Store, run: Run, should_stop: Callable[[], bool]) -> RanksEnd:
    """Measure; answer ranks (by name, None of a layer that is too large), that of the whole gradient, seconds, and whether that is all."""
    asked, begun = run.experiment_as(Ranks), time.monotonic()
    ranks, gradient, whole = dict[str, int | None](), None, False
    try:
        for number, layer in enumerate(asked.layers, 1):
            if should_stop():
                raise StoppedError
            store.add_event(run.id, TurnEvent(name=layer.name, number=number, layers=len(asked.layers)))
            ranks[layer.name] = measured_rank(layer, asked.seed, should_stop=should_stop)
            store.add_event(run.id, RankEvent(name=layer.name, rank=ranks[layer.name]))
        if asked.directions:
            gradient = in_numbers(whole_gradient(asked, _Teller(store, run.id, asked.directions, should_stop)))
            store.add_event(run.id, GradientRankEvent(measured=gradient))
        whole = True
    except StoppedError:
        pass
    return RanksEnd(ranks=ranks, seconds=round(time.monotonic() - begun, 1), whole=whole, gradient=gradient)


def whole_gradient(asked: Ranks, should_stop: Callable[[int], bool] = lambda _: False) -> Spectrum:
    """Compute the spectrum of d(gradient)/d(picture) at a gallery picture, weights drawn by the seed; `should_stop`: see `spectrum`."""
    shape = (asked.channels, asked.size, asked.size)
    model = untrained(Part(id="custom", fields={"network": asked.network}), shape, asked.outputs, seed=asked.seed)
    if asked.outputs == 1:
        model.add_module("two", TwoClasses())
    x, classes = load(Experiment(pictures=(PICTURE,), size=asked.size, channels=asked.channels), {})
    label = torch.remainder(classes, max(asked.outputs, 2))
    return spectrum(model, x, label, directions=asked.directions, seed=asked.seed, should_stop=should_stop)


def in_numbers(found: Spectrum) -> GradientRank:
    """Return the spectrum as data for an event."""
    return GradientRank(
        rank=found.rank,
        unknowns=found.unknowns,
        directions=found.directions,
        sent=found.sent,
        condition=found.condition if math.isfinite(found.condition) else None,
        exact=found.exact,
        above=tuple(NoiseCount(share=share, directions=found.above_fraction(share)) for share in NOISES),
    )


class _Teller:
    """A `should_stop` that also reports to a run's listeners, at intervals, how many directions have been moved."""

    def __init__(self, store: Store, run: str, directions: int, should_stop: Callable[[], bool]) -> None:
        self.store, self.run, self.directions, self.should_stop, self.told = store, run, directions, should_stop, -math.inf

    def __call__(self, done: int) -> bool:
        if done - self.told >= self.directions / TELLINGS:
            self.store.add_event(self.run, MovedEvent(done=done, directions=self.directions))
            self.told = done
        return self.should_stop()
