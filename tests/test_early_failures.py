"""A failed test is named before the run ends."""

from pathlib import Path

import pytest

FIRST = "def test_of_a_failure(): assert 1 + 1 == 3"
SECOND = "import os\ndef test_that_ends_the_run(): os._exit(9)"


def test_a_run_that_is_cut_off_has_named_its_failures(pytester: pytest.Pytester) -> None:
    pytester.makeini(f"[pytest]\npythonpath = {Path(__file__).with_name('support')}")
    pytester.makeconftest("pytest_plugins = ['early_failures']")
    pytester.makepyfile(test_one=FIRST, test_two=SECOND)
    done = pytester.runpytest_subprocess("-p", "no:xdist", "-p", "no:cacheprovider")
    assert done.ret == 9
    done.stdout.fnmatch_lines(["failed: test_one.py::test_of_a_failure (call): assert (1 + 1) == 3"])
