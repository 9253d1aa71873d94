"""What a run that audits a recorded update has written so far: sentences on the update, and a finding of each attack."""

from leakage.runs.events import FindingEvent, StatementEvent
from leakage.runs.store import Store


class AuditLog:
    """The events of audits in a store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def statements(self, run: str) -> list[str]:
        """Return what the update says by itself, as sentences."""
        return [event.text for event in self.store.events_of(run, StatementEvent)]

    def findings(self, run: str) -> list[FindingEvent]:
        """Return what the attacks have found, in their order."""
        return self.store.events_of(run, FindingEvent)
