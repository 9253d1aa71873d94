"""The measurement of a network's ranks as a run: events when it turns to a layer and when it has its rank, and all ranks as the result."""

import time
from collections.abc import Callable

from leakage.engine.measured_rank import StoppedError, measured_rank
from leakage.runs.events import RankEvent, RanksEnd, TurnEvent
from leakage.runs.store import Run, Store
from leakage.spec.tasks import Ranks


def perform(store: Store, run: Run, pulse: Callable[[], bool]) -> RanksEnd:
    """Measure layer after layer; answer ranks (by name, None of a layer that is too large), seconds, and whether that is the whole."""
    asked, begun = Ranks.model_validate_json(run.experiment), time.monotonic()
    layers, ranks = asked.layers, dict[str, int | None]()
    for number, layer in enumerate(layers, 1):
        if pulse():
            break
        store.add_event(run.id, TurnEvent(name=layer.name, number=number, layers=len(layers)))
        try:
            ranks[layer.name] = measured_rank(layer, asked.seed, pulse=pulse)
        except StoppedError:
            break
        store.add_event(run.id, RankEvent(name=layer.name, rank=ranks[layer.name]))
    return RanksEnd(ranks=ranks, seconds=round(time.monotonic() - begun, 1), whole=len(ranks) == len(layers))
