"""The file that repeats a comparison: the experiments in its exported data, alone or inside a report."""

import json
from typing import Any

from leakage.results.comparison import MAX_RUNS
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, SpecError, parse

OPENS, CLOSES = '<script type="application/json" id="comparison">', "</script>"  # the data inside a report


def experiments(text: str, known: Catalog | None = None) -> list[Experiment]:
    """Return the experiments in an exported comparison.json, or in a report, so that they can be run again.

    Args:
        text: the content of the file.
        known: the plug-ins; with them, every experiment is also checked to be valid here.

    Raises:
        SpecError: the text is no exported comparison, or one of its experiments is not valid.
    """
    if OPENS in text:
        text = text.split(OPENS, 1)[1].split(CLOSES, 1)[0]
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError(f"This is no exported comparison: expected its JSON or its report, and {error}.") from None
    entries = raw.get("experiments") if isinstance(raw, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise SpecError("This is no exported comparison: expected an object with a list of experiments.")
    if not 1 <= len(entries) <= MAX_RUNS:
        raise SpecError(f"experiments: allowed are 1 to {MAX_RUNS}, given were {len(entries)}.")
    return [_parse_entry(number, entry, known) for number, entry in enumerate(entries, 1)]


def _parse_entry(number: int, entry: dict[str, Any], known: Catalog | None) -> Experiment:
    try:
        experiment = parse(entry)
        if known:
            experiment.resolve(known)
        return experiment
    except SpecError as error:
        raise SpecError(f"experiment {number}: {error}") from None
