"""Fixtures of all tests: one thread, a temporary home, and a report on whether the real data sets are present."""

import os
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

# Fixtures for tests in several folders, and which tests run when.
pytest_plugins = ["early_failures", "home_fixtures", "page_visits", "pytester", "scheduling"]
ROOT = Path(__file__).resolve().parent.parent
NEARBY = ROOT.parent / "shared" / "data"  # looked for when LEAKAGE_DATA is unset

if "LEAKAGE_DATA" not in os.environ and NEARBY.is_dir():
    os.environ["LEAKAGE_DATA"] = str(NEARBY)
DATA = os.environ.get("LEAKAGE_DATA", "")
collect_ignore = [] if DATA and Path(DATA).is_dir() else ["real_data"]


def pytest_configure(config: pytest.Config) -> None:
    torch.set_num_threads(1)
    home = tempfile.TemporaryDirectory(prefix="leakage-tests-", ignore_cleanup_errors=True)
    config.add_cleanup(home.cleanup)
    os.environ["LEAKAGE_LPIPS_FROM"] = "off"  # no server that a test starts asks the network
    os.environ["LEAKAGE_COMPILE"] = "0"  # idle servers of tests compile nothing
    os.environ["LEAKAGE_HOME"] = home.name  # the user's own runs stay untouched


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    found = "none (set LEAKAGE_DATA), tests/real_data not collected" if collect_ignore else f"found in {DATA}, tests/real_data collected"
    terminalreporter.write_line(f"real data: {found}")
    if not find_spec("ray"):
        terminalreporter.write_line("Ray: not installed (pip install '.[ray]'), tests/workers/test_ray.py skipped")
