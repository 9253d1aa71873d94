"""What a machine's owner may set, all by environment variables, each with a default that works."""

import os
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_data_dir

PACKAGE = Path(__file__).resolve().parent
SITE = PACKAGE / "_site"  # where a wheel carries what a checkout has beside the package: app.py, pages, assets, .streamlit
INSTALLED = SITE.is_dir()
ROOT = SITE if INSTALLED else PACKAGE.parent


@dataclass(frozen=True)
class Settings:
    """Read once per process by `settings()`."""

    home: Path  # LEAKAGE_HOME: runs, catalog, locks; default .leakage beside app.py, or the user's data folder when installed
    slots: int  # LEAKAGE_SLOTS: runs at the same time; default one per core, at most 4
    store_mb: int  # LEAKAGE_STORE_MB: the store never grows beyond this
    memory_mb: int  # LEAKAGE_MEMORY_MB: what one worker may allocate on a CPU; default 70 % of the machine's memory, shared by the slots
    upload_days: int = 7  # LEAKAGE_UPLOAD_DAYS: after so many days a run with uploads is deleted, however it stands

    @property
    def upload_life(self) -> str:
        """How long uploads are kept, in words."""
        return f"{self.upload_days} day{'s' * (self.upload_days > 1)}"

    @property
    def store(self) -> Path:
        return self.home / "store.db"

    @property
    def checkpoints(self) -> Path:
        """What was trained here."""
        return self.home / "checkpoints"

    @property
    def catalog(self) -> Path:
        return self.home / "catalog.json"

    def log_file(self, name: str) -> Path:
        """A log below `home`, begun anew when it has grown beyond 5 MB."""
        path = self.home / name
        if path.exists() and path.stat().st_size > 5 * 2**20:
            path.replace(path.with_suffix(".old.log"))
        return path


def settings() -> Settings:
    """The settings in force. Raises ValueError when a number is not one."""

    def number(name: str, default: int) -> int:
        value = os.environ.get(name, "")
        if value and not value.isdigit():
            raise ValueError(f"{name} must be a whole number, got {value!r}.")
        return int(value) if value else default

    slots = max(1, number("LEAKAGE_SLOTS", min(4, cores())))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return Settings(
        home=Path(os.environ.get("LEAKAGE_HOME") or default_home()).resolve(),
        slots=slots,
        store_mb=number("LEAKAGE_STORE_MB", 4096),
        memory_mb=number("LEAKAGE_MEMORY_MB", int(memory * 0.7 / slots)),
        upload_days=max(1, number("LEAKAGE_UPLOAD_DAYS", 7)),
    )


def default_home() -> Path:
    """Where runs lie unless LEAKAGE_HOME says otherwise. An installed package keeps them apart from itself: updates replace it."""
    return Path(user_data_dir("gradient-leakage-explorer", appauthor=False)) if INSTALLED else ROOT / ".leakage"


def cores() -> int:
    """CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
