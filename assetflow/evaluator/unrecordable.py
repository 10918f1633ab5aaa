"""Tell a value that cannot be recorded from a ledger that is in trouble, and describe what is set aside.

What is wrong with one value must not stop what comes after it; what is wrong with the ledger must not cost a value.
"""

from __future__ import annotations

import logging
import time

from assetflow.core.values.events import Recording
from assetflow.core.visible import shown
from assetflow.core.wire import event_to_json
from assetflow.errors import AssetflowError, LedgerError, StatementRefused
from assetflow.evaluator.ports import Json

logger = logging.getLogger("assetflow.evaluator")

# The errors that a value may cause, or the ledger.
UNKNOWN = (StatementRefused, MemoryError)
# The errors that are the ledger's trouble, at least at first.
TROUBLE = (LedgerError, OSError, MemoryError)
# An unknown error counts as the ledger's trouble for so many seconds, and then as the fault of a value.
DOUBT = 120.0


class Doubt:
    """Since when an unknown error has stopped what waits at the head of a line."""

    def __init__(self) -> None:
        self._since: float | None = None

    def note(self, error: Exception) -> None:
        """Note an error that counted as the ledger's trouble."""
        if not isinstance(error, UNKNOWN):
            self._since = None
        elif self._since is None:
            self._since = time.monotonic()

    def clear(self) -> None:
        """Note that the ledger was written."""
        self._since = None

    def is_fault_of_a_value(self, error: Exception) -> bool:
        """Return True if the values to be written caused the error, not the ledger."""
        if isinstance(error, UNKNOWN):
            return self._since is not None and time.monotonic() - self._since >= DOUBT
        return not isinstance(error, TROUBLE)


def content_of(recording: Recording) -> Json:
    """Return a recording as JSON for the list of what is refused; of an event that cannot be written, only the id."""
    events: list[Json] = []
    for event in recording.told:
        try:
            events.append(event_to_json(event))
        except Exception:
            events.append({"id": str(event.id)})
    return {"id": str(recording.id), "events": events}


def reason_of(error: Exception) -> tuple[str, str | None]:
    """Return why a value is refused, and the number of the rule that it breaks."""
    # The reason may quote text that cannot be written or displayed.
    if isinstance(error, AssetflowError):
        return shown(error), error.rule
    return shown(f"it cannot be recorded: {error}. This is unexpected; the process's log has more"), None


def log_set_aside(recording: Recording, error: Exception) -> None:
    """Log that a recording is refused because it cannot be recorded, with the traceback if that is unexpected."""
    if isinstance(error, AssetflowError):
        logger.warning("recording %s cannot be recorded; it is kept as refused: %s", recording.id, shown(error))
    else:
        logger.error("recording %s cannot be recorded; it is kept as refused", recording.id, exc_info=error)
