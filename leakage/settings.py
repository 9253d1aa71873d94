"""The settings of a machine: environment variables, each with a default that works."""

import math
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from platformdirs import user_data_dir

PACKAGE = Path(__file__).resolve().parent
SITE = PACKAGE / "_site"  # in a wheel, the files that a checkout has beside the package: app.py, pages, assets, .streamlit
MACHINE = Path("/")  # the folder with proc and sys, in which Linux says what a container may use
STEPS = FORMULA, AUTOGRAD = "formula", "autograd"  # how an attack's step differentiates the gradient of a guess
MEMORY_FRACTION = 0.7  # of the memory, for all slots together
PREPARED_CATALOG = Path(sys.prefix, "share", "gradient-leakage", "catalog.json")  # written when the program is set up
INSTALLED = SITE.is_dir()
ROOT = SITE if INSTALLED else PACKAGE.parent


@dataclass(frozen=True)
class Settings:
    """The settings; `settings()` reads them from the environment."""

    home: Path  # LEAKAGE_HOME: runs, catalog, locks; default .leakage beside app.py, or the user's data folder when installed
    slots: int  # LEAKAGE_SLOTS: runs at the same time; default one per core, at most 4, or what fits the GPUs (docs/gpu.md)
    store_mb: int  # LEAKAGE_STORE_MB: the store never grows beyond this
    memory_mb: int  # LEAKAGE_MEMORY_MB: what one worker may allocate on a CPU; default 70 % of the memory here, shared by the slots
    upload_days: int = 7  # LEAKAGE_UPLOAD_DAYS: days after which a run with uploads is deleted, in whatever state it is
    max_waiting: int = 30  # LEAKAGE_MAX_WAITING: runs that one owner may have waiting or running
    max_waiting_all: int = 1000  # LEAKAGE_MAX_WAITING_ALL: runs that all owners together may have waiting or running
    owner_days: int = 30  # LEAKAGE_OWNER_DAYS: days without a visit after which an owner's runs are removed
    ray: str = ""  # LEAKAGE_RAY: auto, or ray://host:10001: workers run on that cluster; default none: on this machine
    ray_workers: int = 0  # LEAKAGE_RAY_WORKERS: the most workers on the cluster; default 0: as many as it has room for now
    ray_per_gpu: int = 4  # LEAKAGE_RAY_PER_GPU: workers that share a GPU of the cluster
    retry_lost: bool = False  # LEAKAGE_RETRY_LOST: 1: a run begins anew, once, if its worker is lost; else it fails
    allowed_hosts: tuple[str, ...] = ()  # LEAKAGE_ALLOWED_HOSTS: names of this server, with commas; addresses are always allowed
    proxies: tuple[str, ...] = ()  # LEAKAGE_PROXIES: addresses or networks of the reverse proxies in front, with commas; default none
    connections: int = 512  # LEAKAGE_CONNECTIONS: connections that one address may have open at a time; a named proxy may have any number
    guests: bool = False  # LEAKAGE_CLASS: 1: visitors from other computers, without the class password, reach the rooms of a class only
    step: str = FORMULA  # LEAKAGE_STEP: autograd: it differentiates gradients, as for the recordings; default: a formula, if there is one
    compile: bool = True  # LEAKAGE_COMPILE: 0: no step is compiled
    password: str = field(default="", repr=False)  # LEAKAGE_PASSWORD: what a visitor must know; default none

    @property
    def upload_life(self) -> str:
        """The time for which uploads are kept, in words."""
        return f"{self.upload_days} day{'s' * (self.upload_days > 1)}"

    @property
    def store(self) -> Path:
        return self.home / "store.db"

    @property
    def checkpoints(self) -> Path:
        """The folder of the models that were trained on this machine."""
        return self.home / "checkpoints"

    @property
    def updates(self) -> Path:
        """The folder of recorded updates, which visitors send for an audit."""
        return self.home / "updates"

    @property
    def programs(self) -> Path:
        """The folder of the steps that were compiled on this machine."""
        return self.home / "programs"

    @property
    def catalog(self) -> Path:
        return self.home / "catalog.json"

    def log_file(self, name: str) -> Path:
        """Return the path of a log below `home`; start a new log when the old one has grown beyond 5 MB."""
        path = self.home / name
        if path.exists() and path.stat().st_size > 5 * 2**20:
            path.replace(path.with_suffix(".old.log"))
        return path


