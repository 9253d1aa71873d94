"""The client's computation can be stopped before every local step of every round, and is otherwise unchanged."""

import pytest
import torch
from small_problems import LABELS, TINY, smooth

from leakage.engine.observe import observe
from leakage.engine.stopping import StoppedError
from leakage.spec.experiment import Experiment, Part
from leakage.workers.adapter import federation, initial_model

EPOCHS, ROUNDS = 7, 3
LOCAL = Experiment(model=TINY, protocol=Part(id="fedavg", fields={"epochs": EPOCHS, "mini_batch": 1}), rounds=ROUNDS)
MEMBERS = LOCAL.model_copy(update={"aggregation": Part(id="secure_aggregation", fields={"clients": 2})})


@pytest.mark.parametrize("experiment", [LOCAL, MEMBERS], ids=["one phone", "two phones in a sum"])
def test_should_stop_is_called_before_every_local_step_of_every_round(experiment: Experiment) -> None:
    """Two pictures in mini-batches of one: two steps an epoch, on one client or on two."""
    asked = list[int]()

    def should_stop() -> bool:
        asked.append(1)
        return False

    x, y = smooth(2), LABELS[:2]
    seen = observe(initial_model(experiment, x), x, y, federation(experiment), num_classes=10, should_stop=should_stop)
    assert len(asked) == 2 * EPOCHS * ROUNDS
    plain = observe(initial_model(experiment, x), x, y, federation(experiment), num_classes=10)
    assert all(torch.equal(seen.received.update[name], plain.received.update[name]) for name in plain.received.update)


@pytest.mark.parametrize("step", [1, EPOCHS, 2 * EPOCHS + 1, 2 * EPOCHS * ROUNDS])
def test_no_step_is_taken_after_it_says_stop(step: int) -> None:
    asked = list[int]()

    def should_stop() -> bool:
        asked.append(1)
        return len(asked) == step

    x = smooth(2)
    with pytest.raises(StoppedError):
        observe(initial_model(LOCAL, x), x, LABELS[:2], federation(LOCAL), num_classes=10, should_stop=should_stop)
    assert len(asked) == step
