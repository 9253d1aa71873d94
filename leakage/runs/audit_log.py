"""What a run that audits a recorded update has written so far: sentences on the update, and a finding of each attack."""

from leakage.runs.events import FindingEvent, StatementEvent
from leakage.runs.store import OPEN, Store
from leakage.spec.part import Base


class AuditLog:
    """The events of audits in a store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def find_equal(self, task: Base, code: str) -> str | None:
        """Return the id of a run of the same files and settings, by this version of the code, that has not failed and was not stopped."""
        runs = self.store.equal("audit", task.digest())
        return next((run.id for run in runs if run.version.startswith(code) and run.status in (*OPEN, "done")), None)

    def statements(self, run: str) -> list[str]:
        """Return what the update says by itself, as sentences."""
        return [event.text for event in self.store.events_of(run, StatementEvent)]

    def findings(self, run: str) -> list[FindingEvent]:
        """Return what the attacks have found, in their order; of an attack that was judged meanwhile the later event."""
        return list({(event.title, event.attacker): event for event in self.store.events_of(run, FindingEvent)}.values())
