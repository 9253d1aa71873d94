"""The labels that an attack works with: granted, or read from the update."""

from torch import Tensor

from leakage.engine.core import Observation
from leakage.engine.labels import recover


def labels_of(seen: Observation, rule: str) -> tuple[Tensor, dict[str, str | int | float]]:
    """Labels (B,), and for the page how they were found and how sure that is."""
    if seen.labels is not None:
        return seen.labels, {"label rule": "granted"}
    found, words = recover(seen)
    return found, {"label rule": words}
