"""A variant of a comparison: its name, and its changes to the experiment that all variants share."""

from dataclasses import dataclass
from typing import Any

from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, SpecError

MOST = 8  # variants of a comparison


@dataclass(frozen=True)
class Variant:
    """A named change of an experiment."""

    title: str
    change: dict[str, Any]


def resolved(base: Experiment, variant: Variant, known: Catalog) -> Experiment | str:
    """Return the variant as an experiment with defaults filled in, or a sentence that says why it cannot run."""
    try:
        return base.model_copy(update=variant.change).resolve(known)
    except SpecError as error:
        return f"{variant.title} cannot run and is left out: {error}"
