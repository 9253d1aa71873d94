"""Forward differentiation without the warnings that torch gives at its first use."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_forward_mode() -> Iterator[None]:
    """Ignore, within the block, torch's FutureWarning about the way in which it compiles its own formulas."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield
