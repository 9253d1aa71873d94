"""One of the things that are compared: its name, and what it changes in the experiment that all share."""

from dataclasses import dataclass
from typing import Any

from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, SpecError

MOST = 8  # of one comparison


@dataclass(frozen=True)
class Variant:
    """Its name, and what it changes."""

    title: str
    change: dict[str, Any]


def resolved(base: Experiment, variant: Variant, known: Catalog) -> Experiment | str:
    """The variant as an experiment, or in a sentence why it cannot run."""
    try:
        return base.model_copy(update=variant.change).resolve(known)
    except SpecError as error:
        return f"{variant.title} cannot run and is left out: {error}"
