"""The rows on what a run assumes (its threat model), with what the run has told so far."""

from leakage.runs.endings import why_refused
from leakage.runs.events import AttackEnd, MetaEvent
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment
from leakage.spec.threat_model import ATTACKER_ROW, Row, assumptions

OF_THE_UPDATE = {"finds out", "receives", ATTACKER_ROW}  # tags and titles of rows that a refused run does not have


def run_assumptions(experiment: Experiment, known: Catalog, meta: MetaEvent | None, end: AttackEnd | None) -> list[Row]:
    """Return the rows on what the attacker of a run knows, finds out and never sees, and on what the phones' checks found.

    Args:
        experiment: the experiment of the run.
        known: the plug-ins.
        meta: the first event of the run; None before the run has sent it, and for a run that the phone refused.
        end: the result of the run; None before the run has ended.

    Raises:
        CatalogError: a plug-in of the experiment no longer exists.
    """
    ending = end.ending if end else None
    found = ending.checks if ending and why_refused(ending) else meta.checks if meta else ()
    rows = assumptions(experiment, known, meta, end.note if end else {}, readings=found)
    return [row for row in rows if not {row[0], row[1]} & OF_THE_UPDATE] if why_refused(ending) else rows