def settings() -> Settings:
    """Return the current settings. Raises ValueError if the text of a number is not a whole number."""

    def number(name: str, default: int) -> int:
        value = os.environ.get(name, "")
        if value and not value.isdigit():
            raise ValueError(f"{name} must be a whole number, got {value!r}.")
        return int(value) if value else default

    def names(name: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in os.environ.get(name, "").split(",") if part.strip())

    cluster = os.environ.get("LEAKAGE_RAY", "")
    if cluster not in ("", "auto") and not cluster.startswith("ray://"):
        raise ValueError(f"LEAKAGE_RAY must be auto (a cluster that this machine belongs to) or ray://host:10001, got {cluster!r}.")
    step = os.environ.get("LEAKAGE_STEP") or FORMULA
    if step not in STEPS:
        raise ValueError(f"LEAKAGE_STEP must be {' or '.join(STEPS)}, got {step!r}.")
    slots = max(1, number("LEAKAGE_SLOTS", min(4, cores())))
    return Settings(
        home=Path(os.environ.get("LEAKAGE_HOME") or default_home()).resolve(),
        slots=slots,
        store_mb=number("LEAKAGE_STORE_MB", 4096),
        memory_mb=number("LEAKAGE_MEMORY_MB", int(memory_bytes() * memory_fraction(slots)) // 2**20),
        upload_days=max(1, number("LEAKAGE_UPLOAD_DAYS", 7)),
        max_waiting=number("LEAKAGE_MAX_WAITING", Settings.max_waiting),
        max_waiting_all=number("LEAKAGE_MAX_WAITING_ALL", Settings.max_waiting_all),
        owner_days=number("LEAKAGE_OWNER_DAYS", Settings.owner_days),
        ray=cluster,
        ray_workers=number("LEAKAGE_RAY_WORKERS", Settings.ray_workers),
        ray_per_gpu=max(1, number("LEAKAGE_RAY_PER_GPU", Settings.ray_per_gpu)),
        retry_lost=number("LEAKAGE_RETRY_LOST", 0) > 0,
        allowed_hosts=names("LEAKAGE_ALLOWED_HOSTS"),
        proxies=names("LEAKAGE_PROXIES"),
        connections=max(1, number("LEAKAGE_CONNECTIONS", Settings.connections)),
        guests=number("LEAKAGE_CLASS", 0) > 0,
        step=step,
        compile=number("LEAKAGE_COMPILE", 1) > 0,
        password=os.environ.get("LEAKAGE_PASSWORD", ""),
    )


def default_home() -> Path:
    """Return the home folder if LEAKAGE_HOME is not set: .leakage in a checkout, the user's data folder for an installed package."""
    return Path(user_data_dir("gradient-leakage-explorer", appauthor=False)) if INSTALLED else ROOT / ".leakage"


def memory_fraction(slots: int) -> float:
    """Return the fraction of the memory of the machine, or of its GPU, that one of `slots` slots may fill."""
    return MEMORY_FRACTION / slots


def memory_bytes() -> int:
    """Return the bytes of main memory that this process may use: the memory of the machine, or the limit of its container if smaller."""
    limits = [int(text) for text in _limits("memory", "memory.max", "memory.limit_in_bytes") if text.isdigit()]
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *limits])


def cores() -> int:
    """Return the number of CPU cores that this process may use: the visible cores, or its container's quota if smaller, rounded up."""
    visible = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = [text.split() for text in _limits("cpu", "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")]
    limits = [max(1, math.ceil(int(quota) / int(period))) for quota, period in quotas if quota.isdigit()]  # "max", or -1: no limit
    return min([visible, *limits])


def _limits(controller: str, v2: str, *v1: str) -> Iterator[str]:
    """Yield the limits of the control groups of this process and of their parents: the text of the file `v2`, or of the files `v1`.

    A container sees its group as the root, whatever path the group has outside, so every folder on the way is tried.
    """
    groups = MACHINE / "proc/self/cgroup"
    for line in groups.read_text().splitlines() if groups.exists() else ():
        number, names, path = line.split(":", 2)
        if number != "0" and controller not in names.split(","):
            continue
        top = MACHINE / "sys/fs/cgroup"
        for mount in (top, top / "unified") if number == "0" else (top / names, top / controller):
            inside = mount / path.strip("/")
            for folder in (inside, *inside.parents):
                files = [folder / name for name in ((v2,) if number == "0" else v1)]
                if folder.is_relative_to(mount) and all(file.is_file() for file in files):
                    yield " ".join(file.read_text().strip() for file in files)
