"""The training of an attacker as a run: its epochs are told, what it made goes with the run, one that is stopped leaves nothing."""

import pytest

from leakage.data.inverters import inverter_folder, inverters
from leakage.runs.events import InverterEnd, ProgressEvent
from leakage.runs.service import Service
from leakage.spec.tasks import InverterTraining
from leakage.workers import inverter_adapter, inverter_job

SMALL = InverterTraining(pictures=100, epochs=2, features=16, hidden=16)


@pytest.fixture
def digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures in place of MNIST's, which need not be on this machine."""
    import torch

    x = torch.rand(100, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    monkeypatch.setattr(inverter_adapter, "pictures_of", lambda task: ((x, torch.arange(100) % 10), (x[:20], torch.arange(20) % 10)))


def test_its_epochs_are_told_and_what_it_made_goes_with_the_run(door: Service, digits: None) -> None:
    run = door.store.get(door.train(SMALL, "me"))
    assert run is not None
    assert run.kind == "invert"
    end = inverter_job.perform(door.store, run, lambda: False)
    told = door.store.events_of(run.id, ProgressEvent)
    assert [one.done for one in told] == [0, 1, 2, 2]
    assert isinstance(end, InverterEnd)
    assert end.inverter in inverters()
    assert inverter_job.perform(door.store, run, lambda: False) == end  # it is told again, not trained again
    door.delete(run.id, "me")
    assert end.inverter not in inverters()


def test_one_that_is_stopped_leaves_nothing(door: Service, digits: None) -> None:
    run = door.store.get(door.train(SMALL, "me"))
    assert run is not None
    assert inverter_job.perform(door.store, run, lambda: True).inverter is None
    assert not inverter_folder(InverterTraining.model_validate_json(run.experiment).name).exists()
