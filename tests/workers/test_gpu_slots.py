"""GPU slots: how many runs at a time, on which GPU, with how much memory; results of different devices stay separate."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from store_rows import run

from leakage import settings
from leakage.runs.device_kinds import on_device
from leakage.runs.notes import DEVICE, SLOTS, SPEEDS
from leakage.runs.service import Service
from leakage.runs.store import Run, Store
from leakage.settings import Settings
from leakage.spec.experiment import Experiment, Part
from leakage.spec.tasks import Ranks
from leakage.workers import gpu_slots
from leakage.workers.gpu_slots import GpuSlot, assign_gpus, find_gpus, slots_for
from leakage.workers.worker import note_device, perform, work

GB = 2**30
CPU, CUDA = torch.device("cpu"), torch.device("cuda")
FAST = Experiment(attack=Part(id="linear_layer"), model=Part(id="mlp"))


@pytest.mark.parametrize(
    ("gpus", "cores", "slots", "gigabytes"),
    [
        ([8], 16, 2, 2.8),  # 0.7 of 8 GB are 5.6: twice 2 GB fit
        ([24], 16, 8, 2.1),
        ([80], 16, 8, 7.0),  # more than eight processes would not fit with what each takes for itself
        ([80], 4, 4, 14.0),  # each keeps a core busy
        ([80, 80], 16, 16, 7.0),
        ([80] * 8, 16, 16, 28.0),  # two cores for each GPU
        ([80] * 4, 2, 4, 56.0),  # one slot for each GPU at least
        ([2], 16, 1, 1.4),
    ],
)
def test_slots_and_memory_fit_the_card(gpus: list[int], cores: int, slots: int, gigabytes: float) -> None:
    sizes = [size * GB for size in gpus]
    assert slots_for(sizes, cores) == slots
    shares = assign_gpus(slots, sizes)
    assert [one.fraction * gpus[one.gpu] for one in shares] == pytest.approx([gigabytes] * slots)
    for gpu in range(len(gpus)):
        assert sum(one.fraction for one in shares if one.gpu == gpu) == pytest.approx(0.7)


def test_unequal_cards_get_slots_by_their_memory() -> None:
    assert slots_for([8 * GB, 24 * GB], cores=32) == 2 + 8
    assert [one.gpu for one in assign_gpus(5, [8 * GB, 24 * GB])] == [1, 1, 0, 1, 1]  # 24, 12, 8 (of equals the first), 8, 6
    assert assign_gpus(3, []) == []


@pytest.mark.parametrize(("given", "seen"), [({}, "1"), ({"CUDA_VISIBLE_DEVICES": "3, GPU-5e"}, "GPU-5e")])
def test_a_worker_sees_its_own_gpu_alone_by_the_name_that_the_machine_has_for_it(given: dict[str, str], seen: str) -> None:
    assert GpuSlot(1, 0.1).environment(given) == {"CUDA_VISIBLE_DEVICES": seen}


def test_torch_is_asked_for_gpus_only_where_there_is_a_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "MACHINE", tmp_path)
    monkeypatch.setattr(gpu_slots, "ASK", "print(8, 24)")
    assert find_gpus() == []
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text("NVRM version")
    assert find_gpus() == [8, 24]
    monkeypatch.setattr(gpu_slots, "ASK", "raise SystemExit('a driver that is too old')")
    assert find_gpus() == []


# ---------------------------------------------------------------- results of one kind of device


@pytest.fixture
def door(tmp_path: Path, written: Path) -> Service:
    config = Settings(home=tmp_path, slots=2, store_mb=64, memory_mb=0)
    config.catalog.write_bytes(written.read_bytes())
    return Service(Store(config.store), config)


def played(door: Service, device: torch.device) -> Run:
    """The run that waits, played on the CPU, whatever `device` it is said to be."""
    claimed = door.store.claim("0:1")
    assert claimed
    door.store.put_version(claimed.id, on_device(claimed.version, device.type))
    door.store.finish(claimed.id, "done")
    found = door.store.get(claimed.id)
    assert found
    return found


def test_results_of_one_kind_of_device_are_shared_and_those_of_another_are_not(door: Service) -> None:
    first = door.submit(FAST, "me")
    played(door, CPU)
    assert door.submit(FAST, "you") == first
    note_device(door.store, CUDA)
    second = door.submit(FAST, "you")
    assert second != first
    assert played(door, CUDA).version.endswith(" on cuda")
    assert door.submit(FAST, "them") == second
    note_device(door.store, CPU)
    assert door.submit(FAST, "them") == first


def test_a_run_counts_for_the_device_that_computed_it_whatever_it_was_asked_for(door: Service) -> None:
    note_device(door.store, CUDA)
    door.submit(FAST, "me")
    claimed = door.store.claim("0:1")
    assert claimed
    assert claimed.version.endswith(" on cuda")
    perform(door.store, claimed, CPU)
    done = door.store.get(claimed.id)
    assert done
    assert (done.status, done.version) == ("done", claimed.version.removesuffix(" on cuda"))


def test_ranks_are_shared_whatever_the_device(door: Service) -> None:
    ranks = Ranks(network="conv 4@1 - block 4 - mean", size=28, channels=1)
    first = door.measure(ranks, "me")
    played(door, CPU)
    note_device(door.store, CUDA)
    assert door.measure(ranks, "you") == first


def test_what_another_device_was_measured_at_is_forgotten(door: Service) -> None:
    door.store.put_note(SPEEDS, {"lenet": [0.01, 0.02]})
    note_device(door.store, CPU)  # as all stores of earlier versions
    assert door.store.note(SPEEDS)
    note_device(door.store, CUDA)
    assert (door.store.note(DEVICE), door.store.note(SPEEDS)) == ("cuda", None)


def test_the_first_worker_records_its_device_before_it_claims_a_run(door: Service) -> None:
    door.store.put_note(SPEEDS, {"lenet": [0.01, 0.02]})
    work(door.store, "1:7", CUDA, going=lambda: False)
    assert door.store.note(DEVICE) is None
    work(door.store, "0:7", CUDA, going=lambda: False)
    assert (door.store.note(DEVICE), door.store.note(SPEEDS)) == ("cuda", None)
    found = door.store.get(door.submit(FAST, "me"))
    assert found
    assert found.version.endswith(" on cuda")


def test_pages_know_the_slots_that_the_dispatcher_keeps(door: Service) -> None:
    assert door.slots == 2
    door.store.put_note(SLOTS, 8)
    assert door.slots == 8
    for name in "ab":
        door.store.add(replace(run(name), estimate=10.0, experiment=FAST.model_dump_json()), {})
    assert [place.wait for place in door.places().values()] == [0.0, 0.0]
