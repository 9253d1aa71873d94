"""The training of an attacker as a run: its epochs are shown, its network goes with the run, a stopped run leaves nothing."""

from pathlib import Path

import pytest
from digits_data_set import write_digits

from leakage.data.inverters import inverter_folder, inverters
from leakage.runs.events import InverterEnd, ProgressEvent
from leakage.runs.service import Service
from leakage.spec.tasks import InverterTraining
from leakage.workers import inverter_job

SMALL = InverterTraining(pictures=100, epochs=2, features=16, hidden=16)


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data folder with scikit-learn's digits where MNIST's are looked for."""
    monkeypatch.setenv("LEAKAGE_DATA", str(write_digits(tmp_path / "data")))


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
    assert not inverter_folder(run.experiment_as(InverterTraining).name).exists()
