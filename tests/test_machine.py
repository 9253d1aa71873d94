"""The limits of a container, read from files as Linux writes them: cgroups of version 1, version 2 and both."""

import os
from pathlib import Path

import pytest

from leakage import settings as module
from leakage.settings import cores, memory_bytes, memory_fraction, settings

GB = 2**30
MANY = 64  # cores, and gigabytes, of the machine


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of the machine's root, on a machine of 64 cores and 64 GB."""
    monkeypatch.setattr(module, "MACHINE", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(MANY)))
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": MANY * GB // 4096}.__getitem__)
    return tmp_path


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")


NO_LIMIT = {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cgroup.controllers": "cpu memory"}
V2 = {  # the root of a container, as it sees itself
    "proc/self/cgroup": "0::/",
    "sys/fs/cgroup/memory.max": str(8 * GB),
    "sys/fs/cgroup/cpu.max": "250000 100000",
}
V2_ABOVE = {  # a service of systemd in a slice that is smaller than the service
    "proc/self/cgroup": "0::/system.slice/leakage.service",
    "sys/fs/cgroup/system.slice/memory.max": str(4 * GB),
    "sys/fs/cgroup/system.slice/cpu.max": "150000 100000",
    "sys/fs/cgroup/system.slice/leakage.service/memory.max": "max",
    "sys/fs/cgroup/system.slice/leakage.service/cpu.max": "max 100000",
}
V1 = {  # docker: the path is that of the host, the mount begins at the container
    "proc/self/cgroup": "11:memory:/docker/abc\n5:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": str(2 * GB),
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
}
V1_FREE = V1 | {"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1"}
BOTH = {  # version 1 has the controllers, version 2 only the names
    "proc/self/cgroup": "4:memory:/a/b\n1:cpu:/\n0::/a/b",
    "sys/fs/cgroup/memory/a/memory.limit_in_bytes": str(3 * GB),
    "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": str(6 * GB),
    "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "800000",
    "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
    "sys/fs/cgroup/unified/a/b/cgroup.procs": "",
}


@pytest.mark.parametrize(
    ("files", "gigabytes", "cpus"),
    [
        ({}, MANY, MANY),
        (NO_LIMIT, MANY, MANY),
        (V2, 8, 3),  # two and a half, rounded up
        (V2_ABOVE, 4, 2),
        (V1, 2, 1),  # half a core is one
        (V1_FREE, MANY, MANY),
        (BOTH, 3, 8),
    ],
    ids=["no Linux", "no limit", "v2", "v2 above", "v1", "v1 without limit", "both"],
)
def test_memory_and_cores_are_those_of_the_container(machine: Path, files: dict[str, str], gigabytes: int, cpus: int) -> None:
    write(machine, files)
    assert memory_bytes() == gigabytes * GB
    assert cores() == cpus


def test_a_quota_gives_no_cores_that_the_process_may_not_use(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(machine, BOTH)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    assert cores() == 2


def test_the_slots_share_seven_tenths_of_what_the_container_has(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(machine, V2)
    for name in ("LEAKAGE_SLOTS", "LEAKAGE_MEMORY_MB"):
        monkeypatch.delenv(name, raising=False)
    found = settings()
    assert found.slots == 3
    assert found.memory_mb == 8 * 1024 * 7 // 10 // 3


@pytest.mark.parametrize("slots", [1, 2, 4, 64])
def test_the_shares_of_all_slots_leave_something_of_a_memory(slots: int) -> None:
    """A GPU also holds what torch loads there for each process."""
    assert slots * memory_fraction(slots) == pytest.approx(0.7)


def test_a_cluster_is_found_by_itself_or_has_a_ray_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LEAKAGE_RAY", raising=False)
    assert settings().ray == ""
    for address in ("auto", "ray://head:10001"):
        monkeypatch.setenv("LEAKAGE_RAY", address)
        assert settings().ray == address
    monkeypatch.setenv("LEAKAGE_RAY", "head:6379")
    with pytest.raises(ValueError, match=r"^LEAKAGE_RAY must be auto .* or ray://host:10001, got 'head:6379'\.$"):
        settings()
