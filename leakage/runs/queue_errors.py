"""Reasons for which a run is not queued, as sentences for its owner."""

from collections.abc import Iterator
from contextlib import contextmanager

from leakage.runs.connections import FULL, StoreError, is_full
from leakage.runs.housekeeping import TIGHT
from leakage.runs.store import QueueFullError, Store
from leakage.runs.trained_models import NoModelRoomError
from leakage.settings import Settings
from leakage.spec.experiment import SpecError

TOO_MANY = {
    "own": "You can have {} runs waiting or running: {} are, and this would be {} more. Let some finish or cancel them first.",
    "all": "All visitors of this server together can have {} runs waiting or running: {} are, and this would be {} more. Try again soon.",
}
STORE_FULL = (
    "There is no room for another run: those that are under way and the recorded ones fill the {} MB that this server keeps. "
    "Try again when some have finished; the administrator of the server can set LEAKAGE_STORE_MB."
)


@contextmanager
def in_words(store: Store, config: Settings) -> Iterator[None]:
    """Convert errors of the queue and of the disk inside the block into a SpecError with a sentence for the owner."""
    try:
        yield
    except QueueFullError as error:
        raise SpecError(TOO_MANY[error.cap].format(error.limit, error.open, error.asked)) from None
    except NoModelRoomError as error:
        raise SpecError(str(error)) from None
    except StoreError as error:
        if not is_full(error):
            raise
        raise SpecError(STORE_FULL.format(config.store_mb) if store.housekeeping.free() < TIGHT else FULL) from None
