"""The labels that an attack works with: granted, or read from the update."""

from torch import Tensor

from leakage.engine.core import Observation
from leakage.engine.labels import Recovered, recover


def labels_of(seen: Observation, rule: str) -> tuple[Tensor, dict[str, str | int | float]]:
    """Labels (B,), and for the page how they were found and how sure that is."""
    found = Recovered(seen.labels, "granted") if seen.labels is not None else recover(seen, rule)
    return found.labels, found.note
