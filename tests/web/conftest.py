"""The tests of routes run with and without a base path."""

import pytest


@pytest.fixture(params=["", "/gle"])
def prefix(request: pytest.FixtureRequest) -> str:
    """What stands before our routes."""
    return str(request.param)
