"""A Ray cluster without a token causes a warning at the start."""

import dataclasses
from pathlib import Path

import pytest

from leakage.settings import Settings
from leakage.workers.dispatcher import NO_TOKEN, token_warning

HERE = Settings(home=Path("home"), slots=1, store_mb=16, memory_mb=0)


@pytest.mark.parametrize(
    ("ray", "environment", "said"),
    [
        ("ray://head:10001", {}, NO_TOKEN),
        ("auto", {"RAY_AUTH_MODE": "disabled"}, NO_TOKEN),
        ("auto", {"RAY_AUTH_MODE": "token"}, ""),
        ("", {}, ""),
    ],
)
def test_a_cluster_without_a_token_is_warned_of_and_nothing_else_is(ray: str, environment: dict[str, str], said: str) -> None:
    assert token_warning(dataclasses.replace(HERE, ray=ray), environment) == said
