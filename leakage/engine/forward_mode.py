"""Forward differentiation without a word: what torch says the first time it is used is not for whoever reads our log."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_forward_mode() -> Iterator[None]:
    """Within it torch compiles its own formulas, by a way that it calls outdated, without saying so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield
