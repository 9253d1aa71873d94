"""The file of derivatives that tests/js/network.test.js compares the browser's networks with: torch computes it again."""

import json
from typing import Any

import numpy as np
import pytest
from browser_network_cases import CASES, FILE, Case, compute_case

TOLERANCE = 1e-12  # of the largest entry
NUMBERS = ("loss", "gradient_norm", "gradient", "picture_slope", "label_slope")
STORED = json.loads(FILE.read_text())


def description(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in NUMBERS}


@pytest.mark.parametrize(("case", "stored"), list(zip(CASES, STORED, strict=True)), ids=lambda value: getattr(value, "plan", ""))
def test_torch_computes_the_derivatives_in_the_file(case: Case, stored: dict[str, Any]) -> None:
    computed = compute_case(case)
    assert description(computed) == description(stored)
    for name in NUMBERS:
        expected = np.asarray(computed[name])
        np.testing.assert_allclose(stored[name], expected, rtol=0, atol=TOLERANCE * np.abs(expected).max(), err_msg=name)
