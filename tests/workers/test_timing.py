"""How many threads a run gets: only as many as it can use; and which models are measured in advance."""

import time
from collections.abc import Iterator

import pytest
import torch
from small_problems import altered, observed, smooth
from torch import nn

from leakage.engine.core import Params
from leakage.workers import timing
from leakage.workers.timing import fitting_threads, lanes_cost


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("alone", "together", "chosen"), [(0.06, 0.03, 2), (0.06, 0.06, 1), (0.03, 0.06, 1)])
def test_a_run_gets_a_second_thread_when_it_is_faster_by_it(alone: float, together: float, chosen: int) -> None:
    """A replay that takes so many seconds with one thread, and with two, by a clock that stands still otherwise."""
    seen, now = observed(smooth(1, 3, 8)), 0.0

    def slow(x: torch.Tensor, y: torch.Tensor) -> Params:
        nonlocal now
        now += alone if torch.get_num_threads() == 1 else together
        return seen.replay.single(x, y)

    assert fitting_threads(altered(seen, from_gradients=None, single=slow), 2, {}, clock=lambda: now) == chosen
    assert torch.get_num_threads() == chosen


@pytest.mark.parametrize(("one", "four", "pays"), [(0.02, 0.04, True), (0.01, 0.08, False), (0.4, 0.1, False)])
@pytest.mark.long
def test_runs_share_a_loop_where_that_is_faster(one: float, four: float, pays: bool) -> None:
    """A replay that takes so many seconds more alone, and with three others."""
    seen = observed(smooth(1, 3, 8))

    def busy(seconds: float) -> None:
        ends = time.process_time() + seconds
        while time.process_time() < ends:
            pass

    def alone(x: torch.Tensor, y: torch.Tensor) -> Params:
        busy(one)
        return seen.replay.single(x, y)

    def together(x: torch.Tensor, y: torch.Tensor) -> Params:
        busy(four)
        return seen.replay.several(x, y)

    assert (lanes_cost(altered(seen, from_gradients=None, single=alone, several=together), 4) < 4) is pays


def test_what_a_machine_does_meanwhile_is_in_no_measure() -> None:
    """A network that waits is as fast as one that does not: waiting is what a busy machine makes of it."""

    class Waiting(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            time.sleep(0.2)
            return super().forward(x.flatten(1))

    assert timing._time_model(Waiting(3072, 10), 1, torch.device("cpu")) < 0.1


@pytest.mark.parametrize(("large", "measured"), [(15_826, ["lenet"]), (15_825, [])])
def test_a_large_model_is_not_measured_ahead(large: int, measured: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """LeNet has 15,826 numbers."""
    monkeypatch.setattr(timing, "LARGE", large)
    monkeypatch.setattr(timing, "ids", lambda _kind: ["lenet"])
    state = torch.get_rng_state()
    found = dict(timing.measure(torch.device("cpu")))
    assert list(found) == measured
    assert all(0 < seconds < 10 for pair in found.values() for seconds in pair)
    assert torch.equal(torch.get_rng_state(), state)
