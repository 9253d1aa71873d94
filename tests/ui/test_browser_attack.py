"""The file that tests/js/attack_checks.js compares the browser's attacks with: the program computes it again."""

import json
from typing import Any

import pytest
from browser_attack_cases import FILE, compute_cases

CLOSE, LATER = 1e-12, 1e-7  # relative to 1, or to a larger number; the last numbers of L-BFGS multiply rounding
STORED = json.loads(FILE.read_text())


@pytest.fixture(scope="module")
def computed() -> dict[str, Any]:
    return json.loads(json.dumps(compute_cases()))


@pytest.mark.parametrize("part", STORED)
def test_the_program_computes_the_numbers_in_the_file(part: str, computed: dict[str, Any]) -> None:
    assert list(computed) == list(STORED)
    assert_same(computed[part], STORED[part], part, tolerance=LATER if part == "searches" else CLOSE)


def assert_same(computed: Any, stored: Any, where: str, *, tolerance: float) -> None:
    if isinstance(stored, dict):
        assert list(computed) == list(stored), where
        for name, value in stored.items():
            assert_same(computed[name], value, f"{where}, {name}", tolerance=tolerance)
    elif isinstance(stored, list):
        assert len(computed) == len(stored), where
        for index, value in enumerate(stored):
            assert_same(computed[index], value, f"{where}, {index}", tolerance=tolerance)
    elif isinstance(stored, float):
        assert computed == pytest.approx(stored, rel=tolerance, abs=tolerance), where
    else:
        assert computed == stored, where
